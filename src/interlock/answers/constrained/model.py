"""`ConstrainedModel`: a model that wraps one too small to follow instructions, and leaves it nothing to do but choose.

The call that the turn needs is made for it, under a grammar in which ids and enums are known values and free texts are
spans of the question; its answer is a choice of statements, each true as it stands. To the turn it is a model like any
other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from interlock.answers.constrained.argument_extraction import extract_arguments
from interlock.answers.constrained.fact_sentences import fact_sentences, in_units
from interlock.answers.constrained.grammar import answer_grammar, call_grammar
from interlock.answers.constrained.questions import open_question
from interlock.answers.grounding import Vocabulary, default_vocabulary
from interlock.models.messages import Message, Model, Proposal, Reply, Request, Task, ToolCard
from interlock.tools.long_texts import leave_loop
from interlock.values import Json

# Enough for one call or a few statements; what is cut off is left out or refused, never finished for the model.
_CHOICE_TOKENS = 160
_TALK_TOKENS = 48
_MOST_LEAD = 400
_ANSWER = "Answer the question in one or two short sentences with the facts that are given, and nothing else."


_PART = re.compile(r"[^?;\n]*[^?;\n\s][^?;\n]*\??")


class ConstrainedModel:
    """Calls and answers by choice alone; conversation is the inner model's own."""

    instructable = False

    def __init__(self, inner: Model) -> None:
        self.name = inner.name
        self._inner = inner

    async def reply(self, request: Request) -> Reply:
        """The call that is due, a question that comes first, or an answer made of facts."""
        task, results = request.task, _results(_of_this_turn(request))
        if task is not None and task.work is not None and task.work.plan:
            return Reply(plan_of(task.question))
        wanted = request.force or _next_need(request)
        card = next((card for card in request.tools if card.name == wanted), None)
        if card is not None:
            if task is not None and any(m.tool == wanted for m in results if m.result["status"] != "ok"):
                return Reply(final=True)  # it was tried; the same question makes the same call
            return await self._call(request, card)
        # Without a task nobody knows what is required; it can only talk, and the turn checks that.
        if task is None:
            return await self._talk(request)
        if not task.required:
            return Reply(final=True)  # what is said then is fixed, and the turn says it
        return await self._answer(request, [m for m in results if m.result["status"] == "ok"])

    async def close(self) -> None:
        await self._inner.close()

    async def _call(self, request: Request, card: ToolCard) -> Reply:
        task, given = request.task, dict[str, tuple[Json, ...]]()
        if task is not None:
            words = _vocabulary(task)
            given = await leave_loop(len(task.question), extract_arguments, card, task.question, words)
            given |= _still_missing(task, card, given)
            given |= {name: () if value is None else (value,) for name, value in task.settled.items()}
            question = await leave_loop(len(task.question), open_question, request, task, card, given, words)
            if question.text:
                return Reply(question=question.text, asks_for=question.fields)
            given |= {name: (value,) for name, value in task.remembered.items() if not given.get(name)}
        said = " ".join(message.text for message in request.messages if message.role == "user")
        asked = Request(
            instructions=f"Write the arguments of {card.name} as JSON. {card.description.strip().splitlines()[0]}",
            messages=request.messages,
            grammar=call_grammar(card.parameters, given, said),
            max_tokens=_CHOICE_TOKENS,
            temperature=0.0,
        )
        reply = await self._inner.reply(asked)
        return Reply(proposals=(Proposal(card.name, _arguments(reply.text)),), usage=reply.usage)

    async def _answer(self, request: Request, results: Sequence[Message]) -> Reply:
        task = request.task
        in_unit = None if task is None else in_units(task.units, _vocabulary(task))
        leads, facts = fact_sentences([message.result for message in results], in_unit)
        lead = "; ".join(leads)
        if not facts:
            return Reply(f"{lead}." if lead else "", final=True)
        # What is said already need not be shown again; what is left to choose from is in the grammar.
        shown = [_show_message(message, lead) for message in request.messages]
        asked = Request(
            instructions=_ANSWER,
            messages=tuple(message for message in shown if message.text),
            grammar=answer_grammar(lead, facts),
            max_tokens=_CHOICE_TOKENS,
            temperature=0.0,
        )
        reply = await self._inner.reply(asked)
        said = "; ".join([*([lead] if lead else []), *_statements(reply.text)])
        return Reply(f"{said}.", usage=reply.usage, final=True)  # the same facts give the same choice at temperature 0

    async def _talk(self, request: Request) -> Reply:
        asked = Request(
            instructions=f"{request.instructions.strip()} Answer in one short friendly sentence.".strip(),
            messages=request.messages,
            max_tokens=min(request.max_tokens, _TALK_TOKENS),
            temperature=request.temperature,
        )
        reply = await self._inner.reply(asked)
        return Reply(reply.text, usage=reply.usage, final=True)


def plan_of(question: str) -> str:
    """A plan for a question, composed of its own parts: such a model writes none."""
    parts = [" ".join(part.rstrip("?").split()) for part in _PART.findall(question)]
    lines = [f"{number}. {part}?" for number, part in enumerate(dict.fromkeys(filter(None, parts)), 1)]
    return "\n".join(("<plan>", *lines, "</plan>"))


def constrain(model: Model) -> Model:
    """A model that a turn can work with: itself, if it can be told what to do or is wrapped already, else wrapped."""
    return model if model.instructable or isinstance(model, ConstrainedModel) else ConstrainedModel(model)


def _of_this_turn(request: Request) -> Sequence[Message]:
    """The messages from the last words of the user's on: before them stands what other turns of a session did."""
    if request.task is None:
        return request.messages
    words = (request.task.said or (request.task.question,))[-1].strip()
    begins = [n for n, m in enumerate(request.messages) if m.role == "user" and m.text.strip() == words]
    return request.messages[begins[-1] :] if begins else request.messages


def _results(messages: Sequence[Message]) -> list[Message]:
    return [message for message in messages if message.role == "tool" and "status" in message.result]


def _next_need(request: Request) -> str | None:
    offered = {card.name for card in request.tools}
    needs = () if request.task is None else request.task.needs
    return next((name for name in needs if name in offered), None)


def _still_missing(task: Task, card: ToolCard, given: Mapping[str, Sequence[Json]]) -> dict[str, tuple[Json, ...]]:
    """Of several things that the question names for one argument, the one that the next call has to be about.

    Also where none was found in its words, or only what they deny: "not the first, the second".
    """
    found: dict[str, tuple[Json, ...]] = {}
    for name, value in reversed(task.about):
        said, kind = given.get(name, ()), card.parameters.get("properties", {}).get(name, {})
        is_other = task.needs[:1] == (card.name,) and kind.get("type") == "string" and not said
        if is_other or (len(said) > 1 and value in said):
            found[name] = (value,)
    return found


def _vocabulary(task: Task) -> Vocabulary:
    return task.vocabulary if isinstance(task.vocabulary, Vocabulary) else default_vocabulary()


def _show_message(message: Message, lead: str) -> Message:
    if message.role != "tool":
        return Message(message.role, message.text)
    facts = lead[:_MOST_LEAD] if lead else "\n".join(fact_sentences([message.result])[1])
    return Message("user", f"Facts from {message.tool}:\n{facts}\nAnswer with these facts.")


def _statements(text: str) -> list[str]:
    """Statements that were chosen twice are said once; one that was cut off is left out."""
    # After a lead the grammar begins with the separator.
    whole = [part.strip() for part in text.removeprefix("; ").rstrip(".").split("; ")]
    return [part for part in dict.fromkeys(whole if text.endswith(".") else whole[:-1]) if part]


def _arguments(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:  # it was cut off
        return {"unreadable": text[:200]}
