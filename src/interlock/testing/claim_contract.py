"""The part of a store's contract that is about claims, and about the ids of callers that stand for them."""

from __future__ import annotations

from interlock.ports import Store
from interlock.reasons import RefusalKind
from interlock.state import LOCK, ChangeFilter, Claimed, ClaimState, Ticket, TicketKind, TicketState
from interlock.testing.contract_checks import on_one_store
from interlock.testing.store_moves import T0, batch, entry, record_ids
from interlock.transitions import (
    BindCallId,
    CloseClaim,
    Committed,
    DecideTicket,
    Lift,
    MarkUndone,
    OpenClaim,
    OpenTicket,
    Refused,
    RenewClaim,
    ResolveClaim,
)


class ClaimContract:
    """What every store does with claims."""

    @on_one_store
    async def test_claims_tickets_and_halts_refuse_what_does_not_fit(self, store: Store) -> None:
        claim = OpenClaim("n", "request", 1, "h", "c", "t", ("r/a",), 100, "turn", "run")
        assert await store.commit(batch(entry(1), claim)) == Committed((1,), tokens=(T0,), changed=(0,))
        for other, kind in (
            (claim, "claimed"),
            (OpenClaim("n", "another", 1, "h2", "c2", "t", (), 100), "reused"),
            (OpenClaim("m", "request", 1, "h2", "c2", "t", ("r/a",), 100), "leased"),
            (OpenClaim("m", "request", 1, "h2", "c2", "t", ("r/*",), 100), "leased"),
            (CloseClaim("n", "h2", ClaimState.DONE), "lost"),
            (RenewClaim("n", "h2", 900), "lost"),
            (ResolveClaim("n", "h", ClaimState.DONE), "settled"),
            (MarkUndone("n", 1), "undone"),
            (DecideTicket("no", TicketState.APPROVED, "b", ""), "ticket"),
            (Lift("all"), "halt"),
        ):
            refused = await store.commit(batch(entry(2), other, at=T0 + 1))
            assert isinstance(refused, Refused), other
            assert refused.kind == kind
        assert await record_ids(store) == [1], "a refused batch leaves nothing"
        assert isinstance(await store.commit(batch(entry(3), CloseClaim("n", "h", ClaimState.DONE))), Committed)
        assert (held := await store.claim("n")) is not None
        assert (held.state, held.intent, held.record) == (ClaimState.DONE, 1, 2)
        everything = OpenClaim("m", "request", 1, "h2", "c2", "t", ("r/*",), 100)
        assert await store.commit(batch(entry(4), everything)) == Committed((3,), tokens=(T0 + 1,), changed=(T0,))

    @on_one_store
    async def test_tickets_are_found_by_their_state_and_by_what_they_ask(self, store: Store) -> None:
        for number, request in enumerate(("aa11", "bb22", "aa11", "aa1_", "")):
            asks = _ticket(f"t{number}", request)
            assert isinstance(await store.commit(batch(entry(number), OpenTicket(asks))), Committed)
        await store.commit(batch(entry(9), DecideTicket("t2", TicketState.DENIED, "boss", "no")))

        async def ids_of(state: TicketState | None, request: str | None) -> list[str]:
            return [ticket.id for ticket in await store.tickets(state, request=request)]

        assert await ids_of(None, "aa11") == ["t0", "t2"], "a sign of a pattern stands for itself"
        assert (await ids_of(TicketState.DENIED, "aa11"), await ids_of(TicketState.DENIED, "bb22")) == (["t2"], [])
        assert (await ids_of(None, "aa1_"), await ids_of(None, ""), await ids_of(None, "cc33")) == (["t3"], ["t4"], [])

    @on_one_store
    async def test_what_stands_is_made_again_only_on_the_landings_that_its_caller_saw(self, store: Store) -> None:
        for name, at in (("n", T0), ("m", T0 + 10)):  # another change comes after it
            await store.commit(batch(OpenClaim(name, "request", 1, "h", "c", "t", ("r/a",), 100), at=at))
            await store.commit(batch(CloseClaim(name, "h", ClaimState.DONE), at=at))
        for landings, made in ((None, False), (T0, False), (T0 + 10, True)):
            again = OpenClaim("n", "request", 2, "h", "c", "t", ("r/a",), 100, landings=landings)
            assert isinstance(await store.commit(batch(again, at=T0 + 20)), Committed) is made, landings

    @on_one_store
    async def test_the_id_of_a_caller_stands_for_what_it_was_made_as_or_answered_from(self, store: Store) -> None:
        claim = OpenClaim("n", "request", 1, "h", "c1", "t", (), 100, call_name="i1")
        await store.commit(batch(entry(1), claim))
        await store.commit(batch(entry(2), CloseClaim("n", "h", ClaimState.DONE)))
        made = Claimed("i1", "n", ClaimState.FAILED, 1, holder="", call="c1", tool=LOCK, intent=1)
        assert await store.claim("i1") == made
        answer = BindCallId("i2", "n", 1, 2, "c2")
        await store.commit(batch(entry(3), answer))
        answered = Claimed("i2", "n", ClaimState.FAILED, 1, holder="", call="c2", tool=LOCK, intent=3, record=2)
        assert await store.claim("i2") == answered
        for later in (BindCallId("i2", "n", 2, 9, "c2"), BindCallId("i2", "m", 1, 9, "c2")):
            assert isinstance(await store.commit(batch(entry(4), later)), Committed)
            assert await store.claim("i2") == answered, "what it stands for stays"
        assert [found.name for found in await store.claims(ChangeFilter(record=2))] == ["n"], "its row is no change"
        await store.commit(batch(entry(5), MarkUndone("n", 1)))
        again = OpenClaim("n", "request", 2, "h", "c2", "t", (), 100, call_name="i2")
        refused = await store.commit(batch(entry(6), again))
        assert isinstance(refused, Refused)
        assert (refused.kind, refused.limit) == (RefusalKind.CLAIMED, "i2")
        replayed = OpenClaim("n", "request", 2, "h", "c2", "t", (), 100, call_name="i2", replays=True)
        assert await store.commit(batch(entry(7), replayed)) == Committed((7,))
        stands = Claimed("i2", "n", ClaimState.FAILED, 2, holder="", call="c2", tool=LOCK, tokens=(1,), intent=7)
        assert await store.claim("i2") == stands
        assert await store.claim("i1") == made


def _ticket(identity: str, request: str) -> Ticket:
    return Ticket(
        id=identity,
        kind=TicketKind.CHANGE,
        state=TicketState.OPEN,
        binding=identity,
        tool="t",
        actor="a",
        asked_by="p",
        call="c",
        turn=None,
        why="",
        created_us=T0,
        expires_us=T0 + 1_000_000,
        escalate_us=0,
        request=request,
    )
