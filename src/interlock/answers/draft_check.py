"""What is found out about a draft: its claims are traced, and its relevance is looked at.

Where there is much to read this happens off the event loop, so that other turns go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from interlock.answers.agent import Agent
from interlock.answers.citations import NumberedFact, number_facts, print_citations
from interlock.answers.grounding import Grounded, Source, default_vocabulary, ground_safely
from interlock.answers.grounding.meaning import ToolMeaning
from interlock.answers.history import History
from interlock.answers.relevance import is_irrelevant
from interlock.answers.staleness import asked_for, mark_stale
from interlock.answers.statements import EffectState, EffectStatement, check_safely, without_closing_line
from interlock.answers.statements.recorded import turn_records
from interlock.engine import EngineContext
from interlock.tools.long_texts import leave_loop, size_of
from interlock.values import Value


class CheckedDraft(Value, frozen=True):
    """What was found out about a draft."""

    grounded: Grounded = Grounded()
    irrelevant: bool = False
    """It rests on nothing that the tools returned."""
    statements: tuple[EffectStatement, ...] = ()
    """What it says of deeds, each with whether the records agree."""

    @property
    def disagreements(self) -> tuple[str, ...]:
        """What it says that the records contradict, with what they say."""
        return tuple(f"{item.text!r}, but {item.why}" for item in self.statements if not item.agrees)


def _meanings(ctx: EngineContext, history: History) -> Mapping[str, ToolMeaning]:
    """What the authors of all tools have said about their results."""
    return history.kept.meanings({name: binding.tool for name, binding in ctx.bindings.items()})


def facts_of(agent: Agent, history: History, given: Sequence[Source], ctx: EngineContext) -> tuple[NumberedFact, ...]:
    """The values that an answer may cite. What was given stands first, as it does not grow with the turn."""
    words, calls = agent.vocabulary or default_vocabulary(), (*history.calls, *history.below)
    sources = mark_stale((*given, *history.sources), calls, words.words)
    return number_facts(sources, words, ctx.limits.max_evidence_chars, _meanings(ctx, history), history.kept)


async def print_draft(
    draft: str, agent: Agent, history: History, given: Sequence[Source], ctx: EngineContext, *, question: str
) -> str:
    """A draft as it is read: with values in place of references to facts."""
    if "{f" not in draft or len(draft) > ctx.limits.max_draft_chars:
        return draft

    def print_all() -> str:
        return print_citations(draft, facts_of(agent, history, given, ctx), question, agent.vocabulary)

    return await leave_loop(len(draft) + size_of([source.value for source in history.sources]), print_all)


async def check_draft(
    draft: str, agent: Agent, history: History, sources: Sequence[Source], ctx: EngineContext, *, question: str
) -> CheckedDraft:
    """Hold a draft against what it may rest on: the sources, and the user's own words, which prove nothing."""

    if not draft:
        return CheckedDraft()
    known = {source.id for source in history.sources}
    given = tuple(source for source in sources if source.id not in known and not source.echo)
    records = replace(await turn_records(ctx, agent.tools, history), given=given)
    draft = without_closing_line(draft)  # that line is written from the records alone, and stands below what is checked

    def check() -> CheckedDraft:
        statements = check_safely(draft, records)
        if not agent.grounding:
            return CheckedDraft(statements=statements)
        words, calls = agent.vocabulary or default_vocabulary(), (*history.calls, *history.below)
        undone = {effect.record for effect in records.effects if effect.state is EffectState.UNDONE}
        current = mark_stale(sources, calls, words.words, undone)
        known = [*current, *asked_for(calls), Source("question", question, echo=True)]
        grounded = ground_safely(draft, known, words, ctx.limits, _meanings(ctx, history), history.kept)
        # A draft that was not read as a whole is sent back for that alone.
        irrelevant = not grounded.unchecked and is_irrelevant(draft, question, grounded, history, given, statements)
        return CheckedDraft(grounded, irrelevant, statements)

    return await leave_loop(len(draft) + len(question) + size_of([source.value for source in sources]), check)
