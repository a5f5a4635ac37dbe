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
    next_key: str | None = None
    """The public key that signs from now on."""
    lost_key: str | None = None
    """The public key that signed until now, and is said to be lost."""


def current_key(checkpoint: Checkpoint) -> str:
    """The key that the checkpoint after this one must be signed with."""
    return statement_of(checkpoint).next_key or checkpoint.public_key


def statement_of(checkpoint: Checkpoint) -> Statement:
    """The content of a checkpoint; msgspec.DecodeError if it is none."""
    return msgspec.json.decode(checkpoint.body, type=Statement)


async def anchor(
    ledger: Ledger, key: SigningKey, clock: Clock, *, next_key: str | None = None, lost_key: str | None = None
) -> Checkpoint:
    """Sign where every lane ends now, and keep the checkpoint in the ledger.

    `next_key` hands over to another key; `lost_key` begins anew where the one before is lost. Otherwise the key has to
    be the one that signed before: `ConfigError` says what to do.
    """
    for _ in range(_TRIES):
        before = await ledger.checkpoints()
        heads = await ledger.heads()
        last = before[-1] if before else None
        if last is not None and lost_key is None:
            _refuse_other_key(current_key(last), key.public)
        body = msgspec.json.encode(
            Statement(
                ledger=ledger.identity.ledger,
                n=1 if last is None else last.n + 1,
                at_us=clock.now_us(),
                # An empty lane has no last record to name.
                heads=tuple((head.lane, head.id, head.count, head.hash) for head in heads if head.count),
                previous=None if last is None else checkpoint_digest(last),
                next_key=next_key,
                lost_key=lost_key,
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


async def rotate(ledger: Ledger, old: SigningKey | None, new: SigningKey, clock: Clock) -> Checkpoint:
    """Go on with another key: signed by the one before; or, where that is lost, by the new one, which says so."""
    if old is not None:
        return await anchor(ledger, old, clock, next_key=new.public)
    before = await ledger.checkpoints()
    if not before:
        raise ConfigError("nothing was signed yet, so no key is lost: interlock audit anchor makes one")
    return await anchor(ledger, new, clock, lost_key=current_key(before[-1]))


def _refuse_other_key(signed: str, mine: str) -> None:
    if signed != mine:
        raise ConfigError(
            f"the checkpoints so far are signed by {signed[:16]}…, and this key is {mine[:16]}…: put that key in place;"
            " to go on with another one, use interlock audit rotate (with --lost, if it cannot be had any more)"
        )


def checkpoint_digest(checkpoint: Checkpoint) -> str:
    """The digest by which the next checkpoint names this one."""
    return hashlib.sha256(checkpoint.body.encode()).hexdigest()


def refuse_other_ledger(file: Path, ledger: str) -> None:
    """Raise ConfigError if a file holds anchors of another ledger: neither of the two could be verified with it."""
    for item in read_anchors(file) if file.exists() else ():
        try:
            other = statement_of(item).ledger
        except msgspec.DecodeError:
            continue  # what is wrong with it is for audit verify to say
        if other != ledger:
            raise ConfigError(
                f"{file}: holds anchors of another ledger ({other}), and this one is {ledger}: nothing was signed;"
                " give each ledger a file of its own (the setting anchors, or audit anchor --out FILE)"
            )


def read_anchors(file: Path) -> tuple[Checkpoint, ...]:
    """The checkpoints that were exported to a file, oldest first."""
    try:
        lines = file.read_bytes().splitlines()
        return tuple(msgspec.json.decode(line, type=Checkpoint) for line in lines if line.strip())
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise ConfigError(f"{file}: not a file of anchors: {error}") from None
