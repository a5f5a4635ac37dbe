"""Backups: every document a line, restored document by document through the gate; and drift from the journal."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlock.errors import ConfigError
from interlock_catalog.app import AppContext, open_app, open_backend
from interlock_catalog.backends import Backend, iterate_pages
from interlock_catalog.contracts import KINDS, Doc, Json
from interlock_catalog.document_keys import DocumentKind, kind_of
from interlock_catalog.evidence import Evidence
from interlock_catalog.runner.ids import new_run_id
from interlock_catalog.settings import Loaded
from interlock_catalog.text_files import read_json_lines

_CHUNK = 500


_KINDS = frozenset({*KINDS, DocumentKind.SEARCH})


async def iterate_documents(backend: Backend) -> AsyncIterator[tuple[str, Json]]:
    """Every document of a catalog with its key, page by page; the log of searches last."""
    for read_page in (backend.exercises, backend.aliases, backend.families):
        async for page in iterate_pages(read_page):
            for key, doc in page.items():
                yield key, doc.value
    after = ""
    while found := await backend.searches(after=after, limit=_CHUNK):
        # As they are written; a server gives only what they say.
        written = await backend.read_many(search.id for search in found)
        for search in found:
            said = {"query": search.query, "hits": search.hits, "count": search.count}
            yield search.id, written[search.id].value if search.id in written else said
        after = found[-1].id


async def write_backup(loaded: Loaded, file: Path) -> int:
    """Write every document to a file; it appears under its name when it is complete."""
    if file.is_dir():
        raise ConfigError(f"{file}: is a folder; name a file, such as catalog.jsonl")
    backend, count, partial = open_backend(loaded.settings), 0, file.with_name(f"{file.name}.part")
    try:
        with partial.open("w", encoding="utf-8") as out:
            async for key, state in iterate_documents(backend):
                out.write(json.dumps({"key": key, "state": state}, ensure_ascii=False, sort_keys=True) + "\n")
                count += 1
    finally:
        await backend.close()
    partial.replace(file)
    return count


def read_backup(file: Path) -> dict[str, Doc]:
    """The documents of a backup."""
    found: dict[str, Doc] = {}
    try:
        for number, item in read_json_lines(file, "is no backup", _refuse_repeated):
            if not isinstance(item, dict) or kind_of(str(item.get("key"))) not in _KINDS or "state" not in item:
                raise ConfigError(f"{file}:{number}: is no document of a backup")
            if item["key"] in found:
                raise ConfigError(f"{file}:{number}: {item['key']} comes a second time; which of the two is right?")
            if not isinstance(item["state"], dict):
                raise ConfigError(f"{file}:{number}: the state of {item['key']} is no object")
            found[item["key"]] = item["state"]
    except FileNotFoundError:
        raise ConfigError(f"{file}: there is no such file") from None
    return found


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON readers keep the last of two fields of one name, and drop the other without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a field twice, and only one of the two can be put back")
    return found


class Restored(msgspec.Struct, frozen=True):
    """What a restore did, or would do: how each document came out, and what it left alone."""

    run: str
    put_back: dict[str, str]
    """Documents that are not what they are in the backup, or not there."""
    deleted: dict[str, str]
    """Documents that are not in the backup; only where that was asked for."""
    left: tuple[str, ...]
    """Documents that are not in the backup, and stay as they are."""
    searches: str = ""
    """Why the log of searches was left as it is; '' if it was restored, too."""

    @property
    def is_complete(self) -> bool:
        """Whether everything that was asked for was done, or could be planned."""
        return {*self.put_back.values(), *self.deleted.values()} <= {"ok", "planned"}


async def restore_backup(loaded: Loaded, file: Path, *, apply: bool, delete_others: bool = False) -> Restored:
    """Plan (or, with `apply`, make) what brings the catalog back to a backup.

    What is not in the backup may have been made since by somebody who wants it: it is deleted only on request.
    """
    wanted, run = read_backup(file), new_run_id()
    async with open_app(loaded) as app:
        present = {key: state async for key, state in iterate_documents(app.backend)}
        why = _leave_searches(loaded, wanted, present)
        if why:
            wanted, present = _without_searches(wanted), _without_searches(present)
        differ = sorted(key for key, state in wanted.items() if present.get(key) != state)
        others = sorted(key for key in present if key not in wanted)

        async def restore(keys: list[str]) -> dict[str, str]:
            return {key: await _restore_document(app, run, key, wanted.get(key), apply=apply) for key in keys}

        put_back = await restore(differ)
        deleted = await restore(others) if delete_others else {}
    return Restored(run, put_back, deleted, () if delete_others else tuple(others), why)


def _leave_searches(loaded: Loaded, wanted: Mapping[str, Doc], present: Mapping[str, Json]) -> str:
    """Why the log of searches stays as it is, if it does: what a backup never held must not be deleted by it."""
    if not any(map(_is_search, present)) and not any(map(_is_search, wanted)):
        return ""
    if not any(map(_is_search, wanted)):
        return "the backup holds none: there were none then, or it is of an earlier version, which left them out"
    return "it is the server's: restore it where the server is" if loaded.settings.is_remote else ""


def _without_searches(docs: Mapping[str, Json]) -> dict[str, Json]:
    return {key: state for key, state in docs.items() if not _is_search(key)}


def _is_search(key: str) -> bool:
    return kind_of(key) is DocumentKind.SEARCH


async def _restore_document(app: AppContext, run: str, key: str, state: Doc | None, *, apply: bool) -> str:
    outcome = await app.runtime.call(
        "restore_document",
        {"key": key, "state": state},
        actor="person",
        run=run,
        turn=run,
        mode="apply" if apply else "dry_run",
        evidence=(Evidence("backup", "file").text,),
    )
    return outcome.status.value


class _Recorded(msgspec.Struct, frozen=True):
    """What the journal says that a document was made."""

    record: int
    state: Json


async def find_drift(loaded: Loaded) -> dict[str, Any]:
    """Documents that are not what the journal says the last recorded change made of them."""
    async with open_app(loaded) as app:
        last: dict[str, _Recorded] = {}
        async for entry in app.runtime.operations.journal():
            if entry.status == "done" and isinstance(entry.after, dict):
                # The journal is in the order of the changes, so the last one of a document stays.
                last |= {key: _Recorded(entry.record, state) for key, state in entry.after.items()}
        found = []
        keys = sorted(last)
        for start in range(0, len(keys), _CHUNK):
            page = keys[start : start + _CHUNK]
            now = await app.backend.read_many(page)
            for key in page:
                state = now[key].value if key in now else None
                if state != last[key].state:
                    recorded = {"record": last[key].record, "journal": last[key].state}
                    found.append({"key": key, **recorded, "catalog": state})
    return {"compared": len(last), "drifted": msgspec.to_builtins(found)}
