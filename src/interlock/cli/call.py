"""`interlock call`: one governed call from the shell."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from interlock.cli.interrupts import run_to_end
from interlock.cli.options import store_option
from interlock.cli.output import colorize, console, notes, print_diff, print_json, sanitize
from interlock.cli.parser import document_exits
from interlock.cli.workspace import open_runtime
from interlock.errors import ConfigError
from interlock.ports import Query, Store
from interlock.tools.effect_words import name_parts
from interlock.values import Decision, Effect, Json, Mode, Outcome, Status

_ONE_LINE = 100


def register(commands: Any, common: Any) -> None:
    parser = commands.add_parser(
        "call",
        description="Make one call through the whole path and print its outcome.",
    )
    parser.add_argument("tool", help="the tool's name")
    parser.add_argument("arguments", nargs="?", default="{}", help="a JSON object, or - to read it from standard input")
    parser.add_argument("--actor", default="cli", help="who calls (default: cli)")
    parser.add_argument("--turn", help="the turn it belongs to")
    parser.add_argument("--run", dest="run_id", help="the run it belongs to")
    parser.add_argument("--mode", choices=[mode.value for mode in Mode], help="how far it goes (default: the setting)")
    parser.add_argument("--plan", dest="digest", metavar="DIGEST", help="perform exactly the plan with this digest")
    parser.add_argument("--ticket", help="the approval it carries")
    parser.add_argument(
        "--call-id", help="its id: the same id again is the same call, and is not made twice (default: a new one)"
    )
    common(parser)
    document_exits(
        parser,
        done="its outcome is ok, no_data or planned",
        wrong="its outcome is another, or the policy cannot be used",
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Make the call."""
    # Standard input is read before the loop begins, while Ctrl-C still ends it.
    outcome = run_to_end(_call(given, read_arguments(given.arguments)))
    if given.json:
        print_json({**msgspec.to_builtins(outcome), "summary": outcome.summary})
    else:
        show(outcome, store_option(given))
    return 0 if outcome.status in (Status.OK, Status.NO_DATA, Status.PLANNED) else 1


def _words_of(tool: str, arguments: Json) -> str:
    """What somebody types, as words: the name of the tool, and the values."""
    return f"{' '.join(name_parts(tool))}: {'; '.join(_values_in(arguments))}"


def _values_in(value: Json) -> Iterator[str]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _values_in(item)
        yield from value if isinstance(value, dict) else ()
    else:
        yield str(value)


async def _call(given: argparse.Namespace, arguments: Json) -> Outcome:
    async with open_runtime(given, exists=False) as runtime:
        # What a person types once is one call; whoever types it again means it again.
        call_id = given.call_id or runtime.context.ids.new()
        try:
            return await runtime.call(
                given.tool,
                arguments,
                actor=given.actor,
                turn=given.turn,
                run=given.run_id,
                mode=given.mode,
                plan=given.digest,
                ticket=given.ticket,
                call_id=call_id,
                # Outside of a turn, what somebody types is what the user says.
                question=None if given.turn else _words_of(given.tool, arguments),
            )
        except asyncio.CancelledError:
            await _tell_end(runtime.store, Query(call=call_id, turn=given.turn, tool=given.tool), store_option(given))
            raise


async def _tell_end(store: Store, which: Query, where: str) -> None:
    """How a change ended whose command was interrupted: it may have landed all the same."""
    ended = [record async for record in store.records(which) if record.kind == "call"]
    if not ended or ended[-1].content().effect is Effect.READ:
        return
    status, number = colorize(ended[-1].status), ended[-1].id
    look = f"interlock audit show --id {number}{where}"
    notes().print(f"{status}  {sanitize(ended[-1].tool)}  [dim]record {number}: {sanitize(look)}[/]")


def read_arguments(text: str) -> Json:
    """Arguments as somebody types or pipes them."""
    try:
        return msgspec.json.decode(sys.stdin.buffer.read() if text == "-" else text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ConfigError(f"arguments are not JSON: {error}; write for example '{{\"id\": 1}}'") from None


def show(outcome: Outcome, where: str = "") -> None:
    """One outcome for people; `where` is the option that finds its ledger again."""
    out = console()
    tries = f", {len(outcome.attempts)} attempts" if len(outcome.attempts) > 1 else ""
    repeats = "" if outcome.repeats is None else f", repeats record {outcome.repeats}"
    kept = "no record" if outcome.record is None else f"record {outcome.record}"
    said = f"{outcome.duration_us / 1000:.1f} ms{tries}, {kept}{repeats}"
    out.print(f"{colorize(outcome.status.value)}  {sanitize(outcome.tool)}  [dim]{said}[/]")
    if outcome.verdict is not None:
        out.print(f"  [dim]rule {sanitize(outcome.verdict.rule)}: {sanitize(outcome.verdict.reason)}[/]")
        for item in outcome.verdict.rewrites:
            before, after = sanitize(repr(item.before)), sanitize(repr(item.after))
            out.print(f"  [blue]{sanitize(item.field)}[/]: {before} → {after} [dim](rule {sanitize(item.rule)})[/]")
    refused = outcome.verdict is not None and outcome.verdict.decision is Decision.DENY
    if outcome.problem is not None and not refused:  # what refuses has said why in the line above
        reason = f"[yellow]{outcome.problem.reason}[/]" if outcome.ok else outcome.problem.reason
        out.print(f"  {reason}: {sanitize(outcome.problem.message)}")
    if outcome.undone:
        out.print("  [yellow]made before, and undone since[/]")
    if outcome.deviates:
        out.print(f"  [yellow]not as planned:[/] {sanitize(', '.join(outcome.deviates))}")
    if outcome.plan is not None and outcome.plan.claim:
        _show_plan(outcome, where)
    if outcome.value is not None:
        text = msgspec.json.encode(outcome.value)
        if len(text) > _ONE_LINE:
            text = msgspec.json.format(text, indent=2).replace(b"\n", b"\n  ")
        out.print(f"  {sanitize(text.decode(), lines=True)}")
    elif outcome.ok and outcome.said and outcome.problem is None:  # made before: that is all there is to say
        out.print(f"  {sanitize(outcome.said)}")


def _show_plan(outcome: Outcome, where: str) -> None:
    plan, out = outcome.plan, console()
    assert plan is not None
    out.print(f"  [dim]plan {plan.digest}, risk {plan.risk}[/]")
    print_diff(plan.diff)
    if outcome.ticket is not None:
        out.print(f"  [dim]ticket {outcome.ticket}: interlock review show {outcome.ticket}{sanitize(where)}[/]")
