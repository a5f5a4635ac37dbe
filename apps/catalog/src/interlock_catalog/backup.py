"""Backups: every document a line; and back again, document by document, through the gate."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from interlock.errors import ConfigError
from interlock.values import Versioned
from interlock_catalog.app import Shop, backend_of, opened
from interlock_catalog.backends import Backend
from interlock_catalog.contracts import KINDS, Doc, kind_of
from interlock_catalog.runner.ids import new_run
from interlock_catalog.settings import Loaded

_PAGE = 500


async def every(backend: Backend) -> AsyncIterator[tuple[str, Versioned]]:
    """Every document of a catalog, page by page."""
    for page_of in (backend.exercises, backend.aliases, backend.families):
        after = ""
        while True:
            page = await page_of(after=after, limit=_PAGE)
            for item in page.items():
                yield item
            if len(page) < _PAGE:
                break
            after = next(reversed(page))


async def written(loaded: Loaded, file: Path) -> int:
    """Write a backup; the file appears when it is whole."""
    backend, count, partial = backend_of(loaded), 0, file.with_name(f"{file.name}.part")
    try:
        with partial.open("w", encoding="utf-8") as out:
            async for key, doc in every(backend):
                out.write(json.dumps({"key": key, "state": doc.value}, ensure_ascii=False, sort_keys=True) + "\n")
                count += 1
    finally:
        await backend.close()
    partial.replace(file)
    return count


def read_backup(file: Path) -> dict[str, Doc]:
    """The documents of a backup."""
    found: dict[str, Doc] = {}
    try:
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            item = json.loads(line)
            if not isinstance(item, dict) or kind_of(str(item.get("key"))) not in KINDS or "state" not in item:
                raise ConfigError(f"{file}:{number}: is no document of a backup")
            found[item["key"]] = item["state"]
    except FileNotFoundError:
        raise ConfigError(f"{file}: there is no such file") from None
    except ValueError as error:
        raise ConfigError(f"{file}: is no backup: {error}") from None
    return found


async def restored(loaded: Loaded, file: Path, *, yes: bool) -> dict[str, Any]:
    """Plan (or, with `yes`, make) what brings the catalog back to a backup; how each document came out."""
    wanted, run = read_backup(file), new_run()
    async with opened(loaded) as shop:
        differ: dict[str, Doc | None] = {}
        seen: set[str] = set()
        async for key, doc in every(shop.parts.backend):
            seen.add(key)
            if doc.value != wanted.get(key):
                differ[key] = wanted.get(key)
        differ |= {key: state for key, state in wanted.items() if key not in seen}
        done = {key: await _put_back(shop, run, key, state, yes=yes) for key, state in sorted(differ.items())}
    return {"run": run, "documents": done}


async def _put_back(shop: Shop, run: str, key: str, state: Doc | None, *, yes: bool) -> str:
    outcome = await shop.runtime.call(
        "restore_document",
        {"key": key, "state": state},
        actor="person",
        run=run,
        turn=run,
        mode="apply" if yes else "dry_run",
        evidence=("backup:file",),
    )
    return outcome.status.value


async def drifted(loaded: Loaded) -> dict[str, Any]:
    """Documents that are not what the journal says the last recorded change made of them."""
    async with opened(loaded) as shop:
        last: dict[str, tuple[int, Any]] = {}
        async for entry in shop.runtime.operations.journal():
            if entry.status == "done" and isinstance(entry.after, dict):
                for key, state in entry.after.items():
                    last[key] = (entry.record, state)
        found = []
        keys = sorted(last)
        for start in range(0, len(keys), _PAGE):
            some = keys[start : start + _PAGE]
            now = await shop.parts.backend.read_many(some)
            for key in some:
                state = now[key].value if key in now else None
                if state != last[key][1]:
                    found.append({"key": key, "record": last[key][0], "journal": last[key][1], "catalog": state})
    return {"compared": len(last), "drifted": msgspec.to_builtins(found)}
