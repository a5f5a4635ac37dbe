"""ADMIT: contract, what the turn already knows, grants, clamps, and the rules that need no plan. Pure."""

from __future__ import annotations

import msgspec

from interlock.canonical import WHATEVER, Refusal, canonical
from interlock.changes import Expected
from interlock.engine.context import Accepted, Admitted, Ended, EngineContext, Repeated, Started, ToolBinding, refused
from interlock.policy import Facts, ToolRules, decide
from interlock.policy.conditions import ConditionError
from interlock.policy.decide import clamp, missing_grant, rule_error
from interlock.reasons import Reason
from interlock.records import Content, Stored
from interlock.state import Halted, halt_message
from interlock.tools import Parsed, Tool, Unclear, resolve
from interlock.values import Call, Decision, Effect, Json, Rewrite, Status, Trust, TurnView, Verdict

_ANSWERS = (Status.OK, Status.NO_DATA)
_NO_TURN = TurnView()


def accept(
    ctx: EngineContext, call: Call, started: Started, turn: list[Stored] | None, *, look_up: bool = True
) -> Accepted | Admitted | Repeated | Ended:
    """The call as it fits contract and grant, or how it ended here; `turn` is what its turn has recorded so far."""
    binding = ctx.bindings.get(call.tool)
    if binding is None:
        return _no_such_tool(ctx, call, started)
    tool, rules = binding.tool, binding.rules
    if call.offered and call.tool not in call.offered:
        return _not_offered(call, started, binding)
    given: Json = call.arguments
    meant: tuple[Rewrite, ...] = ()
    try:
        if tool.known_values:
            known = resolve(tool.known_values, given)
            if isinstance(known, Unclear):
                return _unclear(call, started, binding, known)
            given, meant = known
        parsed = tool.input.parse(given)
    except Refusal as refusal:
        return _bad_arguments(call, started, tool, rules, refusal)
    except Exception as error:  # noqa: BLE001 - a validator of the tool's own that fails refuses the arguments
        return _bad_arguments(call, started, tool, rules, Refusal(f"its validator failed ({type(error).__name__})"))
    if meant:
        parsed = msgspec.structs.replace(parsed, rewrites=meant + parsed.rewrites)
    if tool.operator and call.undoes is None:
        reason = f"{tool.name!r} is for undo alone; use interlock undo"
        return _bad_arguments(call, started, tool, rules, Refusal(reason))
    halt = ctx.halts.stops(call) if ctx.halts.active else None
    if halt is not None:
        return _halted(call, started, binding, parsed, halt)
    grant = ctx.ruleset.grant(call.actor)
    facts = Facts(call, parsed.arguments, grant, _NO_TURN if turn is None else fold_turn(turn))
    if not tool.capabilities <= grant.capabilities or call.mode not in grant.modes:
        reason = missing_grant(tool, grant, call.mode) or "not granted"
        return denied_by(facts, started, tool, deny("grant", reason, rules.version))
    if turn is not None and look_up:
        found = _seen_before(ctx, facts, started, tool, turn)
        if found is not None:
            return found
    if binding.planner is not None:  # its claim is looked up before the rules are asked
        return Accepted(facts, started, binding, parsed)
    return admit(ctx, facts, started, binding, parsed)


def admit(
    ctx: EngineContext,
    facts: Facts,
    started: Started,
    binding: ToolBinding,
    parsed: Parsed,
    claim: Expected | None = None,
) -> Admitted | Ended:
    """The call after the clamps, if no rule that needs no plan denies it."""
    tool, rules, asked = binding.tool, binding.rules, None
    if rules.clamps:
        before = facts.arguments
        try:
            parsed, facts = clamp(rules, tool, parsed, facts)
        except ConditionError as error:
            return denied_by(facts, started, tool, rule_error(rules, error.rule, error))
        asked = before if facts.arguments != before else None
    verdict = decide(rules, facts, final=not rules.late)
    if verdict is not None:
        if parsed.rewrites:
            verdict = msgspec.structs.replace(verdict, rewrites=parsed.rewrites)
        if verdict.decision is Decision.DENY:
            return denied_by(facts, started, tool, verdict)
    return Admitted(facts, started, binding, parsed, verdict, asked, claim)


def fold_turn(records: list[Stored]) -> TurnView:
    """What a turn's records say to rules: how many calls, which tools answered, which brought untrusted text.

    Whatever an untrusted tool says taints the turn: its answer, but also its error or its "nothing found".
    """
    ran = [(record, record.content()) for record in records if record.kind == "call"]
    untrusted = [record.tool for record, content in ran if content.trust is Trust.UNTRUSTED and content.attempts]
    return TurnView(
        calls=len(ran),
        tools=tuple(dict.fromkeys(record.tool for record, _content in ran if record.status == Status.OK)),
        untrusted=tuple(dict.fromkeys(untrusted)),
        planned=tuple((record.id, content.keys) for record, content in ran if record.status == Status.PLANNED),
    )


def denied_by(facts: Facts, started: Started, tool: Tool, verdict: Verdict, reason: Reason = Reason.DENIED) -> Ended:
    """A call that is refused, by a rule or by something that is not one."""
    return Ended(
        call=facts.call,
        started=started,
        tool=tool,
        arguments=facts.arguments,
        verdict=verdict,
        reading=refused(Status.DENIED, reason, verdict.reason),
    )


def _halted(call: Call, started: Started, binding: ToolBinding, parsed: Parsed, halt: Halted) -> Ended:
    verdict = deny(f"halt:{halt.scope}", halt_message(halt), binding.rules.version)
    return Ended(
        call=call,
        started=started,
        tool=binding.tool,
        arguments=parsed.arguments,
        verdict=verdict,
        reading=refused(Status.DENIED, Reason.HALTED, verdict.reason),
    )


def deny(rule: str, reason: str, version: str = "") -> Verdict:
    """The verdict of something that is not a rule of the policy: the contract, a grant, the journal, the turn."""
    return Verdict(decision=Decision.DENY, rule=rule, policy_version=version, reason=reason)


def _no_such_tool(ctx: EngineContext, call: Call, started: Started) -> Ended:
    close = ctx.registry.nearest(call.tool)
    tail = f"; the nearest are {', '.join(close)}" if close else ""
    reason = f"there is no tool {call.tool!r}{tail}"
    return Ended(
        call=call,
        started=started,
        arguments=_as_far_as_possible(call.arguments),
        verdict=deny("registry", reason),
        reading=refused(Status.DENIED, Reason.UNKNOWN_TOOL, reason, hints=close),
    )


def _bad_arguments(call: Call, started: Started, tool: Tool, rules: ToolRules, refusal: Refusal) -> Ended:
    reason = f"the arguments do not fit {tool.name!r}: {refusal}"
    return Ended(
        call=call,
        started=started,
        tool=tool,
        arguments=_as_far_as_possible(call.arguments),
        verdict=deny("contract", reason, rules.version),
        reading=refused(
            Status.DENIED,
            Reason.INVALID_ARGUMENTS,
            reason,
            hints=tuple(map(str, refusal.problems)),
            fields=refusal.fields,
        ),
    )


def _not_offered(call: Call, started: Started, binding: ToolBinding) -> Ended:
    reason = f"{call.tool!r} is not offered in this turn; what is offered: {', '.join(call.offered)}"
    return Ended(
        call=call,
        started=started,
        tool=binding.tool,
        arguments=_as_far_as_possible(call.arguments),
        verdict=deny("offered", reason, binding.rules.version),
        reading=refused(Status.DENIED, Reason.NOT_OFFERED, reason, hints=call.offered),
    )


def _unclear(call: Call, started: Started, binding: ToolBinding, unclear: Unclear) -> Ended:
    """A name that fits several known values is a question for whoever asked; one that fits none is nothing on file."""
    verdict = deny("known_values", unclear.message, binding.rules.version)
    if unclear.several:
        reading = refused(Status.DENIED, Reason.AMBIGUOUS, unclear.message, hints=unclear.fits)
    else:
        reading = refused(Status.NO_DATA, Reason.NOT_FOUND, unclear.message, hints=unclear.names)
    arguments = _as_far_as_possible(call.arguments)
    return Ended(call=call, started=started, tool=binding.tool, arguments=arguments, verdict=verdict, reading=reading)


def _as_far_as_possible(arguments: Json) -> Json:
    """Arguments that passed no contract, if they can be written down at all."""
    try:
        canonical(arguments)
    except Refusal as refusal:
        return {"unreadable": str(refusal)}
    return arguments


def _seen_before(
    ctx: EngineContext, facts: Facts, started: Started, tool: Tool, turn: list[Stored]
) -> Repeated | Ended | None:
    """A redelivery is the same call; an identical call in the turn is answered from the record, or stopped.

    Only the actor's own records count: one actor's answer is not another's.
    """
    call, arguments = facts.call, facts.arguments
    for record in reversed(turn):
        if record.kind != "call" or record.status not in _ANSWERS or record.actor != call.actor:
            continue
        if call.replays:
            return None
        same_id = record.call == call.call_id
        reads = tool.effect is Effect.READ  # what is the same change is for its claim to say
        if not same_id and (ctx.repeats == "allow" or record.tool != tool.name or not reads):
            continue
        same = record.tool == tool.name and _same_call(ctx, record.content(), call, arguments)
        if same_id and not same:
            reason = f"call id {call.call_id!r} was used in this turn for another call; use a new one"
            return denied_by(facts, started, tool, deny("call_id", reason), Reason.CALL_ID_REUSED)
        if not same:
            continue
        if not reads:
            return None  # its claim has the answer, unless it was undone
        if ctx.repeats == "stop" and not same_id:
            reason = f"the same call was made in this turn already (record {record.id}); use its result"
            return denied_by(facts, started, tool, deny("repeats", reason), Reason.REPEATED_CALL)
        return Repeated(call=call, started=started, tool=tool, arguments=arguments, record=record)
    return None


def _same_call(ctx: EngineContext, content: Content, call: Call, arguments: Json) -> bool:
    """Same principal, same mode, same arguments as they were asked for, before any clamp."""
    if content.principal != call.principal or content.mode is not call.mode:
        return False
    digest = content.asked_digest or content.arguments_digest
    if digest is not None:
        return digest == ctx.digest(canonical(arguments, WHATEVER))
    return bool(content.arguments == arguments)
