"""ADMIT: contract, what the turn already knows, grants, clamps, and the rules that need no plan. Pure."""

from __future__ import annotations

import msgspec

from interlock.canonical import Refusal, arguments_bytes, canonical
from interlock.engine.context import Accepted, Admitted, Ended, EngineContext, Started, ToolBinding, refuse
from interlock.engine.turns import FoldedTurn
from interlock.policy import Facts, decide
from interlock.policy.conditions import ConditionError
from interlock.policy.decide import clamp, missing_grant, rule_error
from interlock.reasons import Reason
from interlock.state import Halted, halt_message
from interlock.tools import Parsed, Tool, Unclear, misspelled_fields, redactor_of, resolve
from interlock.tools.inputs import MOST_UNKNOWN
from interlock.tools.redacted_fields import property_names
from interlock.tools.tracebacks import log_traceback
from interlock.values import Call, Decision, Json, Rewrite, Status, TurnView, Verdict, clean

_NO_TURN = TurnView()
_DENY = Decision.DENY  # looked up once: on Python 3.11 a member of an enum costs as much as a call


def accept(ctx: EngineContext, call: Call, started: Started, turn: FoldedTurn | None) -> Accepted | Ended:
    """The call as it fits contract and grant, or how it ended here; `turn` is what its turn has recorded so far."""
    binding = ctx.bindings.get(call.tool)
    if binding is None:
        return _end_no_such_tool(ctx, call, started)
    if call.withheld and call.tool in call.withheld:
        return _end_withheld(call, started, binding)
    if call.offered and call.tool not in call.offered:
        return _end_not_offered(call, started, binding)
    parsed = _parse(ctx, call, started, binding)
    if not isinstance(parsed, Parsed):
        return parsed
    # After the contract: who is halted should still learn that the arguments were wrong.
    halt = ctx.halts.stops(call) if ctx.halts.active else None
    if halt is not None:
        return _end_halted(call, started, binding, parsed, halt)
    tool, grant = binding.tool, ctx.ruleset.grant(call.actor)
    facts = Facts(call, parsed.arguments, grant, _NO_TURN if turn is None else turn.view)
    if not tool.capabilities <= grant.capabilities or call.mode not in grant.modes:
        reason = missing_grant(tool, grant, call.mode) or "not granted"
        return end_denied(facts, started, tool, deny("grant", reason, binding.rules.version))
    return Accepted(facts, started, binding, parsed, binding.planner is not None)


def _parse(ctx: EngineContext, call: Call, started: Started, binding: ToolBinding) -> Parsed | Ended:
    """The arguments as the contract takes them, with known values in place of what was said for them."""
    tool, given = binding.tool, call.arguments
    meant: tuple[Rewrite, ...] = ()
    try:
        if type(given) is dict and len(given) > tool.input.most_arguments:  # before any of them is looked at
            names = tool.input.schema["properties"]
            raise Refusal(f"there are {len(given):,} of them, and the tool takes {len(names):,}; give only those")
        if tool.known_values:
            arguments_bytes(given)  # names are held against others only if they can be written down
            known = resolve(tool.known_values, given, ctx.limits)
            if isinstance(known, Unclear):
                return _end_unclear(call, started, binding, known)
            given, meant = known
        parsed = tool.input.parse(given)
        if tool.operator and call.undoes is None:
            raise Refusal(f"{tool.name!r} is for undo alone; use interlock undo")
    except Refusal as refusal:
        return _end_bad_arguments(call, started, binding, refusal)
    except Exception as error:  # noqa: BLE001 - a validator of the tool's own that fails refuses the arguments
        slips = misspelled_fields(_as_far_as_possible(given), tool.redact, frozenset(property_names(tool.input.schema)))
        redactor = redactor_of(tool, call.arguments, given, also=slips)
        log_traceback(f"a validator of {tool.name!r}", error, redactor)
        return _end_bad_arguments(call, started, binding, Refusal(f"its validator failed ({type(error).__name__})"))
    return msgspec.structs.replace(parsed, rewrites=meant + parsed.rewrites) if meant else parsed


def admit(ctx: EngineContext, accepted: Accepted) -> Admitted | Ended:
    """The call after the clamps, if no rule that needs no plan denies it."""
    facts, started, binding, parsed = accepted.facts, accepted.started, accepted.binding, accepted.parsed
    tool, rules, asked = binding.tool, binding.rules, None
    if rules.clamps:
        before = facts.arguments
        try:
            parsed, facts = clamp(rules, tool, parsed, facts)
        except ConditionError as error:
            return end_denied(facts, started, tool, rule_error(rules, error.rule, error))
        asked = before if facts.arguments != before else None
    verdict = decide(rules, facts, final=not rules.late)
    if verdict is not None:
        if parsed.rewrites:
            verdict = msgspec.structs.replace(verdict, rewrites=parsed.rewrites)
        if verdict.decision is _DENY:
            return end_denied(facts, started, tool, verdict)
    return Admitted(facts, started, binding, parsed, verdict, asked, accepted.claim)


def end_denied(facts: Facts, started: Started, tool: Tool, verdict: Verdict, reason: Reason = Reason.DENIED) -> Ended:
    """A call that is refused, by a rule or by something that is not one."""
    return Ended(
        call=facts.call,
        started=started,
        tool=tool,
        arguments=facts.arguments,
        verdict=verdict,
        reading=refuse(Status.DENIED, reason, verdict.reason, hints=(verdict.instead,) if verdict.instead else ()),
    )


def _end_halted(call: Call, started: Started, binding: ToolBinding, parsed: Parsed, halt: Halted) -> Ended:
    verdict = deny(f"halt:{halt.scope}", halt_message(halt), binding.rules.version)
    return Ended(
        call=call,
        started=started,
        tool=binding.tool,
        arguments=parsed.arguments,
        verdict=verdict,
        reading=refuse(Status.DENIED, Reason.HALTED, verdict.reason),
    )


def deny(rule: str, reason: str, version: str = "") -> Verdict:
    """The verdict of something that is not a rule of the policy: the contract, a grant, the journal, the turn."""
    return Verdict(decision=Decision.DENY, rule=rule, policy_version=version, reason=clean(reason))


def _end_no_such_tool(ctx: EngineContext, call: Call, started: Started) -> Ended:
    close = ctx.registry.nearest(call.tool)
    tail = f"; the nearest are {', '.join(close)}" if close else ""
    if not ctx.bindings:
        tail = "; none are registered (commands find them by the setting tools, or --tools MODULE:NAME)"
    reason = f"there is no tool {call.tool!r}{tail}"
    return Ended(
        call=call,
        started=started,
        arguments=_as_far_as_possible(call.arguments),
        verdict=deny("registry", reason),
        reading=refuse(Status.DENIED, Reason.UNKNOWN_TOOL, reason, hints=close),
    )


def _end_bad_arguments(call: Call, started: Started, binding: ToolBinding, refusal: Refusal) -> Ended:
    tool = binding.tool
    reason = f"the arguments do not fit {tool.name!r}: {refusal}"
    return Ended(
        call=call,
        started=started,
        tool=tool,
        arguments=_as_far_as_possible(call.arguments),
        verdict=deny("contract", reason, binding.rules.version),
        reading=refuse(
            Status.DENIED,
            Reason.INVALID_ARGUMENTS,
            reason,
            hints=tuple(map(str, refusal.problems)),
            fields=refusal.fields,
        ),
    )


def _end_not_offered(call: Call, started: Started, binding: ToolBinding) -> Ended:
    reason = f"{call.tool!r} is not offered in this turn; what is offered: {', '.join(call.offered)}"
    return Ended(
        call=call,
        started=started,
        tool=binding.tool,
        arguments=_as_far_as_possible(call.arguments),
        verdict=deny("offered", reason, binding.rules.version),
        reading=refuse(Status.DENIED, Reason.NOT_OFFERED, reason, hints=call.offered),
    )


def _end_withheld(call: Call, started: Started, binding: ToolBinding) -> Ended:
    reason = f"{call.tool!r} is withheld in this turn: {call.withheld[call.tool]}"
    return Ended(
        call=call,
        started=started,
        tool=binding.tool,
        arguments=_as_far_as_possible(call.arguments),
        verdict=deny("withheld", reason, binding.rules.version),
        reading=refuse(Status.DENIED, Reason.WITHHELD, reason),
    )


def _end_unclear(call: Call, started: Started, binding: ToolBinding, unclear: Unclear) -> Ended:
    """A name that fits several known values is a question for whoever asked; one that fits none is nothing on file."""
    verdict = deny("known_values", unclear.message, binding.rules.version)
    if unclear.several:
        reading = refuse(Status.DENIED, Reason.AMBIGUOUS, unclear.message, hints=unclear.fits)
    else:
        reading = refuse(Status.NO_DATA, Reason.NOT_FOUND, unclear.message, hints=unclear.names)
    arguments = _as_far_as_possible(call.arguments)
    return Ended(
        call=call,
        started=started,
        tool=binding.tool,
        arguments=arguments,
        verdict=verdict,
        reading=reading,
        # Other values of a redacted argument are no more to be written down than its own.
        seen=({unclear.field: [*unclear.fits, *unclear.names]},),
    )


def _as_far_as_possible(arguments: Json) -> Json:
    """Arguments that passed no contract, if they can be written down at all; more than anybody looks at are counted.

    As plain JSON, whatever classes somebody has made it of: those may raise when they are gone through.
    """
    if isinstance(arguments, dict) and len(arguments) > MOST_UNKNOWN:
        return {"unreadable": f"{len(arguments):,} arguments, which are not kept"}
    try:
        return msgspec.json.decode(canonical(arguments))
    except Refusal as refusal:
        return {"unreadable": str(refusal)}
