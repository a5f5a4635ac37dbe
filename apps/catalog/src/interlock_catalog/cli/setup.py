"""`interlock catalog init`, `config`, `enable` and `disable`."""

from __future__ import annotations

import argparse
import asyncio
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.cli.output import console, notes, print_json, sanitize, table
from interlock.config import help_texts
from interlock.errors import ConfigError
from interlock_catalog.cli.arguments import add_command
from interlock_catalog.cli.families import list_families, require_families
from interlock_catalog.cli.imports import Import, print_import, read_import
from interlock_catalog.counts import format_count
from interlock_catalog.document_keys import DocumentKind, kind_of
from interlock_catalog.enabled import ENABLED, EVERY, read_enabled
from interlock_catalog.settings import (
    FILE,
    Loaded,
    Settings,
    home_option,
    is_remote_address,
    load_catalog_settings,
    load_existing_catalog,
)

if TYPE_CHECKING:
    from interlock_catalog.contracts import Doc
    from interlock_catalog.seed.demonstration import PlantedCatalog

_CATALOG = """\
# Settings of the catalog; every key is explained in docs/catalog.md.
backend = "{backend}"
engine = "{engine}"
model = "{model}"
"""
# repeats: a run reads and proposes the same again on purpose, after a crash or a second look.
# lease_s: short, so that a family that a dead worker has locked is free again within seconds.
_LEDGER = """\
# Settings of Interlock for this folder.
store = "{store}"
policy = "policy.toml"
tools = ["interlock_catalog.app:TOOLS"]
repeats = "allow"
lease_s = 5
"""


def register(actions: Any) -> None:
    _register_init(actions)
    add_command(actions, "config", run_config, "show the settings and where they came from")
    enable = add_command(
        actions,
        "enable",
        run_enable,
        "let families be changed",
        "Let the autopilot change families that so"
        " far it could only observe. What may be changed is in enabled.txt, which the policy reads.",
    )
    disable = add_command(
        actions,
        "disable",
        run_disable,
        "have families only observed again",
        "Have the autopilot only observe families that it could change.",
    )
    for parser in (enable, disable):
        parser.add_argument("families", nargs="*", help="their slugs")
        parser.add_argument("--all", action="store_true", help="every family")


def _register_init(actions: Any) -> None:
    init = add_command(
        actions,
        "init",
        run_init,
        "make a catalog to work on",
        "Make a catalog in this folder: settings, policy,"
        " and 893 exercises in 122 families with 280 planted faults (or none, or your own).",
    )
    init.add_argument("--clean", action="store_true", help="exercises without faults")
    init.add_argument("--empty", action="store_true", help="no exercises at all")
    init.add_argument("--from", dest="source", type=Path, metavar="FILE", help="exercises of free-exercise-db as JSON")
    init.add_argument("--skip", action="store_true", help="with --from: leave out, and list, what cannot be imported")
    init.add_argument("--check", action="store_true", help="with --from: only say what would become of the file")
    init.add_argument("--backend", help="sqlite:///FILE, postgresql://… or http://… (default: a file here)")
    init.add_argument("--engine", help="where runs are stored (default: a file here)")
    init.add_argument("--store", help="where the ledger is (default: a file here)")
    init.add_argument("--model", default="none", help="who judges: none, local, provider:name (default: none)")


def run_init(given: argparse.Namespace) -> int:
    """Make a folder ready, and fill its catalog."""
    folder: Path = given.home or Path()
    if (folder / FILE).exists():
        raise ConfigError(f"{folder / FILE}: there is a catalog here already")
    if given.source is None and (given.skip or given.check):
        raise ConfigError("--skip and --check are about records of --from FILE")
    if given.source is not None and is_remote_address(given.backend or ""):
        raise ConfigError("an import goes into a database; run it where the server is, without --backend http…")
    imported = None if given.source is None else read_import(given.source, skip=given.skip)
    catalog = _choose_catalog(given, imported)
    if imported is not None:
        print_import(imported, json=given.json)  # before anything is written: the source may be wrong
    if given.check:
        _print_beginning(given, "nothing was written; it would be", catalog, imported)
        return 0
    loaded = _make(folder, given, catalog)
    if loaded.settings.is_remote and not given.json:
        console().print(f"{sanitize(folder)}: nothing (the catalog is behind the address)")
    else:
        _print_beginning(given, "", catalog, imported)
    if not given.json:
        console().print(f"now: interlock catalog run --dry-run{sanitize(home_option(given.home))}")
    return 0


def _make(folder: Path, given: argparse.Namespace, catalog: PlantedCatalog) -> Loaded:
    """Fill the catalog, and only then write what makes the folder one: an init that fails leaves none behind."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{FILE}.part"
    names = {"backend": given.backend or "sqlite:///catalog.db", "engine": given.engine or "sqlite:///runs.db"}
    partial.write_text(_CATALOG.format(**names, model=given.model), encoding="utf-8")
    try:
        loaded = load_catalog_settings(folder, file=partial.name)
        if loaded.settings.is_remote:
            _write_settings(folder, given, partial)
        else:
            with notes().status("filling the catalog"):
                asyncio.run(_fill(loaded, catalog.docs, lambda: _write_settings(folder, given, partial)))
            if catalog.faults:
                # What is planted and what is right, so that a newcomer can compare; how is of no use there.
                planted = [msgspec.structs.replace(fault, edits=()) for fault in catalog.faults]
                (folder / "planted.json").write_bytes(msgspec.json.format(msgspec.json.encode(planted), indent=1))
    finally:
        partial.unlink(missing_ok=True)
    return load_existing_catalog(folder)


def _print_beginning(given: argparse.Namespace, lead: str, catalog: PlantedCatalog, imported: Import | None) -> None:
    found = Counter(kind_of(key) for key in catalog.docs)
    counts = {kind.value: found[kind] for kind in (DocumentKind.EXERCISE, DocumentKind.FAMILY, DocumentKind.ALIAS)}
    folder = given.home or Path()
    if given.json:
        account = dict[str, Any]()
        if imported is not None:
            account = {"written": not given.check, "skipped": imported.skipped}
            account |= msgspec.structs.asdict(imported.account)
        print_json({"home": str(folder), **counts, "planted": len(catalog.faults), **account})
        return
    what = (
        f"{format_count(counts['exercise'], 'exercise')} in {format_count(counts['family'], 'family', 'families')},"
        f" {format_count(counts['alias'], 'alias', 'aliases')}, {format_count(len(catalog.faults), 'planted fault')}"
    )
    console().print(f"{sanitize(folder)}: {lead}{' ' if lead else ''}{what}")


def _choose_catalog(given: argparse.Namespace, imported: Import | None) -> PlantedCatalog:
    from interlock_catalog.seed import build_clean_catalog, build_demonstration
    from interlock_catalog.seed.demonstration import PlantedCatalog

    if imported is not None:
        return PlantedCatalog(imported.docs, ())
    if given.empty:
        return PlantedCatalog({}, ())
    return PlantedCatalog(build_clean_catalog(), ()) if given.clean else build_demonstration()


def _write_settings(folder: Path, given: argparse.Namespace, partial: Path) -> None:
    from interlock_catalog.app import POLICY

    if not (folder / "interlock.toml").exists():
        store = given.store or "sqlite:///interlock.db"
        (folder / "interlock.toml").write_text(_LEDGER.format(store=store), encoding="utf-8")
    if not (folder / "policy.toml").exists():
        shutil.copyfile(POLICY, folder / "policy.toml")
    (folder / ENABLED).touch()
    # Last: with this file the folder is a catalog.
    partial.replace(folder / FILE)


async def _fill(loaded: Loaded, docs: dict[str, Doc], write_settings: Callable[[], None]) -> None:
    from interlock_catalog.backends.embedded import DatabaseBackend

    backend = DatabaseBackend(loaded.settings.backend)

    async def fill_whole() -> None:
        await backend.fill(docs)
        write_settings()

    try:
        if await backend.documents.count():
            raise ConfigError(f"{loaded.settings.backend}: there are documents already; name another, or remove it")
        filling = asyncio.ensure_future(fill_whole())
        try:
            await asyncio.shield(filling)
        except asyncio.CancelledError:
            # Ctrl-C: a transaction that has begun is waited for, so that there is a whole catalog or none.
            await filling
            raise
    finally:
        await backend.close()


def run_config(given: argparse.Namespace) -> int:
    """Every setting, its value, and where it came from; the token is not shown."""
    loaded = load_existing_catalog(given.home)
    values: dict[str, Any] = msgspec.to_builtins(loaded.settings)
    values["token"] = "(set)" if values["token"] else ""
    if given.json:
        print_json({key: {"value": value, "from": loaded.origins[key]} for key, value in values.items()})
        return 0
    rows, help = table("settings", ("setting", "value", "from", "what it is")), help_texts(Settings)
    for key, value in values.items():
        rows.add_row(key, sanitize(value) or "–", sanitize(loaded.origins[key]), f"[dim]{sanitize(help[key])}[/]")
    console().print(rows)
    return 0


def run_enable(given: argparse.Namespace) -> int:
    """Let families be changed."""
    loaded = load_existing_catalog(given.home)
    wanted = asyncio.run(_read_wanted(given, loaded))
    return _write_enabled(given, loaded, read_enabled(loaded) | wanted)


def run_disable(given: argparse.Namespace) -> int:
    """Have families only observed again."""
    loaded = load_existing_catalog(given.home)
    wanted = asyncio.run(_read_wanted(given, loaded))
    enabled = read_enabled(loaded)
    if given.all:
        return _write_enabled(given, loaded, set())
    if EVERY in enabled:  # all but these: from now on the others are named
        enabled |= asyncio.run(list_families(loaded.settings))
        enabled.discard(EVERY)
    return _write_enabled(given, loaded, enabled - wanted)


def _write_enabled(given: argparse.Namespace, loaded: Loaded, enabled: set[str]) -> int:
    (loaded.folder / ENABLED).write_text("".join(f"{name}\n" for name in sorted(enabled)), encoding="utf-8")
    if given.json:
        print_json({"enabled": sorted(enabled)})
    else:
        console().print(f"may be changed: {sanitize(', '.join(sorted(enabled)) or 'nothing')}")
    return 0


async def _read_wanted(given: argparse.Namespace, loaded: Loaded) -> set[str]:
    """The families that are named, which must exist; `*` for all."""
    if not given.families and not given.all:
        raise ConfigError(f"{given.action} what? name families, or --all")
    if given.all:
        return {EVERY}
    await require_families(loaded.settings, given.families, given.home)
    return set(given.families)
