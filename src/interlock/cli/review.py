"""`interlock review`: what waits for a person, and what a person says about it."""

from __future__ import annotations

import argparse
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from interlock.answers.answer_review import decide_answer, read_held_answer
from interlock.audit import as_row, load_or_make_key
from interlock.cli.call import read_arguments, show
from interlock.cli.foreign_text import print_origins, read_foreign_texts, read_question
from interlock.cli.interrupts import run_to_end
from interlock.cli.ledger import open_ledger
from interlock.cli.options import find_key_file, load_command_settings, store_option
from interlock.cli.output import colorize, console, format_count, format_moment, print_diff, print_json, sanitize
from interlock.cli.parser import document_exits
from interlock.cli.results import result_stream
from interlock.cli.workspace import open_runtime
from interlock.config import parse_duration
from interlock.errors import ConfigError, ContractError, NotAllowed, PolicyError
from interlock.operations.approvals import Look, decide_ticket, decider, sweep
from interlock.operations.key_states import KeyState
from interlock.operations.ledger_writer import LedgerWriter, record_with_payload
from interlock.ports import Query, Store, SystemClock, SystemIds
from interlock.principals import default_principal
from interlock.review import parties_of, voice_of
from interlock.review.identity import TokenClaims, issue
from interlock.state import Ticket, TicketKind, TicketState, state_of
from interlock.values import Json, Outcome, Status

_ASKS = {
    TicketKind.CHANGE: "may this call be made?",
    TicketKind.SETTLE: "did this effect land?",
    TicketKind.ANSWER: "may this answer leave?",
}


def register(commands: Any, common: Any) -> None:
    parser = commands.add_parser("review")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    tickets = actions.add_parser("list", help="tickets that wait, oldest first")
    tickets.add_argument("--all", action="store_true", help="also those that are decided")
    one = actions.add_parser("show", help="one ticket with its plan")
    approve = actions.add_parser("approve", help="allow it, once, as it is now")
    deny = actions.add_parser("deny", help="refuse it; the model sees the reason")
    edit = actions.add_parser(
        "edit",
        help="refuse it as it is, and make its call with other values",
        description="Refuse a ticket, and make its call with other values in place of its own. Whoever edits a call is"
        " who it is made for from then on: where it has to be reviewed again, somebody else decides.",
    )
    remind = actions.add_parser(
        "remind",
        help="expire, escalate and remind of what is due, and say who has to decide; for a schedule",
        description="Expire, escalate and remind of what is due by [review] of the policy under which it was asked, and"
        " print those tickets with who may decide them, for whatever tells people (--json for scripts).",
    )
    go_on = actions.add_parser("resume", help="make the call that waits for a ticket")
    for action in (one, approve, deny, edit, go_on):
        action.add_argument("ticket", help="its id, as `interlock review list` shows it")
    edit.add_argument("arguments", help="a JSON object of what is to be otherwise, or - for standard input")
    for action in (approve, deny, edit):
        action.add_argument("--reason", default="", help="why")
        action.add_argument("--token", metavar="FILE", help="decide as the service whose token this file holds")
    _add_approval(approve)
    token = actions.add_parser("token", help="make a token with which a service can decide tickets")
    token.add_argument("name", help="the service")
    token.add_argument("--for", dest="lasts", default="1d", metavar="TIME", help="how long it is good: 30m, 12h, 7d")
    token.add_argument("--key", metavar="PEM", help="the Ed25519 key to sign with (default: the audit key)")
    not_yours = "the ticket is decided, has expired or is not yours to decide"
    for action, run, wrong in (
        (tickets, _list, ""),
        (one, _show, ""),
        (approve, _approve, f"{not_yours}; with --resume, the call was not ok"),
        (deny, _deny, not_yours),
        (edit, _edit, f"{not_yours}; the call was not ok"),
        (go_on, _resume, "the ticket is not approved, or the call was not ok"),
        (remind, _remind, ""),
        (token, _token, ""),
    ):
        common(action)
        document_exits(action, wrong=wrong)
        action.set_defaults(run=lambda given, run=run: run_to_end(run(given)))


def _add_approval(approve: argparse.ArgumentParser) -> None:
    approve.add_argument("--answer", default="", metavar="TEXT", help="for an answer that waits: what is said instead")
    approve.add_argument(
        "--vouch",
        type=int,
        action="append",
        default=[],
        metavar="RECORD",
        help="a result of its turn that you have looked at and that is meant, for the rest of the turn; once for each",
    )
    approve.add_argument("--resume", action="store_true", help="and make the call at once")


async def _list(given: argparse.Namespace) -> int:
    async with open_ledger(load_command_settings(given).settings) as store:
        found = await store.tickets(None if given.all else TicketState.OPEN)
    if given.json:
        print_json(found)
        return 0
    out = console()
    out.print(f"[bold]{format_count(len(found), 'ticket')}[/]")
    for ticket in found:
        now = state_of(ticket, time.time_ns() // 1000).value
        state = f"{now}{', escalated' if ticket.escalated else ''}"
        until = format_moment(ticket.expires_us)
        what = f"{sanitize(ticket.tool)}  by {sanitize(ticket.actor)}"
        out.print(f"[bold]{ticket.id}[/]  {colorize(state)}  {what}  [dim]until {until}[/]")
        out.print(f"  [dim]{sanitize(ticket.why)}[/]")
    return 0


async def _show(given: argparse.Namespace) -> int:
    async with open_ledger(load_command_settings(given).settings) as store:
        ticket = await _ticket(store, given.ticket)
        number = ticket.intent or ticket.record
        record, whole = (None, {}) if number is None else await record_with_payload(store, number)
        made = await _find_made(store, ticket)
        texts = await read_foreign_texts(store, record)
        question = await read_question(store, ticket.turn, record, whole)
    # What the record holds, not its payload: redacted fields are redacted for reviewers too.
    arguments, diff = None if record is None else record.content().arguments, whole.get("diff")
    if ticket.kind is TicketKind.ANSWER:
        return await _show_answer(given, ticket)
    states = await _read_states(given, ticket)
    verdict = None if record is None else record.content().verdict
    rule = "" if verdict is None else verdict.rule
    if given.json:
        said = {"arguments": arguments, "diff": diff, "made": made, "states": states, "foreign_texts": texts}
        said |= {"question": question, "rule": rule}
        print_json({**msgspec.to_builtins(ticket), **msgspec.to_builtins(said)})
        return 0
    out = console()
    shown = {**_describe(ticket), "rule": rule, "question": question}
    shown["arguments"] = msgspec.json.encode(arguments).decode()
    for name, text in shown.items():
        if text:
            out.print(f"[bold]{name:<12}[/] {sanitize(text)}")
    print_origins(record, texts)
    print_diff(diff)
    _print_states(states)
    if made is not None:
        other = f" [yellow]not as planned: {sanitize(', '.join(made['deviates']))}[/]" if made["deviates"] else ""
        out.print(f"[bold]{'made':<12}[/] {colorize(made['outcome'])} [dim](record {made['id']})[/]{other}")
    return 0


async def _read_states(given: argparse.Namespace, ticket: Ticket) -> tuple[KeyState, ...] | str:
    """Of an effect in doubt what its keys were, were to become and are now; or why that cannot be seen."""
    if ticket.kind is not TicketKind.SETTLE or ticket.state is not TicketState.OPEN:
        return ()
    if not load_command_settings(given).settings.tools:
        return "the settings name no tools; pass --tools to see what it changed"
    try:
        async with open_runtime(given, enter=False) as runtime:
            return await runtime.operations.key_states(ticket.id)
    except (ConfigError, ContractError, NotAllowed, PolicyError) as error:
        return str(error)


def _print_states(states: tuple[KeyState, ...] | str) -> None:
    out = console()
    if isinstance(states, str):
        out.print(f"[bold]{'states':<12}[/] [yellow]not shown: {sanitize(states)}[/]")
        return
    for one in states:
        out.print(f"[bold]{'key':<12}[/] {sanitize(one.key)}")
        for name, state in (("before", one.before), ("planned", one.planned), ("now", one.now)):
            out.print(f"  [dim]{name:<10}[/] {sanitize(msgspec.json.encode(state).decode())}")


@asynccontextmanager
async def _looking(given: argparse.Namespace, ticket: Ticket, state: TicketState) -> AsyncIterator[Look | None]:
    """How an effect is looked at of which somebody says that it did not land, where its tools are at hand."""
    settles = ticket.kind is TicketKind.SETTLE and state is TicketState.DENIED
    async with AsyncExitStack() as stack:
        look = None
        if settles and load_command_settings(given).settings.tools:
            try:
                runtime = await stack.enter_async_context(open_runtime(given, enter=False))
                look = runtime.operations.look
            except (ConfigError, ContractError, PolicyError):
                pass  # then what was seen when the question was asked holds
        yield look


def _describe(ticket: Ticket) -> dict[str, str]:
    """A ticket for people, line by line; what does not apply is empty."""
    terms, digests = ticket.terms, {"plan": ticket.plan, "claim": ticket.claim}
    voices = [said.by if said.voice == said.by else f"{said.by} in place of {said.voice}" for said in ticket.approvals]
    records = {"record": ticket.record, "intent": ticket.intent}
    return {
        "ticket": ticket.id,
        "asks": _ASKS[ticket.kind],
        "state": state_of(ticket, time.time_ns() // 1000).value + (", escalated" if ticket.escalated else ""),
        "tool": ticket.tool,
        "actor": ticket.actor,
        "asked by": ticket.asked_by + (f", for {ticket.on_behalf_of}" if ticket.on_behalf_of else ""),
        "account": ticket.account,
        "call": ticket.call,
        "turn": ticket.turn or "",
        "why": ticket.why,
        "created": format_moment(ticket.created_us),
        "expires": format_moment(ticket.expires_us),
        "escalates": "" if ticket.escalated else format_moment(ticket.escalate_us),
        "reminds": f"every {timedelta(microseconds=ticket.remind_us)}" if ticket.remind_us else "",
        "may decide": _who_may_decide(ticket),
        "approvals": f"{len(voices)} of {terms.quorum}" + (f": {', '.join(voices)}" if voices else ""),
        "decided": f"{format_moment(ticket.decided_us)} by {ticket.decided_by or 'nobody'}"
        if ticket.decided_us
        else "",
        "reason": ticket.reason,
        **digests,
        **{name: "" if number is None else str(number) for name, number in records.items()},
    }


def _who_may_decide(ticket: Ticket) -> str:
    """Those whom the terms name and who would not be refused; anybody else where they name nobody."""
    terms, now_us = ticket.terms, time.time_ns() // 1000
    if not terms.approvers:
        return "anybody" if terms.self_approval else f"anybody but {', '.join(parties_of(ticket))}"
    able = [name for name in terms.approvers if _may_decide(ticket, name, now_us)]
    able += [
        f"{given.to} for {given.of} until {format_moment(given.until_us)}"
        for given in terms.delegations
        if given.until_us > now_us and _may_decide(ticket, given.of, now_us) and _may_decide(ticket, given.to, now_us)
    ]
    parties = ", ".join(parties_of(ticket))
    return ", ".join(able) or f"nobody: of {', '.join(terms.approvers)} nobody is left beside {parties}, who asked"


def _may_decide(ticket: Ticket, name: str, now_us: int) -> bool:
    try:
        voice_of(ticket, name, now_us)
    except NotAllowed:
        return False
    return True


async def _find_made(store: Store, ticket: Ticket) -> dict[str, Json] | None:
    """How the call ended that an approval was spent on."""
    if ticket.state is not TicketState.SPENT:
        return None
    which = Query(after=ticket.record or 0, turn=ticket.turn, call=ticket.call)
    own = [record async for record in store.records(which) if record.kind == "call" and record.tool == ticket.tool]
    # Whoever resumes it again is answered from the record of the one that made it, and that is meant.
    made = [record for record in own if record.content().repeats is None and record.status != Status.DENIED]
    rows = [as_row(record) for record in made[-1:]]
    return {key: rows[0][key] for key in ("id", "outcome", "summary", "deviates")} if rows else None


async def _show_answer(given: argparse.Namespace, ticket: Ticket) -> int:
    """An answer that waits: the question, the draft that was held back, and what the tools returned."""
    async with open_ledger(load_command_settings(given).settings) as store:
        held = await read_held_answer(store, ticket)
    if given.json:
        print_json({**msgspec.to_builtins(ticket), **held})
        return 0
    out = console()
    for name, text in (("ticket", ticket.id), ("agent", ticket.actor), ("why", ticket.why), *held.items()):
        out.print(f"[bold]{name:<9}[/] {sanitize(text, lines=True)}")
    where = sanitize(store_option(given))
    approve = f"interlock review approve {ticket.id}{where} [--answer TEXT] | deny"
    out.print(f"[dim]{approve}; interlock turns show {ticket.turn}{where}[/]")
    return 0


async def _approve(given: argparse.Namespace) -> int:
    await _decide(given, TicketState.APPROVED, quiet=given.resume and given.json)
    return await _resume(given) if given.resume else 0


async def _deny(given: argparse.Namespace) -> int:
    return await _decide(given, TicketState.DENIED)


async def _decide(given: argparse.Namespace, state: TicketState, *, quiet: bool = False) -> int:
    settings = load_command_settings(given).settings
    async with open_ledger(settings) as store:
        ticket = await _ticket(store, given.ticket)
        writer = await _writer(given, store)
        by = writer.by
        vouch = getattr(given, "vouch", [])
        if ticket.kind is TicketKind.ANSWER and not vouch:
            number = await decide_answer(writer, ticket.id, state, given.reason, getattr(given, "answer", ""))
        else:
            async with _looking(given, ticket, state) as look:
                number = await decide_ticket(writer, ticket.id, state, given.reason, look, vouch)
        after = await _ticket(store, given.ticket)
    if quiet:
        return 0
    count = len(after.approvals)
    if given.json:
        said = {"ticket": given.ticket, "state": state.value, "by": by, "record": number}
        print_json({**said, "ticket_state": after.state.value, "approvals": count, "quorum": after.terms.quorum})
        return 0
    missing = after.terms.quorum - count if after.state is TicketState.OPEN else 0
    more = f"; {format_count(missing, 'more approval')} needed" if missing else ""
    console().print(f"{colorize(state.value)} by {sanitize(by)} [dim](record {number})[/]{more}")
    return 0


async def _writer(given: argparse.Namespace, store: Store) -> LedgerWriter:
    """What writes a decision: not a setting, but who is logged in, or whoever a token that the ticket's own terms trust
    says."""
    token = None if given.token is None else Path(given.token).read_text(encoding="utf-8")
    by = await decider(store, given.ticket, default_principal(), None, token, time.time_ns() // 1000)
    writer = LedgerWriter(by, store, SystemClock(), SystemIds())
    writer.proof = None if token is None else {"token": token.strip()}
    return writer


async def _edit(given: argparse.Namespace) -> int:
    changes = read_arguments(given.arguments)
    if not isinstance(changes, dict):
        raise ConfigError("what is to be otherwise is a JSON object, for example '{\"amount\": 40}'")
    async with open_runtime(given) as runtime:
        await _ticket(runtime.store, given.ticket)
        writer = await _writer(given, runtime.store)
        outcome = await runtime.operations.edit_as(writer, given.ticket, changes, given.reason)
    return _print_outcome(given, outcome)


async def _remind(given: argparse.Namespace) -> int:
    settings = load_command_settings(given).settings
    async with open_ledger(settings) as store:
        due = await sweep(LedgerWriter(default_principal(), store, SystemClock(), SystemIds()))
    if given.json:
        print_json(due)
        return 0
    out = console()
    out.print(f"[bold]{format_count(len(due), 'ticket')} due[/]")
    for ticket in due:
        what = "has expired" if ticket.state is TicketState.EXPIRED else "is escalated" if ticket.escalated else "waits"
        who = sanitize(_who_may_decide(ticket))
        out.print(f"[bold]{ticket.id}[/]  {what}: {sanitize(ticket.why)}  [dim]may decide: {who}[/]")
    return 0


async def _resume(given: argparse.Namespace) -> int:
    async with open_runtime(given) as runtime:
        await _ticket(runtime.store, given.ticket)
        outcome = await runtime.operations.resume(given.ticket)
    return _print_outcome(given, outcome)


def _print_outcome(given: argparse.Namespace, outcome: Outcome) -> int:
    if given.json:
        print_json({**msgspec.to_builtins(outcome), "summary": outcome.summary})
    else:
        show(outcome, store_option(given))
    return 0 if outcome.status in (Status.OK, Status.NO_DATA) else 1


async def _token(given: argparse.Namespace) -> int:
    settings = load_command_settings(given).settings
    async with open_ledger(settings) as store:
        ledger = store.identity.ledger
    now_s = int(time.time())
    claims = TokenClaims(sub=given.name, aud=ledger, iat=now_s, exp=now_s + int(parse_duration(given.lasts)))
    file = find_key_file(settings, given.key)
    if given.key is None:
        load_or_make_key(file)  # the usual one is made on first use, one that is named has to be there
    made = issue(file, claims)
    if given.json:
        print_json({"token": made, "name": given.name, "expires_us": claims.exp * 1_000_000})
    else:
        print(made, file=result_stream())
    return 0


async def _ticket(store: Store, name: str) -> Ticket:
    ticket = await store.ticket(name)
    if ticket is None:
        raise ConfigError(f"there is no ticket {name!r}; see interlock review list")
    return ticket
