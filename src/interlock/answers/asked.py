"""What a turn starts from, and what it says to a model whose draft cannot leave."""

from __future__ import annotations

from interlock.answers.grounding import Source
from interlock.answers.history import History
from interlock.answers.intents import Classified
from interlock.answers.requirements import AllOf, AnyOf, Need, Requirement, leaves
from interlock.answers.sessions.context import EarlierCall, SessionPlace
from interlock.answers.sessions.settled import Settled
from interlock.answers.wishes import Withheld
from interlock.answers.workflows import Workflow
from interlock.config import TextLimits
from interlock.errors import ConfigError
from interlock.models.messages import Proposal
from interlock.values import Mode, Value
from interlock.wrong_values import require_all, require_kind


def question_problem(question: str, limits: TextLimits) -> str:
    """Why a question opens no turn, in a sentence; empty if it does. Looked at before anything is done with it."""
    if len(question) <= limits.max_question_chars:
        return ""
    return (
        f"the question has {len(question):,} characters, and at most {limits.max_question_chars:,} are read"
        " (max_question_chars); ask a shorter one, and give long texts as evidence (given=)"
    )


def refuse_long_question(question: str, limits: TextLimits) -> None:
    """The same as an error, for a caller who can shorten it."""
    require_kind("the question", question, str, "a text")
    if problem := question_problem(question, limits):
        raise ConfigError(problem)


def require_draft(draft: object) -> None:
    """Refuse what is no answer of a model's."""
    require_kind("a draft", draft, str | None, "a text, or None where the model gave none")


def require_proposals(proposals: object) -> None:
    """Refuse one call that stands alone, or what is no call."""
    require_all("what propose takes", proposals, Proposal, "the calls of one reply, [Proposal(…), …]")


class Again(Value, frozen=True):
    """The draft cannot leave: what to tell the model, and the one tool that it may call if it is forced."""

    prompt: str
    tool: str | None = None
    stays: bool = False
    """The draft was a plan, or talk in its place, and stays in the conversation."""


class ModelState(Value, frozen=True):
    """What is known of the model beside its draft."""

    blocked: str = ""
    """Why its provider refused."""
    final: bool = False
    """It has nothing better to say."""
    no_reply: str = ""
    """Why it failed."""
    declines: bool = False
    """Its draft says why nothing of what was found answers the question."""


class Carried(Value, frozen=True):
    """What the answer to a question needs that another agent was asked first and has handed over."""

    turn: str | None
    """That agent's turn; None if it has none, as the question went past it."""
    requirement: Requirement


class UserReply(Value, frozen=True):
    """What somebody has said to a question that a turn had asked."""

    text: str
    settled: tuple[Settled, ...] = ()
    intents: tuple[str, ...] = ()
    requires: Need | AllOf | AnyOf | None = None
    """What the answer needs, where the reply says what is wanted at all."""


class Asked(Value, frozen=True):
    """What a turn starts from."""

    id: str
    question: str
    classified: Classified
    principal: str
    parent: str | None = None
    run: str | None = None
    on_behalf_of: str | None = None
    mode: Mode | None = None
    given: tuple[Source | int, ...] = ()
    """Earlier records, chunks of memory, earlier words of the user: what the answer may rest on beside the results."""
    workflow: Workflow | None = None
    before: History | None = None
    """What had happened when it was left, for a turn that is reopened."""
    resumes: bool = True
    """Whether a turn that is reopened makes the calls that were approved meanwhile, when it is entered."""
    at_most_s: float = float("inf")
    """What is left of the time of the turn that delegates."""
    root_turn: str | None = None
    """The outermost turn, whose budget this one spends; None: itself."""
    user_words: str | None = None
    """What the user said, where the question is a model's own wording of it; None: the question itself."""
    carried: Carried | None = None
    """What is needed beside what this agent's own intents say."""
    session: SessionPlace | None = None
    """The conversation that it is a turn of."""
    earlier: tuple[EarlierCall, ...] = ()
    """What was called in the session before."""
    earlier_turns: tuple[str, ...] = ()
    """The turns in which that was."""
    earlier_questions: tuple[str, ...] = ()
    """What the user has said in the last of them, the last one last."""
    settled: tuple[Settled, ...] = ()
    """What the conversation has settled about the calls that are needed."""
    said: tuple[str, ...] = ()
    """What was said to the questions that this turn has asked."""
    reply: UserReply | None = None
    """The last of these, where the turn is gone on with by it."""
    withheld: tuple[Withheld, ...] = ()
    """The tools that may not be called, as whoever opens the turn says."""
    units: tuple[str, ...] = ()
    """The units that are asked for, here or in the turn of the session that this one goes on from."""

    @property
    def words(self) -> str:
        """All that the user has said: an answer may repeat it, but not what a model has put into words for another."""
        said = "\n".join((self.question if self.user_words is None else self.user_words, *self.said))
        return "\n".join((said, *(unit for unit in self.units if unit not in said)))

    def child(self, turn: str, question: str, classified: Classified) -> Asked:
        """What another agent is asked in this turn: by the same, for the same, in the same mode."""
        return Asked(
            id=turn,
            question=question,
            classified=classified,
            principal=self.principal,
            parent=self.id,
            run=self.run,
            on_behalf_of=self.on_behalf_of,
            mode=self.mode,
            given=self.given,
            user_words=self.words,
        )

    @property
    def required(self) -> bool:
        """Whether the answer needs a tool, of this agent or of the one that handed the question over."""
        above = () if self.carried is None else leaves(self.carried.requirement)
        return bool(above or leaves(self.classified.requirement))
