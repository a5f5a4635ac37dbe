"""Is the ledger what was written? One streaming pass over all records, then the signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from interlock.audit.checkpoints import digest_of, statement_of
from interlock.audit.keys import signed_by
from interlock.ports import Ledger, Query, genesis, link
from interlock.values import Checkpoint, Stored

_MOST_PROBLEMS = 100


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What verification found."""

    ledger: str
    records: int
    lanes: int
    checkpoints: int
    anchors: int
    unanchored: int
    problems: tuple[str, ...]

    @property
    def intact(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


class _Lane:
    __slots__ = ("broken", "count", "hash", "id")

    def __init__(self, start: str) -> None:
        self.hash = start
        self.count = 0
        self.id = 0
        self.broken = False


class _Walk:
    """The chain, followed record by record."""

    def __init__(self, ledger: str, expected: dict[int, list[tuple[str, int, int, str]]]) -> None:
        self._ledger = ledger
        self._expected = expected
        self.lanes: dict[int, _Lane] = {}
        self.problems: list[str] = []
        self.records = 0

    def see(self, record: Stored) -> None:
        """Check one record against the one before it in its lane."""
        lane = self.lanes.get(record.lane)
        if lane is None:
            lane = self.lanes[record.lane] = _Lane(genesis(self._ledger, record.lane))
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
        lane.count += 1
        if link(lane.hash, columns, record.body.encode()) != record.hash:
            self._say(f"record {record.id}: it, or the record before it in lane {record.lane}, was changed or removed")
        if record.id <= lane.id:
            self._say(f"record {record.id}: out of order in lane {record.lane}")
        lane.hash, lane.id = record.hash, record.id
        for name, number, count, text in self._expected.pop(record.id, ()):
            if (number, count, text) != (record.lane, lane.count, record.hash):
                self._say(f"{name}: record {record.id} is not the one that was signed")

    def missing(self) -> None:
        """Whatever was signed and never came by was cut off or rolled back."""
        for number, expected in self._expected.items():
            for name, *_rest in expected:
                self._say(f"{name}: names record {number}, which is gone: the tail was cut, or an older copy put back")

    def _say(self, problem: str) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(problem)


async def verify(
    ledger: Ledger,
    *,
    public_key: str | None = None,
    anchors: tuple[Checkpoint, ...] = (),
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Follow every lane from its genesis, and hold it against checkpoints, anchors and heads."""
    heads = await ledger.heads()
    kept = await ledger.checkpoints()
    problems: list[str] = []
    expected: dict[int, list[tuple[str, int, int, str]]] = {}
    identity = ledger.identity.ledger
    _check_statements("checkpoint", kept, identity, public_key, problems, expected)
    _check_statements("anchor", anchors, identity, public_key, problems, expected)
    _check_order(kept, anchors, problems)
    walk = _Walk(identity, expected)
    async for record in ledger.records(Query(until=max((head.id for head in heads), default=0))):
        walk.see(record)
        if progress is not None and walk.records % 50_000 == 0:
            progress(walk.records)
    walk.missing()
    problems += walk.problems
    for head in heads:
        lane = walk.lanes.get(head.lane)
        found = (lane.id, lane.count, lane.hash) if lane else (0, 0, genesis(identity, head.lane))
        if found != (head.id, head.count, head.hash):
            problems.append(
                f"lane {head.lane}: ends at record {found[0]}, but its head says {head.id}: records were cut off"
            )
    for number in sorted(set(walk.lanes) - {head.lane for head in heads}):
        problems.append(f"lane {number}: there are records, but no head")
    return Report(
        ledger=identity,
        records=walk.records,
        lanes=len(walk.lanes),
        checkpoints=len(kept),
        anchors=len(anchors),
        unanchored=walk.records - _anchored(anchors),
        problems=tuple(problems),
    )


def _check_statements(
    name: str,
    checkpoints: Iterable[Checkpoint],
    ledger: str,
    public_key: str | None,
    problems: list[str],
    expected: dict[int, list[tuple[str, int, int, str]]],
) -> None:
    for item in checkpoints:
        title = f"{name} {item.n}"
        if public_key is not None and item.public_key != public_key:
            problems.append(f"{title}: signed by another key ({item.public_key[:16]}…)")
        if not signed_by(item.public_key, item.signature, item.body.encode()):
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
        if said.previous != (None if previous is None else digest_of(previous)):
            problems.append(f"checkpoint {item.n}: the one before it is missing or was replaced")
        previous = item
    bodies = {item.body for item in kept}
    for item in anchors:
        if item.body not in bodies:
            problems.append(f"anchor {item.n}: the ledger no longer holds this checkpoint")


def _anchored(anchors: tuple[Checkpoint, ...]) -> int:
    """How many records the newest anchor covers."""
    best = 0
    for item in anchors:
        try:
            best = max(best, sum(count for _lane, _number, count, _hash in statement_of(item).heads))
        except msgspec.DecodeError:
            continue
    return best
