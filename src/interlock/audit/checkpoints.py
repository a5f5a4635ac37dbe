"""Signed checkpoints over all heads, and the anchors that are exported from them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from interlock.audit.keys import SigningKey
from interlock.errors import ConfigError, StoreError
from interlock.ports import Clock, Ledger
from interlock.records import Checkpoint
from interlock.transitions import Batch, Committed, Seal
from interlock.values import Value

_TRIES = 5


class Statement(Value, frozen=True):
    """What a checkpoint says: where every lane of one ledger ended, and which checkpoint came before."""

    ledger: str
    n: int
    at_us: int
    heads: tuple[tuple[int, int, int, str], ...]
    previous: str | None


def statement_of(checkpoint: Checkpoint) -> Statement:
    """The content of a checkpoint; msgspec.DecodeError if it is none."""
    return msgspec.json.decode(checkpoint.body, type=Statement)


async def anchor(ledger: Ledger, key: SigningKey, clock: Clock) -> Checkpoint:
    """Sign where every lane ends now, and keep the checkpoint in the ledger."""
    for _ in range(_TRIES):
        before = await ledger.checkpoints()
        heads = await ledger.heads()
        last = before[-1] if before else None
        body = msgspec.json.encode(
            Statement(
                ledger=ledger.identity.ledger,
                n=1 if last is None else last.n + 1,
                at_us=clock.now_us(),
                # An empty lane has no last record to name.
                heads=tuple((head.lane, head.id, head.count, head.hash) for head in heads if head.count),
                previous=None if last is None else checkpoint_digest(last),
            )
        )
        checkpoint = Checkpoint(
            n=1 if last is None else last.n + 1,
            body=body.decode(),
            signature=key.sign(body),
            public_key=key.public,
        )
        receipt = await ledger.commit(Batch(now_us=clock.now_us(), transitions=(Seal(checkpoint=checkpoint),)))
        if isinstance(receipt, Committed):  # refused: another process has made checkpoint n meanwhile
            return checkpoint
    raise StoreError("other processes keep making checkpoints; try again")


def checkpoint_digest(checkpoint: Checkpoint) -> str:
    """The digest by which the next checkpoint names this one."""
    return hashlib.sha256(checkpoint.body.encode()).hexdigest()


def read_anchors(file: Path) -> tuple[Checkpoint, ...]:
    """The checkpoints that were exported to a file, oldest first."""
    try:
        lines = file.read_bytes().splitlines()
        return tuple(msgspec.json.decode(line, type=Checkpoint) for line in lines if line.strip())
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise ConfigError(f"{file}: not a file of anchors: {error}") from None
