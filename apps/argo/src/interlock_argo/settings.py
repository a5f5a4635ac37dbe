"""Argo's own settings: argo.toml, table by table, and ARGO_* variables; a key that nothing reads is an error."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from interlock.config import SettingsSource, list_variables, setting
from interlock.errors import ConfigError

FILE, HOME = "argo.toml", "ARGO_HOME"
_PREFIX = "ARGO_"


class Security(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[security]`: what the rules hold Argo's tools to."""

    web_search_min_query_length: Annotated[int, setting("a shorter query is refused")] = 2
    web_search_max_query_length: Annotated[int, setting("a longer query is cut, and the record says so")] = 500
    web_search_max_results: Annotated[int, setting("more results are not asked for")] = 20
    web_allowed_schemes: Annotated[tuple[str, ...], setting("of addresses that are fetched")] = ("http", "https")
    web_allowed_hosts: Annotated[tuple[str, ...], setting("hosts that are fetched from (empty: all public ones)")] = ()
    web_allowed_networks: Annotated[
        tuple[str, ...], setting("networks of your own that may be fetched from, beside the public ones")
    ] = ()
    context_max_chunks: Annotated[int, setting("the most hits of one search of the memory")] = 8
    memory_write_max_content_size: Annotated[int, setting("characters of one note")] = 50_000
    memory_write_allowed_namespaces: Annotated[tuple[str, ...], setting("where notes may be written")] = (
        "default",
        "personal",
        "research",
        "argo_reading_history",
        "argo_notes_journal",
    )
    retrieve_context_max_chunk_id_length: Annotated[int, setting("characters of the id of a chunk")] = 200
    read_file_roots: Annotated[
        tuple[str, ...], setting("folders whose files may be read (empty: none)", anchor="file")
    ] = ()


class MemoryPlace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[memory]`: where what Argo knows is kept."""

    url: Annotated[str, setting("the memory: sqlite:///FILE or postgresql://…", anchor="database")] = (
        "sqlite:///argo-memory.db"
    )
    web_cache_ttl_days: Annotated[float, setting("days that pages of the web are kept")] = 7.0
    web_cache_half_life_days: Annotated[float, setting("days after which a page counts half")] = 3.0


class Web(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[web]`: how Argo searches and reads."""

    searxng: Annotated[str, setting("the address of a SearXNG server, such as http://127.0.0.1:8888")] = ""
    folder: Annotated[str, setting("a folder that is searched instead, without a network", anchor="file")] = ""
    timeout_s: Annotated[float, setting("seconds that a page may take")] = 20.0
    page_bytes: Annotated[int, setting("bytes of a page, as it comes")] = 4_000_000
    robots: Annotated[bool, setting("whether robots.txt is respected")] = True


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All tables."""

    security: Security = Security()
    memory: MemoryPlace = MemoryPlace()
    web: Web = Web()


_SECURITY = SettingsSource(kind=Security, file=FILE, table="security", prefix="ARGO_SECURITY_", home=HOME)
_MEMORY = SettingsSource(kind=MemoryPlace, file=FILE, table="memory", prefix="ARGO_MEMORY_", home=HOME)
_WEB = SettingsSource(kind=Web, file=FILE, table="web", prefix="ARGO_WEB_", home=HOME)
_SOURCES = (_SECURITY, _MEMORY, _WEB)


def load_settings(file: str | Path | None = None, *, environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of here and now."""
    loaded = _SECURITY.load(file, environment=environment)
    _refuse_strange(loaded.file, list_variables(_PREFIX) if environment is None else environment)
    found = Settings(
        security=loaded.settings,
        memory=_MEMORY.load(file, environment=environment).settings,
        web=_WEB.load(file, environment=environment).settings,
    )
    _check(found)
    return found


def _refuse_strange(path: Path, variables: Iterable[str]) -> None:
    """Tables and variables that belong to none of the sources."""
    known = {source.table for source in _SOURCES}
    if path.exists():
        strange = sorted(tomllib.loads(path.read_text(encoding="utf-8")).keys() - known)
        if strange:
            raise ConfigError(f"{path}: nothing reads {strange[0]!r}; the tables are {', '.join(sorted(known))}")
    for name in variables:
        if name.startswith(_PREFIX) and name != HOME and not name.startswith(tuple(one.prefix for one in _SOURCES)):
            prefixes = ", ".join(f"{one.prefix}…" for one in _SOURCES)
            raise ConfigError(f"environment {name}: nothing reads it; variables are {HOME}, {prefixes}")


def _check(settings: Settings) -> None:
    security = settings.security
    if not 1 <= security.web_search_min_query_length <= security.web_search_max_query_length:
        raise ConfigError(
            "[security]: web_search_min_query_length is at least 1, and web_search_max_query_length no less than that"
        )
    for name in ("web_search_max_results", "context_max_chunks", "memory_write_max_content_size"):
        if getattr(security, name) < 1:
            raise ConfigError(f"[security]: {name} is at least 1, not {getattr(security, name)}")
    if not 1 <= security.context_max_chunks <= 50:
        raise ConfigError(f"[security]: context_max_chunks is between 1 and 50, not {security.context_max_chunks}")
    if settings.web.searxng and settings.web.folder:
        raise ConfigError("[web]: searxng and folder are two ways to search; set one of them")
