"""What a model is given of a turn as values: for one that can only choose, that is all it goes by."""

from __future__ import annotations

from interlock.answers.agent import Agent
from interlock.answers.asked import Asked
from interlock.answers.grounding import default_vocabulary
from interlock.answers.requirements import Requirement, next_needs, sure_values
from interlock.answers.sessions.settled import find_settled
from interlock.answers.sessions.units import asked_units
from interlock.models.messages import Task, WorkTask


def make_task(agent: Agent, asked: Asked, missing: Requirement | None, work: WorkTask | None = None) -> Task:
    """What is known about the question, and of the call that is due next."""
    classified, needs = asked.classified, () if missing is None else next_needs(missing)
    settled = find_settled(needs[0], asked.settled) if needs else None
    return Task(
        question=asked.question,
        required=asked.required,
        needs=tuple(leaf.tool for leaf in needs),
        about=sure_values(needs[0]) if needs else (),
        intents=classified.intents,
        certainty=classified.score,
        abilities=tuple(intent.name for intent in agent.intents),
        said=asked.said,
        settled={} if settled is None else settled.arguments,
        remembered={} if settled is None else settled.remembered,
        units=asked.units or asked_units(asked.question, agent.vocabulary or default_vocabulary()),
        earlier_questions=asked.earlier_questions,
        work=work,
        vocabulary=agent.vocabulary,
    )
