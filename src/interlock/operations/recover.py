"""Settling what a dead process left behind: ask the tool's probe, compare the resource, or ask a person."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from interlock.changes import Unreadable, landed_by_snapshots, local_key, moved_keys, read_snapshots
from interlock.engine import EngineContext, probe, release_dead
from interlock.errors import NotAllowed, StoreError
from interlock.openings import claim_digest, ticket_digest
from interlock.operations.approvals import question_about, settle, settle_approved
from interlock.operations.key_states import show_moved
from interlock.operations.ledger_writer import LedgerEntry, LedgerWriter, record_with_payload
from interlock.records import Changed, Stored
from interlock.review import chained_record, stamp
from interlock.state import Claimed, ClaimState, Ticket, TicketKind, TicketState
from interlock.tools import Tool, redactor_of
from interlock.transitions import OpenTicket, RequireClaim, ResolveClaim, SettleTicket, Transition
from interlock.values import Context, Json, Plan


class _Finding(msgspec.Struct, frozen=True):
    """Whether an effect landed, as far as the world shows, and how that is known."""

    landed: bool | None
    how: str
    versions: tuple[str, ...] = ()
    """The versions at which it left its keys, where they are what was planned: what rests on it is held to them."""
    has_moved: bool = False
    """Whether some of its keys are not what they were: a part of it may have landed."""


class Recovered(msgspec.Struct, frozen=True):
    """One claim that was in doubt, and what became of it."""

    claim: str
    tool: str
    call: str
    keys: tuple[str, ...]
    state: str
    """done, failed, asked (a person has to say), or under_way (whoever makes it may be dead)."""
    how: str
    ticket: str | None = None
    arguments: Json = None
    """Those of the call as its intent has them, redacted; None where the ledger does not hold its intent."""
    begun_us: int = 0
    """When it was begun, by the store's clock."""
    until_us: int = 0
    """Of a change under way: when its lease ends, by that clock, unless its holder lives and renews it."""


def _build_recovered(
    claim: Claimed, state: str, how: str, ticket: str | None = None, about: _Intent | None = None
) -> Recovered:
    arguments = None if about is None else about.record.content().arguments
    return Recovered(
        claim.name, claim.tool, claim.call, claim.keys, state, how, ticket, arguments=arguments, begun_us=claim.at_us
    )


async def recover(ctx: EngineContext, writer: LedgerWriter) -> tuple[Recovered, ...]:
    """Settle every claim in doubt as far as the world shows; each is one commit with its record."""
    ctx.at("recover.read")
    found = []
    for claim in await ctx.store.unsettled_claims(await ctx.store.now_us(ctx.clock.now_us())):
        if claim.is_lock:
            await release_dead(ctx, claim.name)  # it changed nothing
            continue
        try:
            one = await _settle(ctx, writer, claim)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - a resource or probe is somebody else's; the others must be settled
            how = f"it cannot be settled: {type(error).__name__}: {error}"
            one = _build_recovered(claim, "asked", how)
        if one is not None:
            found.append(one)
    return tuple(found)


async def under_way(ctx: EngineContext) -> tuple[Recovered, ...]:
    """Changes whose leases still run: being made now, or left by one who died; which, shows when the lease is over."""
    ctx.at("recover.under_way")
    now_us = await ctx.store.now_us(ctx.clock.now_us())
    found = await ctx.store.unsettled_claims(_EVER_US)
    how = "its lease still runs: it is being made, or whoever made it has died; run it again when the lease is over"
    return tuple(
        msgspec.structs.replace(_build_recovered(claim, "under_way", how), until_us=claim.expires_us)
        for claim in found
        if claim.state is ClaimState.OPEN and claim.expires_us > now_us and not claim.is_lock
    )


async def _settle(ctx: EngineContext, writer: LedgerWriter, claim: Claimed) -> Recovered | None:
    begun = await _find_begun(ctx, claim)
    if isinstance(begun, str):  # by its row alone another tool's probe could be asked, or other people
        return _build_recovered(claim, "asked", begun)
    record, payload = await intent_of(ctx, claim)
    finding = await _look(ctx, claim, record, payload)
    landed, how = finding.landed, finding.how
    if landed is None:
        return await _find_answered(ctx, writer, claim, begun) or await _ask(ctx, writer, claim, begun, finding)
    state = (ClaimState.DONE if landed else ClaimState.FAILED).value
    what: dict[str, Json] = {"claim": claim.name, "state": state, "tool": claim.tool, "call": claim.call, "how": how}
    if finding.versions:
        what["versions"] = list(finding.versions)
    try:
        # Whatever the terms of its question: nobody has to say what the world shows, and nobody has said it.
        shown = SettleTicket(question_about(claim), f"nobody had to say it: {how}")
        await settle(writer, claim, record, landed=landed, what=what, decision=shown)
    # The store decides: between the look and the commit the holder may have come back.
    except NotAllowed:
        return None  # its holder lives, or somebody else settled it meanwhile
    return _build_recovered(claim, state, how, about=begun)


class _Intent(msgspec.Struct, frozen=True):
    """The intent of a claim, as the chain has it."""

    record: Stored
    change: Changed


async def _find_begun(ctx: EngineContext, claim: Claimed) -> _Intent | str:
    """The intent that has begun a claim; or why the claim is not what the ledger has begun."""
    ctx.at("recover.intent")
    record = await chained_record(ctx.store, claim.intent)
    change = None if record is None or record.kind != "intent" else record.content().change
    if record is None or change is None or change.claim != claim.first_name:
        return "the ledger does not hold its intent, which says who may settle it; run interlock audit verify"
    if change.opened != claim_digest(claim, ctx.digest):
        return f"its row in the store is not what record {record.id} has begun; run interlock audit verify"
    return _Intent(record, change)


async def intent_of(ctx: EngineContext, claim: Claimed) -> tuple[Stored | None, Mapping[str, Json]]:
    """The intent of a claim, and what lies beside it."""
    return (None, {}) if claim.intent is None else await read_record(ctx, claim.intent)


async def read_record(ctx: EngineContext, number: int) -> tuple[Stored | None, Mapping[str, Json]]:
    """A record, and what lies beside it; nothing if that was deleted or cannot be read."""
    ctx.at("operations.record")
    return await record_with_payload(ctx.store, number)


async def _look(ctx: EngineContext, claim: Claimed, record: Stored | None, payload: Mapping[str, Json]) -> _Finding:
    binding = ctx.bindings.get(claim.tool)
    if binding is None or record is None or "arguments" not in payload:
        return _Finding(None, "there is no such tool any more, or its intent is gone")
    tool, said = binding.tool, None
    held = tuple(payload.get(part) for part in ("asked", "before", "planned"))
    if tool.probe is not None:
        context = Context(
            call_id=claim.call,
            actor=record.actor,
            attempt=1,
            turn=record.turn,
            idempotency_key=f"{claim.name}.{claim.generation}",
            tokens={local_key(key): token for key, token in zip(claim.keys, claim.tokens, strict=True)},
        )
        said = await probe(ctx, tool, payload["arguments"], context, held)
        if said is not None:
            left = await versions_left(ctx, claim, payload) if said else ()
            return _Finding(said, "its probe says so", left)
    try:
        unfenced = await _fence(ctx, claim, tool)
        snapshots = await read_snapshots(tool, claim.keys, ctx.snapshot_reader)
    except Unreadable as error:  # the question to a person quotes it, and a key may hold what is redacted
        return _Finding(None, redactor_of(tool, payload["arguments"], *held).text(str(error)))
    content = record.content()
    plan = Plan(
        digest=content.plan or "",
        keys=claim.keys,
        before=payload.get("before"),
        after=payload.get("planned"),
        versions=() if content.change is None else content.change.versions,
    )
    said = landed_by_snapshots(plan, snapshots)
    hidden = "" if said is not False else await _not_shown(ctx, claim, unfenced)
    if hidden:
        return _Finding(None, f"the resource looks untouched, but {hidden}")
    if said is None:
        moved, how = show_moved(plan, snapshots), "neither a probe nor the resource can say"
        seen = [snapshot.state for snapshot in snapshots]
        said_so = redactor_of(tool, payload["arguments"], *held, seen).text(f"{how}: {moved}") if moved else how
        return _Finding(None, said_so, has_moved=bool(moved_keys(plan, snapshots)))
    return _Finding(said, "the resource shows it", await versions_left(ctx, claim, payload) if said else ())


async def _not_shown(ctx: EngineContext, claim: Claimed, unfenced: str) -> str:
    """Why an untouched resource does not show that nothing was made; empty if it does."""
    if unfenced:
        return f"{unfenced}, so that who began may still be at it"
    outcome = None if claim.record is None else (await read_record(ctx, claim.record))[0]
    change = None if outcome is None else outcome.content().change
    return "the call may have changed something besides it" if change is not None and change.beyond else ""


async def versions_left(ctx: EngineContext, claim: Claimed, payload: Mapping[str, Json]) -> tuple[str, ...]:
    """The versions of what was planned, if it is there; of what somebody has made of it since nothing is said."""
    own, binding = dict(zip(claim.keys, claim.tokens, strict=True)), ctx.bindings.get(claim.tool)
    if binding is None:
        return ()
    try:
        after = await read_snapshots(binding.tool, claim.keys, ctx.snapshot_reader, own)
    except Unreadable:
        return ()
    as_planned = [snapshot.state for snapshot in after] == payload.get("planned")
    return tuple(snapshot.version for snapshot in after) if as_planned else ()


async def _fence(ctx: EngineContext, claim: Claimed, tool: Tool) -> str:
    """Shut out whoever holds the claim, where the resource can: only then does "not there" mean "never".

    Why they are not shut out; empty if they are.

    Tokens grow by one or more with each holder, so that the next one is shut out by nobody before it.
    """
    raise_fence = getattr(tool.resource, "fence", None)
    tokens = {local_key(key): token + 1 for key, token in zip(claim.keys, claim.tokens, strict=True)}
    if raise_fence is None:
        return "does not check fencing tokens"
    if not tool.wants_context:
        return f"{tool.name!r} does not take context, and so does not hand its fencing tokens on"
    if not tokens or "*" in tokens:
        return f"{tool.name!r} names no keys of its own that could be fenced"
    if claim.state is ClaimState.OPEN and claim.expires_us > await ctx.store.now_us(ctx.clock.now_us()):
        return "its holder is alive"
    ctx.at("recover.fence")
    try:
        await ctx.deadlines.within(tool.timeout_s, raise_fence(tokens, ctx.store.identity.ledger))
    except Exception:  # noqa: BLE001 - a resource is somebody else's; a fence that is not up shuts nobody out
        return "its fence could not be raised"
    return ""


async def _find_answered(ctx: EngineContext, writer: LedgerWriter, claim: Claimed, intent: _Intent) -> Recovered | None:
    """What people have said already, where whoever said it last died before it was settled."""
    ctx.at("recover.tickets")
    for ticket in await ctx.store.tickets(TicketState.APPROVED):
        about = ticket.kind is TicketKind.SETTLE and (ticket.claim, ticket.holder) == (claim.name, claim.holder)
        if about and await settle_approved(writer, ticket):
            how = f"{ticket.decided_by} said so"
            return _build_recovered(claim, ClaimState.DONE.value, how, ticket.id, intent)
    return None


async def _ask(
    ctx: EngineContext, writer: LedgerWriter, claim: Claimed, intent: _Intent, finding: _Finding
) -> Recovered | None:
    how = finding.how
    ticket = stamp(_question(ctx, claim, intent, how), await ctx.store.now_us(ctx.clock.now_us()))
    what: dict[str, Json] = {
        "claim": claim.name,
        "state": "asked",
        "tool": claim.tool,
        "call": claim.call,
        "ticket": ticket.id,
    }
    what["ticket_digest"] = ticket_digest(ticket, ctx.digest)
    if finding.has_moved:
        what["moved"] = True  # for whoever answers with no tools at hand
    # Who settles it meanwhile finds no question to close: then none is opened.
    doubt: Transition = RequireClaim(claim.name, claim.holder, ClaimState.UNKNOWN)
    if claim.state is ClaimState.OPEN:
        doubt = ResolveClaim(claim.name, claim.holder, ClaimState.UNKNOWN)
    try:
        await writer.commit(LedgerEntry("settle", "asked", what, turn=ticket.turn), OpenTicket(ticket), doubt)
    except NotAllowed as error:
        if not error.instead:
            return None
        return _build_recovered(claim, "asked", how, error.instead, intent)
    return _build_recovered(claim, "asked", how, ticket.id, intent)


def _question(ctx: EngineContext, claim: Claimed, intent: _Intent, how: str) -> Ticket:
    """Did it land? Decided under the terms that its intent holds: those of the policy under which it was made, not of
    the one that whoever recovers has brought. Only how often people are reminded is the latter's."""
    now_us, record = ctx.clock.now_us(), intent.record
    content = record.content()
    return Ticket(
        id=ctx.ids.new(),
        kind=TicketKind.SETTLE,
        state=TicketState.OPEN,
        binding=question_about(claim),
        tool=claim.tool,
        actor=record.actor,
        asked_by=content.principal,
        call=claim.call,
        turn=record.turn,
        why=f"did call {claim.call!r} land? {how}: approve if it did, deny if it did not",
        created_us=now_us,
        expires_us=now_us + _A_LONG_TIME_US,
        escalate_us=now_us + ctx.review.escalate_us,
        intent=claim.intent,
        claim=claim.name,
        holder=claim.holder,
        on_behalf_of=content.on_behalf_of,
        terms=intent.change.review,
        remind_us=ctx.review.remind_us,
        account=intent.change.account,
    )


_EVER_US = 2**62
"""Later than every lease."""
_A_LONG_TIME_US = 10 * 365 * 86_400 * 1_000_000
