"""What to do when an answer is proposed: a pure function of the turn's state, the same for every adapter."""

from __future__ import annotations

from enum import StrEnum

from interlock.answers.requirements import Need, Requirement, next_needs
from interlock.values import Value, name_some, shorten


class TurnOutcome(StrEnum):
    """How a turn ended: a closed set."""

    PASSED = "PASSED"
    RETRY_SUCCEEDED = "RETRY_SUCCEEDED"
    FORCED = "FORCED"
    PARTIAL = "PARTIAL"
    ASKED = "ASKED"
    WAITING = "WAITING"
    TOOL_FAILED = "TOOL_FAILED"
    ESCALATED = "ESCALATED"
    TIMEOUT = "TIMEOUT"
    BLOCKED = "BLOCKED"
    NO_REPLY = "NO_REPLY"
    SKIPPED_NO_REQUIREMENTS = "SKIPPED_NO_REQUIREMENTS"


class TurnState(Value, frozen=True):
    """Everything that the next step depends on, folded from the turn's records and the draft."""

    required: bool = True
    missing: Requirement | None = None
    failed: str = ""
    """Why what is missing cannot be had: its tools ran and failed."""
    refused: str = ""
    """Who has refused what is missing, and why: a person was asked about its call, or a rule forbids it."""
    empty: str = ""
    """Why what is missing brought nothing: its tools ran and found nothing on file."""
    ticket: str | None = None
    """A call of the turn waits for a person."""
    question: str = ""
    """What has to be asked before the missing call can be made."""
    lacks: str = ""
    """What the user did not say, and the missing call needs; asked if the model does not find it either."""
    blocked: str = ""
    """Why the provider refused."""
    no_reply: str = ""
    """Why the model gave none: it failed, and asking it again would bring the same."""
    declined: str = ""
    """Why nothing of what was found answers, as the model says it."""
    late: bool = False
    has_draft: bool = True
    has_results: bool = True
    """The tools have returned something that could be said in place of a draft."""
    unsupported: tuple[str, ...] = ()
    unchecked: str = ""
    """Why the draft could not be checked as a whole: it is over a limit."""
    disagreements: tuple[str, ...] = ()
    """What the draft says was done, waits or was refused, and the records contradict."""
    disputed: tuple[str, ...] = ()
    """Sentences that a judge does not find in the results."""
    irrelevant: bool = False
    """The draft rests on nothing that the tools returned."""
    retries: int = 0
    max_retries: int = 2
    corrected: bool = False
    forced: tuple[str, ...] = ()
    calls_left: int = 1
    """How many model calls may still be made."""
    final: bool = False
    """The model has nothing better to say: telling it what is missing would bring the same."""


class Pass(Value, frozen=True):
    """The draft may leave."""

    outcome: TurnOutcome


class Ask(Value, frozen=True):
    """The user has to say which of several is meant."""

    question: str


class Retry(Value, frozen=True):
    """The model is told what is missing or unsupported, and tries again."""

    missing: Requirement | None = None
    unsupported: tuple[str, ...] = ()
    unchecked: str = ""
    disagreements: tuple[str, ...] = ()
    irrelevant: bool = False
    disputed: tuple[str, ...] = ()


class Force(Value, frozen=True):
    """One model call that may only call this tool; then the model is free again."""

    need: Need


class Render(Value, frozen=True):
    """The results themselves leave in place of the draft, marked as such."""

    outcome: TurnOutcome
    reason: str


class Wait(Value, frozen=True):
    """A person decides about a call first."""

    ticket: str


class Stop(Value, frozen=True):
    """Nothing more can be done, and no person could help: the limitation is stated."""

    outcome: TurnOutcome
    reason: str
    nothing: bool = False
    """Nothing is on file: trying again would not help either."""
    refused: bool = False
    """A person or a rule has said no: nor would it here."""


class Escalate(Value, frozen=True):
    """A person verifies; the draft does not leave."""

    outcome: TurnOutcome
    reason: str


Step = Pass | Ask | Retry | Force | Render | Wait | Stop | Escalate


def next_step(state: TurnState) -> Step:
    """The one decision of a turn."""
    # What a provider refused for safety is not tried again in other words: a person looks at it.
    if state.blocked:
        return Escalate(TurnOutcome.BLOCKED, state.blocked)
    # Before anything else: a call that waits for a person is neither missing nor done.
    if state.ticket is not None:
        return Wait(state.ticket)
    if state.missing is not None:
        return _towards(state, state.missing)
    if state.question:
        return Ask(state.question)
    sound = not (state.unsupported or state.unchecked or state.disagreements or state.disputed)
    if state.declined and state.required:
        # What it says of what was found is held to the same: otherwise only that nothing was.
        why = state.declined if sound else "What was found does not answer it"
        return Stop(TurnOutcome.TOOL_FAILED, why, nothing=True)
    if state.has_draft and sound and not state.irrelevant:
        return Pass(_pass_outcome(state))
    if state.no_reply:
        return _without_reply(state)
    # One correction, not `max_retries`: what is required has succeeded, and its results can answer by themselves.
    if not state.corrected and not state.late and not state.final and state.calls_left > 0:
        irrelevant = state.irrelevant and sound
        return Retry(
            unsupported=state.unsupported,
            unchecked=state.unchecked,
            disagreements=state.disagreements,
            irrelevant=irrelevant,
            disputed=state.disputed,
        )
    # No ticket: the results are true whatever the model makes of them, so nobody has to look at them first.
    if state.has_results:
        return Render(_pass_outcome(state), _why_rendered(state))
    return Stop(TurnOutcome.NO_REPLY, _why_rendered(state))


def _without_reply(state: TurnState) -> Step:
    """What was required has succeeded, and the model has failed: the results answer, where there are any."""
    if state.has_results:
        return Render(_pass_outcome(state), state.no_reply)
    return Stop(TurnOutcome.NO_REPLY, state.no_reply)


def _hindrance(state: TurnState) -> Stop | None:
    """What asking the model again could not mend."""
    if state.refused:
        return Stop(TurnOutcome.TOOL_FAILED, state.refused, refused=True)
    # A tool that ran and failed is no fault of the model: asking it again would only repeat the failure.
    if state.failed:
        return Stop(TurnOutcome.TOOL_FAILED, state.failed)
    if state.late:
        return Stop(TurnOutcome.TIMEOUT, "the turn's time is up, and a required tool has not been called")
    return Stop(TurnOutcome.NO_REPLY, state.no_reply) if state.no_reply else None


def _towards(state: TurnState, missing: Requirement) -> Step:
    """Required tools have not succeeded yet."""
    # A person has to say which is meant: neither a retry nor a forced call could.
    if state.question:
        return Ask(state.question)
    hindered = _hindrance(state)
    if hindered is not None:
        return hindered
    if state.calls_left > 0:
        if state.retries < state.max_retries and not state.final:
            return Retry(missing=missing)
        if state.lacks:
            return Ask(state.lacks)
        # Each tool is forced once; with the bound on calls that is why every turn ends.
        unforced = next((leaf for leaf in next_needs(missing) if leaf.tool not in state.forced), None)
        if unforced is not None and not state.empty:  # nothing on file stays nothing, also by force
            return Force(unforced)
    if state.empty:
        return Stop(TurnOutcome.TOOL_FAILED, state.empty, nothing=True)
    if state.lacks:
        return Ask(state.lacks)
    # Not the draft: without its tool it comes from general knowledge, however good it reads.
    return Escalate(TurnOutcome.ESCALATED, "required tools did not succeed")


def _pass_outcome(state: TurnState) -> TurnOutcome:
    if not state.required:
        return TurnOutcome.SKIPPED_NO_REQUIREMENTS
    if state.forced:
        return TurnOutcome.FORCED
    return TurnOutcome.RETRY_SUCCEEDED if state.retries or state.corrected else TurnOutcome.PASSED


def _why_rendered(state: TurnState) -> str:
    if state.unsupported:
        tail = f"; {state.unchecked}" if state.unchecked else ""
        return f"nothing supports {', '.join(shorten(text) for text in state.unsupported[:5])}{tail}"
    if state.unchecked:
        return state.unchecked
    if state.disagreements:
        return f"the records do not agree: it said {name_some([shorten(text, 200) for text in state.disagreements], 3)}"
    if state.disputed:
        return f"the judge does not find in the results: {'; '.join(shorten(text) for text in state.disputed[:3])}"
    if state.irrelevant:
        return "the model's answer rested on nothing that the tools returned"
    return "the model gave no answer in time" if state.late else "the model gave no answer"
