"""`interlock ask`: a question to an application, with what happens shown while it happens."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, assert_never

from interlock.answers import Answers, TurnResult, TurnStatus
from interlock.answers.app import App, find_app
from interlock.answers.constrained import constrain
from interlock.answers.intents import Classified
from interlock.answers.runner import (
    Asking,
    Called,
    NoReply,
    PhaseEntered,
    PlanMade,
    Progress,
    Prompted,
    Returned,
    SourceFound,
    TurnEnded,
    ascii_json,
    run_turn,
)
from interlock.answers.sessions.follow_up import SESSION
from interlock.cli.apps import load_apps
from interlock.cli.interrupts import run_to_end
from interlock.cli.options import load_command_settings, store_option
from interlock.cli.output import colorize, console, format_count, notes, print_json, print_prose, sanitize
from interlock.cli.parser import document_exits
from interlock.cli.workspace import load_packs, load_tools
from interlock.config import Loaded
from interlock.errors import ConfigError
from interlock.models import open_model
from interlock.models.guarded import close_model
from interlock.ports import Query, Store
from interlock.runtime import Runtime
from interlock.values import Mode, Outcome

if TYPE_CHECKING:
    from rich.console import Console

_GOOD = (
    TurnStatus.VERIFIED,
    TurnStatus.CONVERSATION,
    TurnStatus.PARTIAL,
    TurnStatus.RENDERED,
    TurnStatus.ASKED,
    TurnStatus.WAITING,
)
_SAYS_WHY = (TurnStatus.ASKED, TurnStatus.TOOL_FAILED, TurnStatus.NO_REPLY, TurnStatus.REJECTED)
"""Answers that hold their reason: it is not said twice."""
_RECOGNISED_BY = {
    "keywords": "by its keywords",
    "semantic": "by its examples",
    "both": "by keywords and examples",
    "caller": "as it was asked for",
    "phrases": "by its phrases",
}


def register(commands: Any, common: Any) -> None:
    parser = commands.add_parser(
        "ask",
        description="Ask an agent of an application. Its answer is printed only when the tools it needed succeeded and"
        " its figures are traced; otherwise the tools' results, a question back, or a ticket.",
    )
    parser.add_argument("app", help="the application: one that is installed, or one of the setting `apps`")
    parser.add_argument("question", nargs="?", help="the question, or - to read it from standard input")
    parser.add_argument("--agent", help="which of its agents (default: the first)")
    parser.add_argument("--model", help="local, provider:name, or python:module:NAME (default: the setting `model`)")
    parser.add_argument(
        "--turn",
        dest="turn_id",
        metavar="ID",
        help="go on with a turn that waited for a person; with a text, answer what it has asked",
    )
    parser.add_argument("--judge", default="", metavar="MODEL", help="a second model, asked about every sentence")
    parser.add_argument("--session", metavar="NAME", help="the conversation that this is the next turn of")
    parser.add_argument(
        "--work", metavar="NAME", help="one of the ways of working that the agent offers, such as quick or research"
    )
    parser.add_argument(
        "--mode",
        choices=[mode.value for mode in Mode],
        help="how far changes go (a way of working is --work)",
    )
    parser.add_argument(
        "--stream", action="store_true", help="print the answer sentence by sentence, each once checked"
    )
    parser.add_argument("--quiet", action="store_true", help="only the answer")
    common(parser)
    document_exits(
        parser,
        done="there is an answer, a question back, or a call that waits for a person",
        wrong="there is no answer: it was escalated, blocked or too late, a tool or the model failed; or the policy"
        " cannot be used",
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Ask, and print the answer with its sources."""
    loaded = load_command_settings(given)
    app = find_app(given.app, load_apps(loaded))
    watch = _Watch(notes(), given.quiet or given.json)
    if given.turn_id and given.session:
        raise ConfigError("--turn goes on with one turn, which knows its session; leave out --session")
    if given.turn_id and given.work:
        raise ConfigError("--turn goes on with one turn, which knows its way of working; leave out --work")
    if given.work:
        app.agent(given.agent).work(given.work)  # before anything is opened
    if given.question == "-" or (given.question is None and not given.turn_id):
        given.question = sys.stdin.read()  # before the loop begins, which Ctrl-C could not end while this waits
    result = run_to_end(_ask(given, loaded, app, watch))
    if given.json:
        print_json(result)
    else:
        show_answer(
            result,
            quiet=given.quiet,
            is_shown=given.stream,
            payload=_payload(app, watch),
            where=store_option(given),
            ask=_go_on(given, app),
        )
    return 0 if result.status in _GOOD else 1


def _go_on(given: argparse.Namespace, app: App) -> str:
    """The application as it is named to go on with a turn, with the agent where that is not its first."""
    agent = app.agent(given.agent)
    which = "" if agent is app.agents[0] else f" --agent {shlex.quote(agent.name)}"
    return f"{shlex.quote(app.name)}{which}"


def _payload(app: App, watch: _Watch) -> list[object]:
    """What the application shows of the calls behind an answer."""
    return [] if app.present is None else list(app.present(watch.found))


async def _ask(given: argparse.Namespace, loaded: Loaded, app: App, watch: _Watch) -> TurnResult:
    settings, agent = loaded.settings, app.agent(given.agent)
    name = given.model or settings.model
    model = (app.constrain or constrain)(
        open_model(
            name, fallback=settings.model_fallback, timeout_s=settings.model_timeout_s, tools=settings.model_tools
        )
    )
    # A policy that somebody has set stands above that of the application.
    own_policy = app.policy is not None and loaded.origins["policy"] == "default"
    runtime = Runtime.open(
        settings.store,
        policy=app.policy if own_policy and app.policy is not None else settings.policy,
        tools=app.tools or load_tools(loaded),
        settings=settings,
        packs=load_packs(loaded),
    )
    quiet = given.quiet or given.json
    details: dict[str, Any] = {name: value for name in ("mode", "work") if (value := getattr(given, name))}
    async with runtime:
        answers = Answers(runtime, judge=given.judge)
        if given.turn_id:
            await _require_turn(runtime.store, given.turn_id)
            opened = await answers.reopen(given.turn_id, agent=agent, reply=given.question)
        elif given.session:
            with notes().status("reading the question (the first time on a machine, what is asked is learned) …"):
                opened = await answers.session(given.session).turn(given.question, agent=agent, **details)
        else:
            with notes().status("reading the question (the first time on a machine, what is asked is learned) …"):
                # In a thread: the first time an agent's classifier is trained, which takes seconds.
                opened = await asyncio.to_thread(answers.turn, given.question, agent=agent, **details)
        async with opened as turn:
            if not quiet:
                _start(turn.asked.classified, model.name)
            try:
                shows = _print_piece if given.stream and not given.json else None
                return await run_turn(turn, model, watch=watch, on_text=shows)
            finally:
                await close_model(model)
                await answers.close()


def _print_piece(sentence: str) -> None:
    print_prose(sentence.rstrip("\n"))


async def _require_turn(store: Store, turn: str) -> None:
    async for record in store.records(Query(turn=turn)):
        if record.kind == "turn":
            return
    raise ConfigError(f"there is no turn {turn!r}; see interlock turns list")


def _start(found: Classified, model: str) -> None:
    notes().print(f"[dim]{sanitize(describe_recognised(found))}; asking {sanitize(model)}[/]")


def describe_recognised(found: Classified) -> str:
    """What a question was taken for, and no surer than that is."""
    if found.by == SESSION:
        return "it goes on from what was asked before"
    if not found.intents:
        return "recognised nothing in particular"
    how = _RECOGNISED_BY.get(found.by, found.by)
    return f"{'recognised' if found.clear else 'perhaps it is'} {', '.join(found.intents)} ({how})"


class _Watch:
    """Keeps what succeeded, and prints what happens, a line each."""

    def __init__(self, out: Console, quiet: bool) -> None:
        self._out = out
        self._quiet = quiet
        self.found: list[Outcome] = []
        """The calls that succeeded, in the turn and in those that it delegated to."""

    def __call__(self, progress: Progress) -> None:
        if isinstance(progress, Returned) and progress.outcome.ok:
            self.found.append(progress.outcome)
        line = None if self._quiet else _line(progress)
        if line is not None:
            self._out.print(line)


def _line(progress: Progress) -> str | None:
    match progress:
        case Called(tool=tool, arguments=arguments):
            return f"[dim]→[/] {sanitize(tool)} [dim]{sanitize(ascii_json(arguments))}[/]"
        case Returned(outcome=outcome):
            return f"[dim]←[/] {colorize(outcome.status.value)} [dim]{sanitize(outcome.summary)}[/]"
        case Prompted(tool=str(tool)):
            return f"[yellow]forced[/] [dim]{sanitize(tool)}[/]"
        case Prompted(prompt=prompt):
            return f"[yellow]again[/] [dim]{sanitize(prompt)}[/]"
        case NoReply(reason=reason):
            return f"[yellow]again[/] [dim]no reply: {sanitize(reason)}[/]"
        case Asking():
            return "[dim]…[/]"
        case PhaseEntered() | PlanMade() | SourceFound():
            return _work_line(progress)
        case TurnEnded():
            return None
        case _:
            assert_never(progress)


def _work_line(progress: PhaseEntered | PlanMade | SourceFound) -> str:
    match progress:
        case PhaseEntered(name=name, number=number, of=of, why=why):
            return f"[dim]phase {number} of {of}: {sanitize(name)}{f' ({sanitize(why)})' if why else ''}[/]"
        case PlanMade(questions=questions):
            lines = (f"  {number}. {sanitize(question)}" for number, question in enumerate(questions, 1))
            return "\n".join(("[dim]plan[/]", *lines))
        case SourceFound(source=source, distinct=distinct, wanted=wanted):
            count = f"{distinct} of {wanted}" if wanted else str(distinct)
            about = f", sub-question {', '.join(map(str, source.questions))}" if source.questions else ""
            return f"[dim]source {count}: {sanitize(source.name)}{about}[/]"
        case _:
            assert_never(progress)


def show_answer(
    result: TurnResult,
    *,
    quiet: bool = False,
    is_shown: bool = False,
    payload: Sequence[object] = (),
    where: str = "",
    ask: str = "APP",
) -> None:
    """The answer, where its figures come from, and its turn.

    `is_shown`: the answer itself stands there already. `where` is the option that finds its ledger again, `ask` the
    application (and agent) that goes on with its turn.
    """
    out = console()
    if not is_shown:
        print_prose(result.answer)
    if quiet:
        return
    out.print()
    for item in payload:
        out.print(item)
        out.print()
    supports = [claim for claim in result.claims if claim.how not in ("echo", "unsupported")]
    for claim in supports[:12]:
        path = claim.path if claim.how == "derived" else claim.path.removeprefix("$.")
        name = f"{claim.fact} " if claim.fact else ""
        out.print(f"  [dim]{sanitize(claim.text)} ← {name}{sanitize(claim.source)} {sanitize(path)} ({claim.how})[/]")
    if len(supports) > 12:
        out.print(f"  [dim]… and {format_count(len(supports) - 12, 'more figure')}, all traced[/]")
    if result.sources:
        out.print(f"  [dim]sources: {sanitize(', '.join(result.sources))}[/]")
    said = "" if result.confidence is None else f", confidence {result.confidence:.2f}"
    why = f" [dim]({sanitize(result.reason)})[/]" if result.reason and result.status not in _SAYS_WHY else ""
    used = result.usage
    cost = f", ${used.cost_micros / 1e6:.4f}" if used.cost_micros else ""
    how = f"{result.outcome.value}{said}, {format_count(result.model_calls, 'model call')}"
    how += f" ({used.input_tokens} + {used.output_tokens} tokens{cost})" if used.input_tokens else ""
    out.print(f"{colorize(result.status.value)} [dim]{how}[/]{why}")
    if result.status is TurnStatus.ASKED:
        command = f"ask {ask} --turn {result.turn} 'the answer'{where}"
        out.print(f"[dim]to answer: interlock {sanitize(command)}[/]")
    if result.status is TurnStatus.WAITING and result.ticket is not None:
        _say_how_to_go_on(result.ticket, result.turn, where, ask)
    elif result.ticket is not None:
        out.print(f"[dim]ticket {result.ticket}: interlock review show {result.ticket}{sanitize(where)}[/]")
    out.print(f"[dim]turn: interlock turns show {result.turn}{sanitize(where)}[/]")


def _say_how_to_go_on(ticket: str, turn: str, where: str, ask: str) -> None:
    """What to type, in this order, for an answer that waits for a call."""
    for why, command in (
        ("look at it", f"review show {ticket}"),
        ("somebody else decides", f"review approve {ticket}"),
        ("then the call and the answer", f"ask {ask} --turn {turn}"),
        ("or the call alone", f"review resume {ticket}"),
    ):
        console().print(f"[dim]{why}: interlock {sanitize(command + where)}[/]")
