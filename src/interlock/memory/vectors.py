"""Vectors in this process: one byte a number, searched by their signs, and compared exactly where these are near."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlock.memory import statements as sql
from interlock.memory.documents import DocumentKind
from interlock.memory.meta import read_meta
from interlock.memory.selection import Selection
from interlock.stores.dialect import Connection
from interlock.values import Trust

_BLOCK = 16_384
_PAGE = 2_000
_CANDIDATES = 2_000
"""So many of the nearest by signs are compared by their numbers (docs/design/memory.md has what that finds)."""
_FEW = 4_096
"""As few as these are all compared by their numbers."""
_KINDS = {kind: code for code, kind in enumerate(DocumentKind)}
_MOST_DEAD = 0.25


class PackedVectors:
    """A copy of the vectors of a memory: 384 bytes of numbers and 48 of signs for each chunk.

    Used by one thread. What others have added, changed or removed is read when it is asked next.
    """

    name = "packed"
    statement = "memory_vectors"

    def __init__(self, dimensions: int) -> None:
        import numpy  # with the extra alone: words are found without it

        self._np = numpy
        self._dimensions = dimensions
        self._clear()

    def _clear(self) -> None:
        self._blocks: list[_Block] = []
        self._rows = 0
        self._dead = 0
        self._last = 0
        self._revision = 0
        self._slots: dict[int, int] = {}
        """By the number of a document: its place in what is known of documents."""
        self._namespaces: dict[str, int] = {}
        self._known = _DocumentTable(self._np)

    def pack(self, vectors: Any) -> list[tuple[float, bytes]]:
        """Scale and bytes of each row, as they are stored."""
        np = self._np
        scales = np.maximum(np.abs(vectors).max(axis=1), 1e-12) / 127.0
        codes = np.rint(vectors / scales[:, None]).astype(np.int8)
        return [(float(scale), row.tobytes()) for scale, row in zip(scales, codes, strict=True)]

    def add(self, connection: Connection, rows: Sequence[tuple[int, int]], vectors: Any) -> None:
        """Store the vectors of chunks (chunk, document)."""
        packed = self.pack(vectors)
        connection.run_many(
            sql.ADD_VECTOR, [(*row, scale, codes) for row, (scale, codes) in zip(rows, packed, strict=True)]
        )

    def search(self, connection: Connection, vector: Any, which: Selection, most: int) -> list[tuple[int, float]]:
        """The nearest chunks and how alike they are, best first."""
        np = self._np
        self.refresh(connection)
        if not self._rows:
            return []
        meant = self._meant_documents(which)
        if which.source is not None:
            meant &= self._from_source(connection, which)
        allowed = meant[self._column("documents")]
        rows = np.flatnonzero(allowed)
        if len(rows) > max(_FEW, _CANDIDATES):
            distances = self._distances(vector)[rows]
            rows = np.sort(rows[np.argpartition(distances, _CANDIDATES)[:_CANDIDATES]])
        likeness = self._likeness(rows, vector)
        best = np.argsort(-likeness, kind="stable")[:most]
        chunks = self._column("chunks")
        return [(int(chunks[rows[place]]), float(likeness[place])) for place in best]

    def _meant_documents(self, which: Selection) -> Any:
        """For each document whether its chunks are meant."""
        np, known = self._np, self._known
        meant = known.column("alive") & (known.column("expires") > which.now_us)
        if which.namespaces is not None:
            wanted = [self._namespaces[name] for name in which.namespaces if name in self._namespaces]
            meant &= np.isin(known.column("namespace"), wanted)
        if which.kinds is not None:
            meant &= np.isin(known.column("kind"), [_KINDS[kind] for kind in which.kinds])
        if which.trust is not None:
            meant &= known.column("trusted") == (which.trust is Trust.TRUSTED)
        return meant

    def _from_source(self, connection: Connection, which: Selection) -> Any:
        """For each document whether it comes from where it should."""
        chosen = self._np.zeros(self._known.count, dtype=bool)
        numbers = [row[0] for row in connection.rows(sql.DOCUMENTS_FROM, which.source or ())]
        chosen[[self._slots[number] for number in numbers if number in self._slots]] = True
        return chosen

    def _distances(self, vector: Any) -> Any:
        """In how many signs each row differs."""
        np = self._np
        signs = _signs(np, vector[None, :])[:, 0]
        found = np.zeros(self._rows, dtype=np.uint16)
        for number, block in enumerate(self._blocks):
            part = found[number * _BLOCK : (number + 1) * _BLOCK]
            for place, sign in enumerate(signs):
                part += np.bitwise_count(block.signs[place, : len(part)] ^ sign)
        return found

    def _likeness(self, rows: Any, vector: Any) -> Any:
        np = self._np
        found = np.empty(len(rows), dtype=np.float32)
        numbers = rows // _BLOCK
        for number in np.unique(numbers):
            here = numbers == number
            block, places = self._blocks[number], rows[here] % _BLOCK
            found[here] = (block.codes[places].astype(np.float32) @ vector) * block.scales[places]
        return found

    def _column(self, column: str) -> Any:
        return self._np.concatenate([getattr(block, column) for block in self._blocks])[: self._rows]

    def refresh(self, connection: Connection) -> None:
        """Read what has changed since the last time."""
        revision = int(read_meta(connection, "revision"))
        if revision == self._revision:
            return
        if self._dead > _FEW and self._dead > self._rows * _MOST_DEAD:
            self._clear()
        while page := connection.rows(sql.VECTORS_AFTER, (self._last, _PAGE)):
            self._append(page)
        # After the vectors: whoever has added one has added its document before.
        for number, _revision, namespace, kind, trust, expires in connection.rows(
            sql.DOCUMENTS_AFTER, (self._revision,)
        ):
            place = self._namespaces.setdefault(namespace, len(self._namespaces))
            ends = _NEVER if expires is None else expires
            self._known.set(self._slot(number), (True, ends, place, _KINDS[DocumentKind(kind)], trust == Trust.TRUSTED))
        for (number,) in connection.rows(sql.REMOVALS_AFTER, (self._revision,)):
            self._remove(number)
        self._revision = revision

    def _slot(self, number: int) -> int:
        slot = self._slots.get(number)
        if slot is None:
            slot = self._slots[number] = self._known.grow()
        return slot

    def _append(self, page: Sequence[tuple[Any, ...]]) -> None:
        np = self._np
        codes = np.frombuffer(b"".join(bytes(row[4]) for row in page), dtype=np.int8).reshape(len(page), -1)
        at = 0
        while at < len(page):
            if self._rows == len(self._blocks) * _BLOCK:
                self._blocks.append(_Block(np, self._dimensions))
            start = self._rows % _BLOCK
            count = min(len(page) - at, _BLOCK - start)
            block, here, some = self._blocks[-1], slice(start, start + count), page[at : at + count]
            block.codes[here] = codes[at : at + count]
            block.signs[:, here] = _signs(np, block.codes[here])
            block.scales[here] = [row[3] for row in some]
            block.chunks[here] = [row[1] for row in some]
            block.documents[here] = [self._slot(row[2]) for row in some]
            self._rows += count
            at += count
        self._last = page[-1][0]

    def _remove(self, number: int) -> None:
        """Nothing of what was removed stays in this copy."""
        slot = self._slots.pop(number, None)
        if slot is None:
            return
        self._known.set(slot, (False, 0, -1, -1, False))
        for place, block in enumerate(self._blocks):
            used = min(_BLOCK, self._rows - place * _BLOCK)
            rows = self._np.flatnonzero(block.documents[:used] == slot)
            block.codes[rows] = 0
            block.signs[:, rows] = 0
            self._dead += len(rows)


_NEVER = 2**62


class _Block:
    """A fixed number of rows, so that growing copies nothing."""

    def __init__(self, np: Any, dimensions: int) -> None:
        self.codes = np.zeros((_BLOCK, dimensions), dtype=np.int8)
        self.signs = np.zeros((-(-dimensions // 64), _BLOCK), dtype=np.uint64)
        """Turned: all first sixty-four signs lie together, then the second ones; so they are counted twice as fast."""
        self.scales = np.zeros(_BLOCK, dtype=np.float32)
        self.chunks = np.zeros(_BLOCK, dtype=np.int64)
        self.documents = np.zeros(_BLOCK, dtype=np.int32)


class _DocumentTable:
    """What a filter asks of documents, column by column."""

    _COLUMNS = {"alive": "?", "expires": "i8", "namespace": "i4", "kind": "i2", "trusted": "?"}

    def __init__(self, np: Any) -> None:
        self._np = np
        self.count = 0
        self._held = {name: np.zeros(64, dtype=kind) for name, kind in self._COLUMNS.items()}

    def grow(self) -> int:
        """The place of one more document, which is not there yet."""
        if self.count == len(self._held["alive"]):
            self._held = {name: self._np.concatenate([held, held * 0]) for name, held in self._held.items()}
            self._held["alive"] = self._held["alive"].astype(bool)
            self._held["trusted"] = self._held["trusted"].astype(bool)
        self._held["alive"][self.count] = False
        self.count += 1
        return self.count - 1

    def set(self, place: int, values: tuple[object, ...]) -> None:
        """What is known of one document."""
        for name, value in zip(self._COLUMNS, values, strict=True):
            self._held[name][place] = value

    def column(self, name: str) -> Any:
        """One thing of all documents."""
        return self._held[name][: self.count]


def _signs(np: Any, rows: Any) -> Any:
    """The signs of rows, sixty-four to a number, turned."""
    packed = np.packbits(rows > 0, axis=1)
    beyond = -packed.shape[1] % 8
    if beyond:
        packed = np.pad(packed, ((0, 0), (0, beyond)))
    return np.ascontiguousarray(packed).view(np.uint64).T
