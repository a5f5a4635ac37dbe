"""What a model that only chooses has to ask first, as it would not notice it by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlock.answers.constrained.unused_names import OpenQuestion, unknown_name_question
from interlock.answers.constrained.unused_values import unused_values
from interlock.answers.grounding import Vocabulary
from interlock.answers.intents.classify import CLEAR
from interlock.models.messages import Request, Task, ToolCard
from interlock.values import Json, name_some


def open_question(
    request: Request, task: Task, card: ToolCard, given: Mapping[str, Sequence[Json]], vocabulary: Vocabulary
) -> OpenQuestion:
    """That another tool may be meant, or that the call would not take up all of the question; empty if neither."""
    if task.intents and task.certainty < CLEAR:
        names = [name.replace("_", " ") for name in task.abilities]
        return OpenQuestion(f"I am not sure what you ask for. Is it {_either(names)}?")
    left = unused_values(card, request.tools, task.question, given, vocabulary)
    if not left:
        return unknown_name_question(card, request.tools, task.question, given, vocabulary)
    return OpenQuestion(
        f"what is {name_some(left)} for? I would call {card.name}, which has no place for it. Please say it in other"
        " words, one thing at a time, or ask without it"
    )


def _either(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
