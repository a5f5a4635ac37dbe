"""Is the ledger what was written? One streaming pass over all records, then the signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from interlock.audit.checkpoints import checkpoint_digest, statement_of
from interlock.audit.fold import Fold
from interlock.audit.keys import is_signed_by
from interlock.audit.signed_times import SignedTimes
from interlock.canonical import WHATEVER, Refusal, canonical
from interlock.errors import PayloadUnreadable
from interlock.ports import Ledger, Query, Store, digest_of, genesis, keyed_digest, lanes_of, link
from interlock.records import Checkpoint, LaneHead, Stored

_MOST_PROBLEMS = 100
_LOOKS = 5


class UnreadablePayloads(msgspec.Struct, frozen=True, kw_only=True):
    """Payloads that could not be held against their digests, as the key for them is not here."""

    key: str
    """Its id."""
    lost: bool
    """Whether it is said to be gone for good: then they are as good as deleted."""
    records: tuple[int, ...]
    why: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What verification found."""

    ledger: str
    records: int
    lanes: int
    checkpoints: int
    anchors: int
    unanchored: int
    problems: tuple[str, ...]
    unreadable: tuple[UnreadablePayloads, ...] = ()
    """Nothing is wrong with records and chain where a key is missing; its payloads were not checked."""

    @property
    def intact(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@dataclass(slots=True)
class _LaneEnd:
    """How far a lane has been followed."""

    lane: int
    id: int
    count: int
    hash: str


class _Walk:
    """The chain, followed record by record, each lane from its genesis to the head it had when we began."""

    def __init__(
        self,
        ledger: Ledger,
        expected: dict[int, list[tuple[str, int, int, str]]],
        times: SignedTimes,
    ) -> None:
        self._ledger = ledger
        self._times = times
        self._timed = times.has_any
        self._lanes = lanes_of(ledger.identity.ledger)
        self.fold = Fold()
        self._name = ledger.identity.ledger
        self._keyed = keyed_digest(ledger.identity.digest_key)
        self._expected = expected
        self._ends: dict[int, LaneHead] = {}
        self.beyond: list[Stored] = []
        self._chains: dict[int, _LaneEnd] = {}
        self.problems: list[str] = []
        self._unreadable: dict[tuple[str, bool], tuple[str, list[int]]] = {}
        self.records = 0

    @property
    def lanes(self) -> dict[int, LaneHead]:
        """Where each lane was when its last record had come by."""
        return {lane: LaneHead(one.lane, one.id, one.count, one.hash) for lane, one in self._chains.items()}

    async def follow(self, heads: tuple[LaneHead, ...], progress: Callable[[int], None] | None) -> None:
        """Every record up to the heads; what lies beyond is set aside."""
        self._ends = {head.lane: head for head in heads}
        async for record in self._ledger.records(Query()):
            end = self._ends.get(record.lane)
            # Written since we began, or forged: only the heads as they are afterwards can tell.
            if end is not None and record.id > end.id:
                self.beyond.append(record)
                continue
            self._see(record)
            # Looked for in the text: a pass over millions of records cannot parse each of them.
            if type(record.body) is str and ('"payload":true' in record.body or '"payload_digest"' in record.body):
                await self._check_payload(record)
            if progress is not None and self.records % 50_000 == 0:
                progress(self.records)

    async def follow_beyond(self, heads: tuple[LaneHead, ...]) -> None:
        """What was written meanwhile must chain on and be covered by the heads as they are now; the rest is forged."""
        ends = {head.lane: head.id for head in heads}
        for record in self.beyond:
            if record.id > ends.get(record.lane, 0):
                self._say(
                    f"record {record.id}: lies beyond the head of lane {record.lane}: it was not written by Interlock"
                )
        self.beyond.clear()
        fresh: list[Stored] = []
        for head in heads:
            done = self.lanes.get(head.lane)
            after = 0 if done is None else done.id
            if head.id > after:
                query = Query(lane=head.lane, after=after, until=head.id)
                fresh += [record async for record in self._ledger.records(query)]
        for record in sorted(fresh, key=lambda item: item.id):  # a change begins in one lane and may end in another
            self._see(record)

    def _see(self, record: Stored) -> None:
        """Check one record against the one before it in its lane."""
        lane = self._chains.get(record.lane)
        if lane is None:
            lane = self._chains[record.lane] = _LaneEnd(record.lane, 0, 0, genesis(self._name, record.lane))
        columns = (
            record.id,
            record.lane,
            record.at_us,
            record.kind,
            record.call,
            record.turn,
            record.actor,
            record.tool,
            record.status,
        )
        self.records += 1
        body = record.body.encode() if type(record.body) is str else b""  # a cell of another type was put there
        if link(lane.hash, columns, body) != record.hash:
            self._say(f"record {record.id}: it, or the record before it in lane {record.lane}, was changed or removed")
        if record.id <= lane.id:
            self._say(f"record {record.id}: out of order in lane {record.lane}")
        if lane.count == 0 and self._lanes is not None and not 0 <= record.lane < self._lanes:
            self._say(
                f"lane {record.lane}: this ledger has {self._lanes} of them by its name; it was not written by us"
            )
        if self._timed:
            self._times.see(record)
        self.fold.see(record)
        # Goes on from the hash that is stored: one changed record is one problem, not one for every record behind it.
        lane.id, lane.hash = record.id, record.hash
        lane.count += 1
        if record.id in self._expected:
            self._compare_signed(record, lane.count)

    def _compare_signed(self, record: Stored, place: int) -> None:
        """What is left of these in the end was signed, and is gone."""
        for name, number, count, text in self._expected.pop(record.id):
            if (number, count, text) != (record.lane, place, record.hash):
                self._say(f"{name}: record {record.id} is not the one that was signed")

    async def _check_payload(self, record: Stored) -> None:
        """A payload that is still there must be the one whose digests the record holds."""
        try:
            payload = await self._ledger.payload(record.id)
        except PayloadUnreadable as error:  # its key is not here: one row must not end the whole walk
            _why, records = self._unreadable.setdefault((error.key, error.lost), (str(error), []))
            records.append(record.id)
            return
        if payload is None:  # deleted, which is allowed: the chain holds without it
            return
        try:
            content, whole = record.content(), msgspec.json.decode(payload)
            if content.payload_digest is not None:
                if digest_of(self._keyed, payload) != content.payload_digest:
                    self._say(f"record {record.id}: its payload is not what was recorded")
                return
            arguments, value = canonical(whole["arguments"], WHATEVER), canonical(whole["value"], WHATEVER)
        except (msgspec.DecodeError, KeyError, TypeError, RecursionError, Refusal):
            self._say(f"record {record.id}: its payload cannot be read")
            return
        for text, digest in ((arguments, content.arguments_digest), (value, content.value_digest)):
            if digest_of(self._keyed, text) != digest:
                self._say(f"record {record.id}: its payload is not what was recorded")

    def unreadable(self) -> tuple[UnreadablePayloads, ...]:
        """The payloads whose keys are not here, key by key."""
        return tuple(
            UnreadablePayloads(key=key, lost=lost, records=tuple(records), why=why)
            for (key, lost), (why, records) in self._unreadable.items()
        )

    def missing(self) -> None:
        """Whatever was signed and never came by was cut off or rolled back."""
        for number, expected in self._expected.items():
            for name, *_rest in expected:
                self._say(f"{name}: names record {number}, which is gone: the tail was cut, or an older copy put back")

    def _say(self, problem: str) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(problem)


async def verify(
    ledger: Store,
    *,
    public_key: str | None = None,
    anchors: tuple[Checkpoint, ...] = (),
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Follow every lane from its genesis, and hold it against checkpoints, anchors, heads and payloads."""
    # In this order: whatever a checkpoint names lies before the heads that are read after it.
    kept = await ledger.checkpoints()
    heads = await ledger.heads()
    problems: list[str] = []
    expected: dict[int, list[tuple[str, int, int, str]]] = {}
    identity = ledger.identity.ledger
    keys = None if public_key is None else _trusted_keys(public_key, (*kept, *anchors))
    _check_statements("checkpoint", kept, identity, keys, problems, expected)
    _check_statements("anchor", anchors, identity, keys, problems, expected)
    _check_order(kept, anchors, problems)
    problems += _forgotten(ledger.missing)
    times = SignedTimes(keys, (*kept, *anchors))
    walk = _Walk(ledger, expected, times)
    await walk.follow(heads, progress)
    await walk.fold.look_ahead(ledger)
    heads = await ledger.heads()
    await walk.follow_beyond(heads)
    walk.missing()
    compared, heads = await _compare_tables(ledger, walk, heads)
    problems += [*walk.problems, *times.problems(), *compared]
    known = {head.lane: head for head in heads}
    for head in heads:
        found = walk.lanes.get(head.lane, LaneHead(head.lane, 0, 0, genesis(identity, head.lane)))
        if found != head:
            problems.append(
                f"lane {head.lane}: ends at record {found.id}, but its head says {head.id}: records were cut off"
            )
    for number in sorted(set(walk.lanes) - set(known)):
        problems.append(f"lane {number}: there are records, but no head")
    return Report(
        ledger=identity,
        records=walk.records,
        lanes=len(walk.lanes),
        checkpoints=len(kept),
        anchors=len(anchors),
        unanchored=_count_unanchored(walk.lanes.values(), identity, anchors),
        problems=tuple(problems),
        unreadable=walk.unreadable(),
    )


async def _compare_tables(
    store: Store, walk: _Walk, heads: tuple[LaneHead, ...]
) -> tuple[list[str], tuple[LaneHead, ...]]:
    """What the tables beside the records say otherwise, and the heads up to which the records were read.

    They are looked at once more if somebody wrote meanwhile.
    """
    found: list[str] | None = None
    for _ in range(_LOOKS):
        now_found = await walk.fold.compare(store)
        # What was forged is wrong at every look; what is only being written is not.
        found = now_found if found is None else [problem for problem in found if problem in now_found]
        now = await store.heads()
        if not found or now == heads:
            break
        heads = now
        await walk.follow_beyond(heads)
    return found or [], heads


def _trusted_keys(pinned: str, checkpoints: Iterable[Checkpoint]) -> frozenset[str]:
    """The pinned key, those that it was handed on to, and those that were handed on to it: each signed that itself."""
    pairs: list[tuple[str, str]] = []
    for item in checkpoints:
        try:
            said = statement_of(item)
        except msgspec.DecodeError:
            continue
        genuine = is_signed_by(item.public_key, item.signature, item.body.encode())
        if genuine and said.next_key is not None:
            pairs += [(item.public_key, said.next_key), (said.next_key, item.public_key)]
        if genuine and said.lost_key is not None:  # who begins anew vouches for what came before, not the other way
            pairs.append((item.public_key, said.lost_key))
    trusted, size = {pinned}, 0
    while len(trusted) != size:
        size = len(trusted)
        trusted |= {other for one, other in pairs if one in trusted}
    return frozenset(trusted)


def _check_statements(
    name: str,
    checkpoints: Iterable[Checkpoint],
    ledger: str,
    keys: frozenset[str] | None,
    problems: list[str],
    expected: dict[int, list[tuple[str, int, int, str]]],
) -> None:
    for item in checkpoints:
        title = f"{name} {item.n}"
        if keys is not None and item.public_key not in keys:
            # Noted, and gone on: whether the text is what that key signed is worth knowing, too.
            problems.append(f"{title}: signed by another key ({item.public_key[:16]}…)")
        if not is_signed_by(item.public_key, item.signature, item.body.encode()):
            problems.append(f"{title}: the signature does not fit its text")
            continue
        try:
            said = statement_of(item)
        except msgspec.DecodeError as error:
            problems.append(f"{title}: cannot be read: {error}")
            continue
        if said.ledger != ledger or said.n != item.n:
            problems.append(f"{title}: belongs to another ledger, or stands in another's place")
            continue
        for lane, number, count, text in said.heads:
            expected.setdefault(number, []).append((title, lane, count, text))


def _check_order(kept: tuple[Checkpoint, ...], anchors: tuple[Checkpoint, ...], problems: list[str]) -> None:
    previous: Checkpoint | None = None
    for item in kept:
        try:
            said = statement_of(item)
        except msgspec.DecodeError:
            continue
        if said.previous != (None if previous is None else checkpoint_digest(previous)):
            problems.append(f"checkpoint {item.n}: the one before it is missing or was replaced")
        previous = item
    bodies = {item.body for item in kept}
    for item in anchors:
        if item.body not in bodies:
            problems.append(f"anchor {item.n}: the ledger no longer holds this checkpoint")


def _forgotten(missing: Iterable[LaneHead]) -> list[str]:
    """What was seen of this ledger and is not in it: by the same comparison that refuses every change."""
    return [
        f"lane {head.lane}: record {head.id} was seen here, or anchored, and is not in it any more: an older copy was"
        " put back. Put the newer one in its place, or say that this one stands (interlock audit accept)"
        for head in missing
    ]


def _count_unanchored(lanes: Iterable[LaneHead], ledger: str, anchors: tuple[Checkpoint, ...]) -> int:
    """How many records no anchor of this ledger covers."""
    covered: dict[int, int] = {}
    for item in anchors:
        try:
            said = statement_of(item)
        except msgspec.DecodeError:
            continue
        for lane, _number, count, _hash in said.heads if said.ledger == ledger else ():
            covered[lane] = max(covered.get(lane, 0), count)
    return sum(max(0, lane.count - covered.get(lane.lane, 0)) for lane in lanes)
