"""`interlock catalog init`, `import`, `enable`, `backup` and `restore`."""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import msgspec

from interlock.cli.output import console, notes, print_json, shown
from interlock.errors import ConfigError
from interlock_catalog.cli.common import add, loaded_of
from interlock_catalog.settings import FILE, Loaded

_CATALOG = """\
# Settings of the catalog; every key is explained in docs/catalog.md.
backend = "{backend}"
engine = "{engine}"
model = "{model}"
"""
_LEDGER = """\
# Settings of Interlock for this folder.
store = "{store}"
policy = "policy.toml"
tools = ["interlock_catalog.app:TOOLS"]
repeats = "allow"
lease_s = 5
"""


def register(actions: Any) -> None:
    """Add the commands."""
    init = add(
        actions,
        "init",
        run_init,
        "make a catalog to work on",
        "Make a catalog in this folder: settings, policy,"
        " and 872 exercises in 122 families with planted faults (or none, or your own).",
    )
    init.add_argument("--clean", action="store_true", help="plant no faults")
    init.add_argument("--empty", action="store_true", help="no exercises at all")
    init.add_argument("--seed", type=int, default=None, help="which faults are planted (default: always the same)")
    init.add_argument("--from", dest="source", type=Path, metavar="FILE", help="exercises of free-exercise-db as JSON")
    init.add_argument("--backend", help="sqlite:///FILE, postgresql://… or http://… (default: a file here)")
    init.add_argument("--engine", help="where runs are remembered (default: a file here)")
    init.add_argument("--store", help="where the ledger is (default: a file here)")
    init.add_argument("--model", default="none", help="who judges: none, local, provider:name (default: none)")
    enable = add(
        actions,
        "enable",
        run_enable,
        "let families be changed",
        "Let the autopilot change families that so"
        " far it could only observe. What may be changed is in enabled.txt, which the policy reads.",
    )
    enable.add_argument("families", nargs="*", help="their slugs")
    enable.add_argument("--all", action="store_true", help="every family")
    enable.add_argument("--off", action="store_true", help="observe them only, again")
    backup = add(actions, "backup", run_backup, "write the whole catalog to a file")
    backup.add_argument("file", type=Path)
    restore = add(
        actions,
        "restore",
        run_restore,
        "bring the catalog back to a backup",
        "Bring every document back to"
        " what it is in a backup, each as a call through the gate; only shown unless --yes.",
    )
    restore.add_argument("file", type=Path)
    restore.add_argument("--yes", action="store_true", help="do it")


def run_init(given: argparse.Namespace) -> int:
    """Make a folder ready, and fill its catalog."""
    folder: Path = given.home or Path()
    if (folder / FILE).exists():
        raise ConfigError(f"{folder / FILE}: there is a catalog here already")
    docs, planted = _documents(given)
    folder.mkdir(parents=True, exist_ok=True)
    names = {"backend": given.backend or "sqlite:///catalog.db", "engine": given.engine or "sqlite:///runs.db"}
    (folder / FILE).write_text(_CATALOG.format(**names, model=given.model), encoding="utf-8")
    if not (folder / "interlock.toml").exists():
        store = given.store or "sqlite:///interlock.db"
        (folder / "interlock.toml").write_text(_LEDGER.format(store=store), encoding="utf-8")
    from interlock_catalog.app import POLICY

    if not (folder / "policy.toml").exists():
        shutil.copyfile(POLICY, folder / "policy.toml")
    (folder / "enabled.txt").touch()
    loaded = loaded_of(argparse.Namespace(home=folder))
    remote = loaded.settings.backend.startswith("http")
    with notes().status("filling the catalog"):
        if not remote:
            asyncio.run(_fill(loaded, docs))
    if planted is not None and not remote:
        text = msgspec.json.format(msgspec.json.encode(planted), indent=1)
        (folder / "planted.json").write_bytes(text)
    kinds = {kind: sum(key.startswith(f"{kind}:") for key in docs) for kind in ("exercise", "family", "alias")}
    if given.json:
        print_json({"home": str(folder), **kinds, "planted": len(planted or [])})
    else:
        what = (
            "nothing (the catalog is behind the address)"
            if remote
            else (
                f"{kinds['exercise']} exercises in {kinds['family']} families, {kinds['alias']} aliases,"
                f" {len(planted or [])} planted faults"
            )
        )
        console().print(f"{shown(folder)}: {what}\nnow: interlock catalog run --dry-run")
    return 0


def _documents(given: argparse.Namespace) -> tuple[dict[str, Any], list[Any] | None]:
    from interlock_catalog.seed import clean_catalog, plant

    if given.empty:
        return {}, None
    if given.source is not None:
        from interlock_catalog.importing import imported

        return imported(_read(given.source)), None
    docs = clean_catalog()
    if given.clean:
        return docs, None
    return plant(docs) if given.seed is None else plant(docs, seed=given.seed)


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{file}: there is no such file") from None
    except (ValueError, OSError) as error:
        raise ConfigError(f"{file}: not JSON: {error}") from None


async def _fill(loaded: Loaded, docs: dict[str, Any]) -> None:
    from interlock_catalog.backends.embedded import DatabaseBackend

    backend = DatabaseBackend(loaded.url("backend"))
    try:
        if await backend.documents.count():
            raise ConfigError(f"{loaded.settings.backend}: there are documents already; name another, or remove it")
        await backend.fill(docs)
    finally:
        await backend.close()


def run_enable(given: argparse.Namespace) -> int:
    """Edit enabled.txt."""
    loaded = loaded_of(given)
    if not given.families and not given.all:
        raise ConfigError("enable what? name families, or --all")
    file = loaded.folder / "enabled.txt"
    now = (
        {line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()}
        if file.exists()
        else set()
    )
    asked = {"*"} if given.all else set(given.families)
    if not given.all:
        asyncio.run(_refuse_unknown(loaded, asked))
    now = now - asked if given.off else now | asked
    file.write_text("".join(f"{name}\n" for name in sorted(now)), encoding="utf-8")
    if given.json:
        print_json({"enabled": sorted(now)})
    else:
        console().print(f"may be changed: {shown(', '.join(sorted(now)) or 'nothing')}")
    return 0


async def _refuse_unknown(loaded: Loaded, families: set[str]) -> None:
    from interlock_catalog.app import backend_of

    backend = backend_of(loaded)
    try:
        there = await backend.read_many(f"family:{name}" for name in families)
    finally:
        await backend.close()
    missing = sorted(name for name in families if f"family:{name}" not in there)
    if missing:
        raise ConfigError(f"there is no family {', '.join(missing)}; see `interlock catalog list --families`")


def run_backup(given: argparse.Namespace) -> int:
    """Write every document to a file, a line each."""
    from interlock_catalog.keeping import written

    loaded = loaded_of(given)
    with notes().status("writing"):
        count = asyncio.run(written(loaded, given.file))
    if given.json:
        print_json({"file": str(given.file), "documents": count})
    else:
        console().print(f"{shown(given.file)}: {count} documents")
    return 0


def run_restore(given: argparse.Namespace) -> int:
    """Show what differs from a backup, or put it back."""
    from interlock_catalog.keeping import restored

    loaded = loaded_of(given)
    with notes().status("comparing"):
        done = asyncio.run(restored(loaded, given.file, yes=given.yes))
    if given.json:
        print_json(done)
    else:
        for key, state in done["documents"].items():
            console().print(f"  {shown(key)}  {state}")
        word = "restored" if given.yes else "would be restored (do it with --yes)"
        console().print(f"[bold]{len(done['documents'])} documents {word}[/]  run {shown(done['run'])}")
    return 0 if all(state in ("ok", "planned") for state in done["documents"].values()) else 1
