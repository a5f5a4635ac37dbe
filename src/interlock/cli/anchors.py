"""`interlock audit anchor` and `audit rotate`: sign where the ledger ends, hand that to others, change the key."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from interlock.audit import anchor, load_key, load_or_make_key, make_key, public_file, rotate
from interlock.audit.keys import SigningKey
from interlock.audit.publish import Receipt, publish
from interlock.cli.interrupts import run_to_end
from interlock.cli.ledger import open_ledger
from interlock.cli.options import find_key_file, load_command_settings
from interlock.cli.output import console, notes, print_json, sanitize
from interlock.cli.parser import document_exits
from interlock.config import Settings
from interlock.errors import ConfigError
from interlock.ports import Store, SystemClock
from interlock.records import Checkpoint


def register(actions: Any, common: Any) -> None:
    sign = actions.add_parser("anchor", help="sign where the ledger ends now, and add that to the file of anchors")
    sign.add_argument("--out", metavar="FILE", help="file to add to (default: the setting 'anchors'); - prints it")
    sign.add_argument("--key", metavar="PEM", help="the Ed25519 key to sign with (default: made on first use)")
    sign.add_argument("--publish", action="append", metavar="WHERE", help="and hand it to git:FOLDER or https://…")
    turn = actions.add_parser(
        "rotate",
        help="go on with a new signing key",
        description="Make a new signing key, which the old one signs over to, so that `audit verify` with either"
        " of them follows. The old key is kept beside the new one under its own name.",
    )
    turn.add_argument("--lost", action="store_true", help="the old key cannot be had any more: begin anew, and say so")
    turn.add_argument(
        "--encrypt", action="store_true", help="encrypt the new key (the passphrase is in INTERLOCK_KEY_PASSPHRASE)"
    )
    for action, run, wrong in (
        (sign, _anchor, "it is signed and kept, and could not be published everywhere"),
        (turn, _rotate, ""),
    ):
        common(action)
        document_exits(action, wrong=wrong)
        action.set_defaults(run=lambda given, run=run: run_to_end(run(given)))


async def _anchor(given: argparse.Namespace) -> int:
    settings = load_command_settings(given).settings
    file = Path(given.out or settings.anchors)
    async with open_ledger(settings) as store:
        key = await _signing_key(given, settings, store)
        if given.out == "-":
            checkpoint = await anchor(store, key, SystemClock())
            sys.stdout.buffer.write(msgspec.json.encode(checkpoint) + b"\n")
            sys.stdout.flush()
            return 0
        # Opened first: a checkpoint that cannot be written down elsewhere is not made.
        with _open_anchors(file) as out:
            checkpoint = await anchor(store, key, SystemClock())
            _add(out, checkpoint)
    receipts, faults = _publish((*settings.publish, *(given.publish or ())), checkpoint, file)
    if given.json:
        print_json({**msgspec.to_builtins(checkpoint), "published": receipts, "faults": faults})
        return 1 if faults else 0
    console().print(
        f"checkpoint {checkpoint.n} signed by {checkpoint.public_key[:16]}… and added to {sanitize(str(file))}"
    )
    for receipt in receipts:
        console().print(f"published to {sanitize(receipt.target)} [dim]{sanitize(receipt.receipt[:40])}[/]")
    for fault in faults:
        notes().print(f"[red]not published:[/] {sanitize(fault)}")
    if not receipts:
        console().print("[dim]keep a copy of that file where whoever can write the store cannot[/]")
    return 1 if faults else 0


async def _signing_key(given: argparse.Namespace, settings: Settings, store: Store) -> SigningKey:
    """The key that is named; the usual one, made only where nothing was signed before."""
    file = find_key_file(settings, given.key)
    if given.key is not None or file.exists():
        return load_key(file)
    if await store.checkpoints():
        raise ConfigError(
            f"{file}: the key that signed this ledger is not there; put it back, name it with --key,"
            " or begin anew with: interlock audit rotate --lost"
        )
    return load_or_make_key(file)


def _open_anchors(file: Path) -> Any:
    try:
        return file.open("ab")
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written: {error.strerror}") from None


def _add(out: Any, checkpoint: Checkpoint) -> None:
    out.write(msgspec.json.encode(checkpoint) + b"\n")
    out.flush()
    os.fsync(out.fileno())


def _publish(targets: tuple[str, ...], checkpoint: Checkpoint, file: Path) -> tuple[list[Receipt], list[str]]:
    """Hand the anchor on; what came back is kept beside the file of anchors."""
    receipts: list[Receipt] = []
    faults: list[str] = []
    for target in targets:
        try:
            receipts.append(publish(target, checkpoint))
        except ConfigError as error:
            faults.append(str(error))
    if receipts:
        with file.with_name(f"{file.name}.receipts").open("ab") as out:
            out.writelines(msgspec.json.encode(receipt) + b"\n" for receipt in receipts)
    return receipts, faults


async def _rotate(given: argparse.Namespace) -> int:
    settings = load_command_settings(given).settings
    file, anchors = find_key_file(settings, None), Path(settings.anchors)
    if given.lost and file.exists():
        raise ConfigError(f"{file}: the key is there, so it is not lost; rotate without --lost")
    fresh = file.with_name(f"{file.name}.new")
    for leftover in (fresh, public_file(fresh)):
        leftover.unlink(missing_ok=True)
    make_key(fresh, encrypted=given.encrypt)
    async with open_ledger(settings) as store:
        old, new = None if given.lost else load_key(file), load_key(fresh)
        with _open_anchors(anchors) as out:
            checkpoint = await rotate(store, old, new, SystemClock())
            _add(out, checkpoint)
    if old is not None:  # kept: whoever pinned it can still follow
        for kept in (file, public_file(file)):
            if kept.exists():
                kept.rename(kept.with_name(f"{kept.name}.{old.public[:16]}"))
    fresh.rename(file)
    public_file(fresh).rename(public_file(file))
    if given.json:
        print_json({"checkpoint": checkpoint.n, "old": None if old is None else old.public, "new": new.public})
        return 0
    console().print(f"from now on {new.public[:16]}… signs [dim](checkpoint {checkpoint.n}, {sanitize(str(file))})[/]")
    if old is None:
        console().print("[yellow]whoever pinned the lost key has to pin this one, and to ask why[/]")
    return 0
