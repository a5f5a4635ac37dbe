"""Questions that go on from an earlier one: which call they ask for again, and with what.

By rule, and only where every word is understood: "and in spring?" is the last call with another season, and nothing
else. What is not understood is left as it is, and needs what it would need by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from interlock.answers.agent import Agent
from interlock.answers.asked import Asked
from interlock.answers.entities import Entities, bind
from interlock.answers.grounding import default_vocabulary
from interlock.answers.intents import Classified
from interlock.answers.requirements import AllOf, Need, leaves
from interlock.answers.sessions.closed_arguments import ClosedArgument, ToolArguments, arguments_of
from interlock.answers.sessions.context import EarlierCall, SessionContext
from interlock.answers.sessions.settled import Settled, bind_settled
from interlock.answers.sessions.utterance import Utterance, may_name_another, read_utterance, without_opening
from interlock.engine import ToolBinding
from interlock.tools import Tool, normalize
from interlock.values import Effect, Json, Value

SESSION = "session"
"""What recognised a question that goes on from an earlier one."""
_MOST_TOOLS = 3
"""So many of the tools that were called last are held against a question."""
_MOST_CALLS = 4
"""So many things may be named at once."""


class FollowUp(Value, frozen=True):
    """How a question goes on."""

    tool: str
    """The tool of the agent's that is needed: itself, or the agent that it asked."""
    settled: tuple[Settled, ...]


def follow(asked: Asked, context: SessionContext, agent: Agent, bindings: Mapping[str, ToolBinding]) -> Asked:
    """The question, with what the session settles of it; unchanged, where it settles nothing."""
    tools = {name: binding.tool for name, binding in bindings.items()}
    found = _call_again(asked.question, context, agent, tools)
    if found is not None:
        # What is named is settled where it is sure; a name that fits several binds as it does in any question.
        named = bind(_need(agent, found.tool), Entities(asked.question, tools.values()), tools, agent.tools)
        classified = Classified(bind_settled(named, found.settled), by=SESSION, score=1.0)
        return replace(asked, classified=classified, settled=found.settled)
    settled = tuple(_refer_back(asked, context, agent, tools))
    if not settled:
        return asked
    requirement = bind_settled(asked.classified.requirement, settled)
    return replace(asked, classified=replace(asked.classified, requirement=requirement), settled=settled)


def settle_child(parent: Asked, asked: Asked, agent: Agent, bindings: Mapping[str, ToolBinding]) -> Asked:
    """A question that is passed on to another agent, with what is settled about the calls of its tools."""
    settled = tuple(item for item in parent.settled if item.tool in agent.tools)
    if not settled:
        return _settle_things(parent, asked, bindings)
    needs = [bind_settled(_need(agent, tool), settled) for tool in dict.fromkeys(item.tool for item in settled)]
    requirement = needs[0] if len(needs) == 1 else AllOf(parts=tuple(needs))
    return replace(asked, classified=Classified(requirement, by=SESSION, score=1.0), settled=settled)


def _settle_things(parent: Asked, asked: Asked, bindings: Mapping[str, ToolBinding]) -> Asked:
    """What "it" was for whoever passes a question on, for the tools that the answer of the other agent needs."""
    things = {name: value for item in parent.settled if not item.tool for name, value in item.arguments.items()}
    settled = []
    for tool in dict.fromkeys(leaf.tool for leaf in leaves(asked.classified.requirement)) if things else ():
        closed = arguments_of(bindings[tool].tool, "").closed if tool in bindings else {}
        own = {name: value for name, value in things.items() if name in closed and value in closed[name].values}
        if own:
            settled.append(Settled(tool=tool, arguments=own, binds=tuple(own)))
    if not settled:
        return asked
    requirement = bind_settled(asked.classified.requirement, settled)
    classified = replace(asked.classified, requirement=requirement)
    return replace(asked, classified=classified, settled=tuple(settled))


def named_values(
    question: str, asked: Asked, context: SessionContext, agent: Agent, bindings: Mapping[str, ToolBinding]
) -> dict[str, Collection[str]]:
    """For each argument the values that a question speaks of; nothing, where it compares."""
    named: dict[str, set[str]] = {}
    for call in {call.tool: call for call in context.calls}.values():
        if call.tool in bindings:
            arguments = arguments_of(bindings[call.tool].tool, question)
            said = read_utterance(question, arguments, agent.vocabulary or default_vocabulary(), {})
            if said.compares:
                return {}
            for name, values in said.values.items():
                named.setdefault(name, set()).update(values)
    for settled in asked.settled:
        for name, value in settled.arguments.items():
            if isinstance(value, str):
                named.setdefault(name, set()).add(value)
    return dict(named)


def _need(agent: Agent, tool: str) -> Need:
    """A call of the tool, as the agent needs it elsewhere: nothing on file may be an answer too."""
    known = [leaf for requirement in agent.requirements() for leaf in leaves(requirement) if leaf.tool == tool]
    return Need(tool=tool, no_data=any(leaf.no_data for leaf in known))


def _call_again(question: str, context: SessionContext, agent: Agent, tools: Mapping[str, Tool]) -> FollowUp | None:
    """The last call with other values, where the question says nothing but these."""
    vocabulary = agent.vocabulary or default_vocabulary()
    for call in _last_calls(context, agent, tools):
        arguments = arguments_of(tools[call.tool], without_opening(question))
        said = read_utterance(question, arguments, vocabulary, call.arguments)
        if said.left or not said.is_short or not (said.says_something or (said.opens and said.is_reference)):
            continue
        values = _with_row(said, context, call, arguments)
        settled = None if values is None else _settle(call, values, arguments)
        if settled:
            return FollowUp(call.through or call.tool, settled)
    return None


def _last_calls(context: SessionContext, agent: Agent, tools: Mapping[str, Tool]) -> Iterator[EarlierCall]:
    """The tools that were called last, each with its last call: reads alone, as a change is asked for in full."""
    seen: list[str] = []
    for call in reversed(context.calls):
        tool = tools.get(call.tool)
        if tool is None or tool.effect is not Effect.READ or call.tool in seen or len(seen) >= _MOST_TOOLS:
            continue
        # Behind an agent that was asked stands the call that it made, not the words it was asked with.
        if (call.through or call.tool) in agent.tools and not _was_passed_on(call, context):
            seen.append(call.tool)
            yield call


def _was_passed_on(call: EarlierCall, context: SessionContext) -> bool:
    return any(other.through == call.tool for other in context.calls)


def _with_row(
    said: Utterance, context: SessionContext, call: EarlierCall, arguments: ToolArguments
) -> dict[str, tuple[str, ...]] | None:
    """The values that were named, with what the second one or the other one is; None if that cannot be told."""
    if said.ordinal is None and not said.other:
        return dict(said.values)
    rows = [value for row in context.rows if (value := _row_value(row, arguments)) is not None]
    if len(rows) != len(context.rows):  # the third of five rows is another one if a row cannot be read
        return None
    if said.other:
        rows = [row for row in rows if call.arguments.get(row[0]) != row[1]]
        place = 0 if len(rows) == 1 else len(rows)
    else:
        place = said.ordinal if said.ordinal is not None else len(rows)
    if not -len(rows) <= place < len(rows):
        return None
    argument, chosen = rows[place]
    return None if argument in said.values else {**said.values, argument: (chosen,)}


def _row_value(row: Json, arguments: ToolArguments) -> tuple[str, str] | None:
    """The argument and value that a row of a result stands for."""
    fields = row if isinstance(row, dict) else {"": row}
    for argument in _things(arguments):
        if isinstance(fields.get(argument.name), str) and fields[argument.name] in argument.values:
            return argument.name, fields[argument.name]
    names = arguments.names()
    texts = [fields[key] for key in ("id", "name", "") if isinstance(fields.get(key), str)]
    found = {
        item for text in texts for item in names.get(normalize(text), ()) if not arguments.closed[item[0]].is_choice
    }
    return found.pop() if len(found) == 1 else None


def _things(arguments: ToolArguments) -> list[ClosedArgument]:
    """The arguments that name a thing, and are no choice of the contract's."""
    return [argument for argument in arguments.closed.values() if not argument.is_choice]


def _settle(
    call: EarlierCall, values: Mapping[str, tuple[str, ...]], arguments: ToolArguments
) -> tuple[Settled, ...] | None:
    """The calls that are asked for: what was named in place of what was, and everything else as it was."""
    had = arguments.things & call.arguments.keys()
    # A town after a question about one of its streets: that street, or all of them? Nobody knows.
    if had and any(name in arguments.things - had for name in values):
        return None
    before = {name: call.arguments.get(name) for name in (*arguments.closed, *sorted(had))}
    lists = {name: list(found) for name, found in values.items() if arguments.closed[name].several}
    single = {name: found for name, found in values.items() if name not in lists}
    several = [name for name, found in single.items() if len(found) > 1]
    if len(several) > 1 or any(len(found) > _MOST_CALLS for found in single.values()):
        return None
    remembered = {name: value for name, value in call.arguments.items() if name not in before}
    varied = several[0] if several else next(iter(single), "")
    made = []
    for value in single.get(varied, (None,)):
        own: dict[str, Json] = {**before, **lists, **{name: found[0] for name, found in single.items()}}
        if varied:
            own[varied] = value
        # Words that fit several are the tool's to ask about; bound by them, nothing could meet the requirement.
        binds = tuple(
            name
            for name, item in own.items()
            if (name in had and name not in values) or _is_known(item, arguments.closed.get(name))
        )
        made.append(Settled(tool=call.tool, arguments=own, remembered=remembered, binds=binds))
    return tuple(made)


def _is_known(value: Json, argument: ClosedArgument | None) -> bool:
    items = value if isinstance(value, list) else [value]
    return argument is not None and all(isinstance(item, str) and item in argument.values for item in items)


def _refer_back(asked: Asked, context: SessionContext, agent: Agent, tools: Mapping[str, Tool]) -> Iterator[Settled]:
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
        taken = _last_things(context, arguments)
        things = {argument.name for argument in _things(arguments)}
        named = things & {*said.values, *(argument for entity in about for argument, _value in entity.values)}
        if taken and not named and _goes_on(question, said, arguments, words):
            yield Settled(tool="" if behind else name, arguments=taken, binds=() if behind else tuple(taken))


def _last_things(context: SessionContext, arguments: ToolArguments) -> dict[str, str]:
    """The things that the last call which named any was about, as far as this tool knows them."""
    for call in reversed(context.calls):
        found = {
            argument.name: value
            for argument in _things(arguments)
            if isinstance(value := call.arguments.get(argument.name), str) and value in argument.values
        }
        if found:
            return found
    return {}


def _goes_on(question: str, said: Utterance, arguments: ToolArguments, known: frozenset[str]) -> bool:
    # A place in a list that could not be found there names something else than what was spoken of last.
    if said.ordinal is not None or said.other:
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
