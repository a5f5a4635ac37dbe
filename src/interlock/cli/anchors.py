"""`interlock audit anchor` and `audit rotate`: sign where the ledger ends, hand that to others, change the key."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import msgspec

from interlock.audit import anchor, load_key, load_or_make_key, load_public_key, make_key, public_file, rotate
from interlock.audit.checkpoints import current_key, refuse_other_ledger
from interlock.audit.keys import SigningKey, public_part
from interlock.audit.publish import Receipt, check_target, publish
from interlock.cli.interrupts import run_to_end
from interlock.cli.ledger import open_ledger
from interlock.cli.options import find_key_file, load_command_settings
from interlock.cli.output import console, notes, print_json, sanitize
from interlock.cli.parser import document_exits
from interlock.cli.results import result_stream
from interlock.cli.terminal_text import escape_controls
from interlock.config import Settings
from interlock.errors import ConfigError
from interlock.ports import Store, SystemClock
from interlock.records import Checkpoint


def register(actions: Any, common: Any) -> None:
    sign = actions.add_parser("anchor", help="sign where the ledger ends now, and add that to the file of anchors")
    sign.add_argument("--out", metavar="FILE", help="file to add to (default: the setting 'anchors'); - prints it")
    sign.add_argument("--key", metavar="PEM", help="the Ed25519 key to sign with (default: made on first use)")
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
    public = actions.add_parser("key", help="the public key that signs, whole, as `audit verifier` takes it")
    public.add_argument("--key", metavar="PEM", help="another key file, private or public")
    for action in (sign, turn):
        action.add_argument(
            "--publish", action="append", metavar="WHERE", help="and hand it to git:FOLDER or https://…"
        )
    unpublished = "it is signed and kept, and could not be published everywhere"
    for action, run in ((sign, _anchor), (turn, _rotate)):
        common(action)
        document_exits(action, wrong=unpublished)
        action.set_defaults(run=lambda given, run=run: run_to_end(run(given)))
    common(public)
    document_exits(public, store=False)
    public.set_defaults(run=_show_key)


async def _anchor(given: argparse.Namespace) -> int:
    settings = load_command_settings(given).settings
    targets, file = _find_targets(given, settings), Path(given.out or settings.anchors)
    async with open_ledger(settings) as store:
        if given.out == "-":
            checkpoint = await anchor(store, await _signing_key(given, settings, store), SystemClock())
            result_stream().write(escape_controls(msgspec.json.encode(checkpoint).decode()) + "\n")
            result_stream().flush()
            return 0
        refuse_other_ledger(file, store.identity.ledger)
        key = await _signing_key(given, settings, store)
        # Opened first: a checkpoint that cannot be written down elsewhere is not made.
        with _open_anchors(file) as out:
            checkpoint = await anchor(store, key, SystemClock())
            _add(out, checkpoint)
    receipts, faults = _publish(targets, checkpoint, file)
    if given.json:
        print_json({**msgspec.to_builtins(checkpoint), "published": receipts, "faults": faults})
        return 1 if faults else 0
    console().print(
        f"checkpoint {checkpoint.n} signed by {checkpoint.public_key[:16]}… and added to {sanitize(str(file))}"
    )
    return _show_published(receipts, faults)


def _show_published(receipts: list[Receipt], faults: list[str]) -> int:
    for receipt in receipts:
        console().print(f"published to {sanitize(receipt.target)} [dim]{sanitize(receipt.receipt[:40])}[/]")
    for fault in faults:
        notes().print(f"[red]not published:[/] {sanitize(fault)}")
    if not receipts:
        console().print("[dim]keep a copy of that file where whoever can write the store cannot[/]")
    return 1 if faults else 0


def _find_targets(given: argparse.Namespace, settings: Settings) -> tuple[str, ...]:
    """Where the anchor goes beside its file; refused before anything is signed if that is nowhere."""
    targets = (*settings.publish, *(given.publish or ()))
    for target in targets:
        check_target(target)
    return targets


def _show_key(given: argparse.Namespace) -> int:
    file = public_part(find_key_file(load_command_settings(given).settings, given.key))
    if not file.exists():
        raise ConfigError(f"{file}: there is no key; interlock audit anchor makes one, --key names another")
    public = load_public_key(file)
    if given.json:
        print_json({"public_key": public, "file": str(file)})
    else:
        print(public, file=result_stream())
    return 0


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
    targets = _find_targets(given, settings)
    file, anchors = find_key_file(settings, None), Path(settings.anchors)
    if given.lost and file.exists():
        raise ConfigError(f"{file}: the key is there, so it is not lost; rotate without --lost")
    async with open_ledger(settings) as store:
        refuse_other_ledger(anchors, store.identity.ledger)
        old = None if given.lost else _outgoing_key(file)
        with _open_anchors(anchors) as out:
            checkpoint, new = await _hand_over(store, old, file, given.encrypt)
            _add(out, checkpoint)
    _put_in_place(file, old)
    receipts, faults = _publish(targets, checkpoint, anchors)
    if given.json:
        who = {"checkpoint": checkpoint.n, "old": None if old is None else old.public, "new": new}
        print_json({**who, "published": receipts, "faults": faults})
        return 1 if faults else 0
    console().print(f"from now on {new[:16]}… signs [dim](checkpoint {checkpoint.n}, {sanitize(str(file))})[/]")
    if old is None:
        console().print("[yellow]whoever pinned the lost key has to pin this one, and to ask why[/]")
    return _show_published(receipts, faults)


def _outgoing_key(file: Path) -> SigningKey:
    if not file.exists():
        raise ConfigError(
            f"{file}: the key that would hand over is not there; put it back, or, if it cannot be had any more, begin"
            " anew with: interlock audit rotate --lost"
        )
    return load_key(file)


async def _hand_over(store: Store, old: SigningKey | None, file: Path, encrypted: bool) -> tuple[Checkpoint, str]:
    """The checkpoint that names a new key, which lies beside the old one, and that key's public half.

    A command that died when the ledger had taken the checkpoint has left that key there: it is the one that signs.
    """
    fresh, made = _fresh_file(file), await store.checkpoints()
    if public_file(fresh).exists() and made and current_key(made[-1]) == load_public_key(public_file(fresh)):
        return made[-1], current_key(made[-1])
    for leftover in (fresh, public_file(fresh)):
        leftover.unlink(missing_ok=True)
    make_key(fresh, encrypted=encrypted)
    new = load_key(fresh)
    try:
        return await rotate(store, old, new, SystemClock()), new.public
    except ConfigError:  # refused, so that nobody will ever ask for this key
        for leftover in (fresh, public_file(fresh)):
            leftover.unlink(missing_ok=True)
        raise


def _put_in_place(file: Path, old: SigningKey | None) -> None:
    """The new key under the usual name; the old one is kept: whoever pinned it can still follow."""
    if old is not None:
        for kept in (file, public_file(file)):
            if kept.exists():
                kept.rename(kept.with_name(f"{kept.name}.{old.public[:16]}"))
    fresh = _fresh_file(file)
    fresh.rename(file)
    public_file(fresh).rename(public_file(file))


def _fresh_file(file: Path) -> Path:
    """Where a new key lies until the ledger has taken it."""
    return file.with_name(f"{file.name}.new")
