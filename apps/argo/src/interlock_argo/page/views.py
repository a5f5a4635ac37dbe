"""What the page shows of a turn: texts for the templates, which escape all of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from interlock.answers import Exchange, TurnResult, TurnStatus
from interlock_argo.page.desk import Work

_MEANS = {
    TurnStatus.VERIFIED: "each statement was found where it says",
    TurnStatus.RENDERED: "the results themselves, as no draft could be supported",
    TurnStatus.PARTIAL: "what was found until the work was cut short",
    TurnStatus.CONVERSATION: "small talk, which rests on nothing",
    TurnStatus.ASKED: "Argo needs to know more",
    TurnStatus.WAITING: "somebody has to decide first",
    TurnStatus.TOOL_FAILED: "nothing was found, or a tool failed",
    TurnStatus.TIMED_OUT: "the time was up",
    TurnStatus.ESCALATED: "nothing could be shown that is supported",
}
_CALLED = {TurnStatus.TOOL_FAILED: "no answer", TurnStatus.ESCALATED: "no answer"}
_NO_ANSWER = "This has no answer: it was stopped, or its answer was deleted."


class Trace(msgspec.Struct, frozen=True):
    """A figure of an answer, and where it is from."""

    text: str
    where: str


class Shown(msgspec.Struct, frozen=True):
    """One question and its answer."""

    question: str
    answer: str
    status: str = ""
    called: str = ""
    """The status, as it is put here."""
    means: str = ""
    traces: tuple[Trace, ...] = ()
    sources: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    confidence: str = ""
    ticket: str = ""
    turn: str = ""
    at: str = ""
    is_problem: bool = False


def show_exchange(exchange: Exchange) -> Shown:
    """A turn that is in the ledger."""
    at = say_time(exchange.at_us)
    question = exchange.question or "(deleted)"
    if exchange.result is None:
        return Shown(question, _NO_ANSWER, at=at, turn=exchange.turn, is_problem=True)
    return _show(question, exchange.result, at)


def show_work(work: Work) -> Shown:
    """A question that has just been worked on."""
    if work.result is None:
        return Shown(work.question, work.problem, is_problem=True)
    return _show(work.question, work.result, "")


def _show(question: str, result: TurnResult, at: str) -> Shown:
    traced = (claim for claim in result.claims if claim.how not in ("echo", "unsupported"))
    return Shown(
        question=question,
        answer=result.answer,
        status=result.status.value,
        called=_CALLED.get(result.status, result.status.value.replace("_", " ")),
        means=_MEANS.get(result.status, result.reason),
        traces=tuple(Trace(one.text, f"{one.source} {one.path.removeprefix('$.')} ({one.how})") for one in traced),
        sources=result.sources,
        gaps=result.gaps,
        confidence="" if result.confidence is None or not result.verified else f"{result.confidence:.2f}",
        ticket=result.ticket or "",
        turn=result.turn,
        at=at,
    )


def drop_running(shown: Sequence[Exchange], at_work: Work | None) -> list[Exchange]:
    """The turns that have ended: what is being worked on is shown as that."""
    return [one for one in shown if at_work is None or one.turn != at_work.turn]


def say_time(at_us: int) -> str:
    """A time as people read it."""
    return datetime.fromtimestamp(at_us / 1e6, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def is_address(source: str) -> bool:
    """Whether a source is something to click on."""
    return source.startswith(("http://", "https://"))
