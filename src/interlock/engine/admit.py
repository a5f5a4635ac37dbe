"""ADMIT: contract, what the turn already knows, grants, clamps, and the rules that need no plan."""

from __future__ import annotations

import msgspec

from interlock.engine.stages import Admitted, Ended, Started, World, refused
from interlock.errors import StoreError
from interlock.policy import Facts, ToolRules, decide
from interlock.policy.conditions import ConditionError
from interlock.policy.decide import missing_grant, rewrite, unsayable
from interlock.ports import Query
from interlock.schema import Reading, Refusal, Tool, canonical, guard
from interlock.schema.inputs import Parsed
from interlock.values import Call, Content, Decision, Rewrite, Status, Stored, Trust, TurnView, Verdict

_ANSWERS = (Status.OK, Status.NO_DATA)


async def admit(world: World, call: Call, started: Started) -> Admitted | Ended:
    """The call as it may be prepared, or how it ended here."""
    tool = world.registry.get(call.tool)
    if tool is None:
        return _no_such_tool(world, call, started)
    try:
        parsed = tool.input.parse(call.arguments)
    except Refusal as refusal:
        return _bad_arguments(world, call, started, tool, refusal)
    rules = world.ruleset.rules(tool.name)
    digest = world.digest(canonical([tool.name, parsed.arguments]))
    view = TurnView()
    if call.turn is not None and (rules.needs_turn or world.repeats != "allow"):
        try:
            records = [record async for record in world.store.records(Query(turn=call.turn))]
            answered = await _repeated(world, call, started, tool, parsed, digest, records)
        except StoreError as error:
            reading = refused(Status.FAILED, "store_unavailable", str(error))
            return Ended(call=call, started=started, tool=tool, arguments=parsed.arguments, digest=digest, reading=reading)
        if answered is not None:
            return answered
        view = fold_turn(records)
    facts = Facts(call=call, arguments=parsed.arguments, grant=world.ruleset.grant(call.actor), turn=view)
    return _judge(world, started, tool, parsed, digest, rules, facts)


def fold_turn(records: list[Stored]) -> TurnView:
    """What a turn's records say to rules: how many calls, which tools answered, which answers are untrusted."""
    answered = [record for record in records if record.status == Status.OK]
    untrusted = [record.tool for record in answered if record.content().trust is Trust.UNTRUSTED]
    return TurnView(
        calls=len(records),
        tools=tuple(dict.fromkeys(record.tool for record in answered)),
        untrusted=tuple(dict.fromkeys(untrusted)),
    )


def _judge(
    world: World, started: Started, tool: Tool, parsed: Parsed, digest: str, rules: ToolRules, facts: Facts
) -> Admitted | Ended:
    call = facts.call
    missing = missing_grant(tool, facts.grant, call.mode)
    if missing is not None:
        verdict = Verdict(decision=Decision.DENY, rule="grant", policy_version=rules.version, reason=missing)
        return denied(call, started, tool, parsed, digest, verdict)
    rewrites: tuple[Rewrite, ...] = parsed.rewrites
    if rules.clamps:
        try:
            arguments, clamped = rewrite(rules, facts)
            if clamped:
                rewrites += clamped
                parsed = tool.input.parse(arguments)
                facts = msgspec.structs.replace(facts, arguments=parsed.arguments)
        except ConditionError as error:
            verdict = unsayable(rules, str(error).split(":", 1)[0], error)
            return denied(call, started, tool, parsed, digest, verdict)
        except Refusal as refusal:
            verdict = unsayable(rules, clamped[-1].rule, f"its rewrite does not fit the contract: {refusal}")
            return denied(call, started, tool, parsed, digest, verdict)
    found = decide(rules, facts, final=not rules.late)
    if found is not None and rewrites:
        found = msgspec.structs.replace(found, rewrites=rewrites)
    if found is not None and found.decision is Decision.DENY:
        return denied(call, started, tool, parsed, digest, found)
    kept = Parsed(parsed.bound, parsed.arguments, rewrites)
    return Admitted(
        call=call, started=started, tool=tool, parsed=kept, digest=digest, rules=rules, facts=facts, verdict=found
    )


def denied(
    call: Call, started: Started, tool: Tool, parsed: Parsed, digest: str, verdict: Verdict, error: str = "denied"
) -> Ended:
    """A call that a rule or a grant refuses."""
    return Ended(
        call=call,
        started=started,
        tool=tool,
        arguments=parsed.arguments,
        digest=digest,
        verdict=verdict,
        reading=refused(Status.DENIED, error, verdict.reason),
    )


def _no_such_tool(world: World, call: Call, started: Started) -> Ended:
    close = world.registry.nearest(call.tool)
    hints = tuple(f"there is a tool {name!r}" for name in close)
    tail = f"; the nearest are {', '.join(close)}" if close else ""
    verdict = Verdict(
        decision=Decision.DENY, rule="registry", policy_version="", reason=f"there is no tool {call.tool!r}{tail}"
    )
    arguments, digest = _raw_arguments(world, call)
    return Ended(
        call=call,
        started=started,
        arguments=arguments,
        digest=digest,
        verdict=verdict,
        reading=refused(Status.DENIED, "unknown_tool", verdict.reason, hints=hints),
    )


def _bad_arguments(world: World, call: Call, started: Started, tool: Tool, refusal: Refusal) -> Ended:
    reason = f"the arguments do not fit {tool.name!r}: {refusal}"
    verdict = Verdict(
        decision=Decision.DENY,
        rule="contract",
        policy_version=world.ruleset.rules(tool.name).version,
        reason=reason,
    )
    arguments, digest = _raw_arguments(world, call)
    return Ended(
        call=call,
        started=started,
        tool=tool,
        arguments=arguments,
        digest=digest,
        verdict=verdict,
        reading=refused(Status.DENIED, "invalid_arguments", reason, hints=refusal.problems),
    )


def _raw_arguments(world: World, call: Call) -> tuple[object, str | None]:
    """Arguments that passed no contract, as far as they can be written down at all."""
    try:
        guard(call.arguments)
        return call.arguments, world.digest(canonical([call.tool, call.arguments]))
    except Refusal as refusal:
        return {"unreadable": str(refusal)}, None


async def _repeated(  # noqa: PLR0913
    world: World,
    call: Call,
    started: Started,
    tool: Tool,
    parsed: Parsed,
    digest: str,
    records: list[Stored],
) -> Ended | None:
    """A redelivery is the same call; an identical call in the turn is answered from the record, or stopped."""
    for record in reversed(records):
        if record.kind != "call" or record.tool != tool.name or record.status not in _ANSWERS:
            continue
        content = record.content()
        if record.call == call.call_id and content.arguments_digest != digest:
            verdict = Verdict(
                decision=Decision.DENY,
                rule="call_id",
                policy_version="",
                reason=f"call id {call.call_id!r} was used in this turn for other arguments; use a new one",
            )
            return denied(call, started, tool, parsed, digest, verdict, "call_id_reused")
        if content.arguments_digest != digest:
            continue
        if world.repeats == "stop" and record.call != call.call_id:
            reason = f"the same call was made in this turn already (record {record.id}); use its result"
            verdict = Verdict(decision=Decision.DENY, rule="repeats", policy_version="", reason=reason)
            return denied(call, started, tool, parsed, digest, verdict, "repeated_call")
        return await _answered(world, call, started, tool, parsed, digest, (record, content))
    return None


async def _answered(  # noqa: PLR0913
    world: World,
    call: Call,
    started: Started,
    tool: Tool,
    parsed: Parsed,
    digest: str,
    found: tuple[Stored, Content],
) -> Ended | None:
    record, content = found
    value = content.value
    if content.payload:
        payload = await world.store.payload(record.id)
        if payload is None:
            return None  # the full result was deleted: a read is simply made again
        value = msgspec.json.decode(payload)["value"]
    reading = Reading(
        status=Status(record.status),
        value=value,
        text=canonical(value, max_bytes=2**62),
        summary=content.summary,
        snippets=content.snippets,
        metadata=content.metadata,
        confidence=content.result_confidence,
        sources=content.sources,
    )
    return Ended(
        call=call,
        started=started,
        tool=tool,
        arguments=parsed.arguments,
        digest=digest,
        verdict=content.verdict,
        reading=reading,
        repeats=record,
    )
