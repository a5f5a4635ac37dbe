"""Questions that go on from an earlier one: which call they ask for again, and with what.

By rule, and only where every word is understood: "and in spring?" is the last call with another season, and nothing
else. What is not understood is left as it is, and needs what it would need by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from msgspec.structs import replace

from interlock.answers.agent import Agent
from interlock.answers.asked import Asked
from interlock.answers.entities import Entities, bind
from interlock.answers.grounding import default_vocabulary
from interlock.answers.intents import Classified
from interlock.answers.requirements import AllOf, Need, any_of, leaves
from interlock.answers.sessions.closed_arguments import ClosedArgument, ToolArguments, arguments_of
from interlock.answers.sessions.context import EarlierCall, SessionContext
from interlock.answers.sessions.references import refer_back, settle_row
from interlock.answers.sessions.rows import named_row
from interlock.answers.sessions.settled import Settled, bind_settled
from interlock.answers.sessions.units import asked_units
from interlock.answers.sessions.utterance import Utterance, read_utterance, without_opening
from interlock.engine import ToolBinding
from interlock.tools import Tool
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
    units: tuple[str, ...] = ()
    """Those in which it was answered before."""


def follow(asked: Asked, context: SessionContext, agent: Agent, bindings: Mapping[str, ToolBinding]) -> Asked:
    """The question, with what the session settles of it; unchanged, where it settles nothing."""
    tools = {name: binding.tool for name, binding in bindings.items()}
    units = asked_units(asked.question, agent.vocabulary or default_vocabulary())
    found = _call_again(asked.question, context, agent, tools)
    if found is not None:
        # What is named is settled where it is sure; a name that fits several binds as it does in any question.
        named = bind(_need(agent, found.tool), Entities(asked.question, tools.values()), tools, agent.tools)
        classified = Classified(bind_settled(named, found.settled), by=SESSION, score=1.0)
        return replace(asked, classified=classified, settled=found.settled, units=units or found.units)
    asked = _choose_intent(replace(asked, units=units), context, agent, tools)
    if asked.settled:
        return asked
    settled = tuple(refer_back(asked, context, agent, tools))
    if not settled:
        return asked
    requirement = bind_settled(asked.classified.requirement, settled)
    before = context.meant[-1].units if context.meant else ()
    classified = replace(asked.classified, requirement=requirement)
    return replace(asked, classified=classified, settled=settled, units=units or before)


def _choose_intent(asked: Asked, context: SessionContext, agent: Agent, tools: Mapping[str, Tool]) -> Asked:
    """ "What about the second one?" where nothing was asked about such a thing before: what is asked for at all?

    Where one tool knows such things, that one; otherwise the question is bound to what it is about, and not clear.
    """
    if asked.classified.by != "default":
        return asked
    found: dict[str, Settled] = {}
    for need in (leaf for requirement in agent.requirements() for leaf in leaves(requirement)):
        tool = tools.get(need.tool)
        if tool is None or tool.effect is not Effect.READ or need.tool in found:
            continue
        arguments = arguments_of(tool, without_opening(asked.question))
        said = read_utterance(asked.question, arguments, agent.vocabulary or default_vocabulary(), {})
        settled = None if said.left or not said.is_short else settle_row(need.tool, said, context, arguments)
        if settled is not None:
            found[need.tool] = settled
    if not found:
        return asked
    settled_calls = tuple(found.values())
    requirement = bind_settled(any_of(*(_need(agent, name) for name in found)), settled_calls)
    if len(found) == 1:
        classified = Classified(bind_settled(_need(agent, next(iter(found))), settled_calls), by=SESSION, score=1.0)
        return replace(asked, classified=classified, settled=settled_calls)
    intents = tuple(i.name for i in agent.intents if any(leaf.tool in found for leaf in leaves(i.requirement)))
    return replace(asked, classified=Classified(requirement, intents, score=0.0), settled=settled_calls)


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
        values = None if said.is_contrast else _with_row(said, context, call, arguments)
        calls = [call] if values else _calls_beside(call, context)
        settled = None if values is None else [_settle(one, values, arguments) for one in calls]
        if settled and all(settled):
            return FollowUp(call.through or call.tool, tuple(one for some in settled for one in some or ()), call.units)
    return None


def _calls_beside(call: EarlierCall, context: SessionContext) -> list[EarlierCall]:
    """The calls of one tool in one turn: asked about two things, "and in pounds?" is about both."""
    calls = [c for c in context.meant if (c.turn, c.tool, c.through) == (call.turn, call.tool, call.through)]
    return calls if len(calls) <= _MOST_CALLS else [call]


def _last_calls(context: SessionContext, agent: Agent, tools: Mapping[str, Tool]) -> Iterator[EarlierCall]:
    """The tools that were called last, each with its last call: reads alone, as a change is asked for in full."""
    seen: list[str] = []
    for call in reversed(context.meant):
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
    row = named_row(said, context, arguments, call.arguments)
    return None if row is None or row[0] in said.values else {**said.values, row[0]: (row[1],)}


def _settle(
    call: EarlierCall, values: Mapping[str, tuple[str, ...]], arguments: ToolArguments
) -> tuple[Settled, ...] | None:
    """The calls that are asked for: what was named in place of what was, and everything else as it was."""
    had = arguments.things & call.arguments.keys()
    # A town after a question about one of its streets: that street, or all of them? Nobody knows.
    if had and any(name in arguments.things - had for name in values):
        return None
    before = {name: call.arguments.get(name) for name in (*arguments.closed, *sorted(had))}
    lists = {name: list(found) for name, found in values.items() if _takes_several(arguments, name)}
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
            if (name in had and name not in values)
            or (name in values and name not in arguments.closed)  # a row of a result
            or _is_known(item, arguments.closed.get(name))
        )
        made.append(Settled(tool=call.tool, arguments=own, remembered=remembered, binds=binds))
    return tuple(made)


def _is_known(value: Json, argument: ClosedArgument | None) -> bool:
    items = value if isinstance(value, list) else [value]
    return argument is not None and all(isinstance(item, str) and item in argument.values for item in items)


def _takes_several(arguments: ToolArguments, name: str) -> bool:
    return name in arguments.closed and arguments.closed[name].several
