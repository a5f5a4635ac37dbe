"""Questions that say what they ask for, and stand for what it is about by a word: it, she, the second one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from interlock.answers.agent import Agent
from interlock.answers.asked import Asked
from interlock.answers.grounding import default_vocabulary
from interlock.answers.requirements import leaves
from interlock.answers.sessions.closed_arguments import ToolArguments, arguments_of
from interlock.answers.sessions.context import SessionContext
from interlock.answers.sessions.rows import named_row, things_of
from interlock.answers.sessions.settled import Settled
from interlock.answers.sessions.utterance import Utterance, may_name_another, read_utterance, without_opening
from interlock.tools import Tool, normalize
from interlock.values import Json

_MOST_THINGS = 4
"""So many things may be meant at once."""


def refer_back(asked: Asked, context: SessionContext, agent: Agent, tools: Mapping[str, Tool]) -> Iterator[Settled]:
    """What the last call was about, for a question that says by itself what it asks for, and "it" or "and" besides."""
    vocabulary, question = agent.vocabulary or default_vocabulary(), asked.question
    words = _known_words(agent, tools)
    for name, about in {leaf.tool: leaf.about for leaf in leaves(asked.classified.requirement)}.items():
        # Behind an agent that is asked stand the tools that it called; which it will call now, it decides itself.
        behind = [call.tool for call in reversed(context.calls) if call.through == name and call.tool in tools]
        tool = tools.get(behind[0] if behind else name)
        if tool is None:
            continue
        arguments = arguments_of(tool, without_opening(question))
        said = read_utterance(question, arguments, vocabulary, {})
        things = {argument.name for argument in things_of(arguments)}
        named = things & {*said.values, *(argument for entity in about for argument, _value in entity.values)}
        if named:
            continue
        own = "" if behind else name
        if said.ordinal is not None or said.other:
            row = settle_row(own, said, context, arguments)
            yield from () if row is None else (row,)
        elif _goes_on(question, said, arguments, words):
            for taken in last_things(context, arguments, several=said.several):
                yield Settled(tool=own, arguments=dict(taken), binds=() if behind else tuple(taken))


def settle_row(tool: str, said: Utterance, context: SessionContext, arguments: ToolArguments) -> Settled | None:
    """A call about the row of the last list that a question names; `tool` empty: of whichever tool."""
    before = next(iter(last_things(context, arguments)), {})
    row = None if said.ordinal is None and not said.other else named_row(said, context, arguments, dict(before))
    return None if row is None else Settled(tool=tool, arguments=dict([row]), binds=(row[0],) if tool else ())


def last_things(
    context: SessionContext, arguments: ToolArguments, *, several: bool = False
) -> tuple[dict[str, str], ...]:
    """What the last call which named a thing was about, as far as this tool knows it; if several, its whole turn."""
    waiting = _things_in(context.spoken_of, arguments)
    if waiting:
        return (waiting,)
    calls = [(call, things) for call in reversed(context.meant) if (things := _things_in(call.arguments, arguments))]
    if not calls:
        return ()
    last = calls[0][0]
    if not several:
        return (calls[0][1],)
    if any(result.record > last.record for result in context.returned):
        return ()  # they are those of the list that came after it
    found = [things for call, things in reversed(calls) if call.turn == last.turn]
    return tuple(things for n, things in enumerate(found) if things not in found[:n])[-_MOST_THINGS:]


def _things_in(given: Mapping[str, Json], arguments: ToolArguments) -> dict[str, str]:
    return {
        argument.name: value
        for argument in things_of(arguments)
        if isinstance(value := given.get(argument.name), str) and value in argument.values
    }


def _goes_on(question: str, said: Utterance, arguments: ToolArguments, known: frozenset[str]) -> bool:
    if said.is_contrast:
        return False
    left = tuple(word for word in said.left if word not in known)
    if may_name_another(question, said.left, arguments):
        return False
    # Without "it" every word has to be known: otherwise one of them may name something else.
    return said.refers or (said.opens and not left)


def _known_words(agent: Agent, tools: Mapping[str, Tool]) -> frozenset[str]:
    """The words that the agent's own field has, which name none of its things."""
    texts: list[str] = [word for intent in agent.intents for word in intent.keywords]
    own: Sequence[Tool] = [tools[name] for name in agent.tools if name in tools]
    texts += [
        f"{tool.name} {tool.description} {' '.join(tool.manifest()['parameters'].get('properties', ()))}"
        for tool in own
    ]
    return frozenset(word for text in texts for word in normalize(text).split())
