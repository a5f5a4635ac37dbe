"""Argo as an application of Interlock: its tools over a memory, files and the web, its agent, its rules."""

from __future__ import annotations

import tomllib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interlock.answers import Agent, App, Intent, any_of
from interlock.answers.presets import ingest, quick_lookup, research
from interlock.answers.wishes import no_internet
from interlock_argo.answering.reader import read_for
from interlock_argo.memory.home import MemoryHome
from interlock_argo.reading.pages import Pages
from interlock_argo.reading.search import open_search
from interlock_argo.settings import Settings, load_settings
from interlock_argo.tools.memory import build_memory_tools
from interlock_argo.tools.quoting import build_quoting_tools
from interlock_argo.tools.reading import build_reading_tools

HERE = Path(__file__).parent
WEB = ("web_search", "web_access")
NOTES = ("memory_quote", "memory_query", "retrieve_context")
READS = ("web_access", "read_file")


def build_policy(settings: Settings) -> dict[str, Any]:
    """The rules of policy.toml with the limits, lists and hosts of the settings."""
    policy: dict[str, Any] = tomllib.loads((HERE / "policy.toml").read_text(encoding="utf-8"))
    security = settings.security
    policy["limits"] = {
        "shortest_query": security.web_search_min_query_length,
        "longest_query": security.web_search_max_query_length,
        "longest_note": security.memory_write_max_content_size,
        "longest_chunk_id": security.retrieve_context_max_chunk_id_length,
    }
    policy["lists"]["namespaces"] = list(security.memory_write_allowed_namespaces)
    most = {"max_results": security.web_search_max_results, "top_k": security.context_max_chunks}
    for use in policy["use"]:
        if use["pack"] == "top-k":
            use["max"] = most[use["field"]]
    if security.read_file_roots:
        roots = list(security.read_file_roots)
        policy["use"].append({"pack": "roots", "tools": ["read_file"], "field": "path", "roots": roots})
    if not security.web_allowed_networks:  # a rule knows names alone; networks are looked at when it connects
        reach = {"schemes": list(security.web_allowed_schemes), "hosts": list(security.web_allowed_hosts)}
        kept = {name: value for name, value in reach.items() if value}
        policy["use"].append({"pack": "public-url", "tools": ["web_access"], "field": "url", **kept})
    return policy


def build_agent(*, searches: bool) -> Agent:
    """The assistant; it does research where there is a search that finds something to read."""
    tables = tomllib.loads((HERE / "intents.toml").read_text(encoding="utf-8"))["intent"]
    intents = tuple(
        Intent(
            name=one["name"],
            requires=any_of(*one["requires"]),
            keywords=tuple(one["keywords"]),
            examples=tuple(one["examples"]),
            pattern=one.get("pattern", ""),
        )
        for one in tables
    )
    return Agent(
        name="argo",
        tools=(*WEB, *NOTES, "read_file", "memory_write", "remember", "forget"),
        intents=intents,
        default=any_of("memory_quote", "memory_query", "retrieve_context", "web_access", "read_file"),
        purpose="You are Argo, a research assistant on this person's own machine. You answer from their notes, their"
        " files and pages that you have read, and say where each answer is from.",
        deadline_s=180,
        # By keywords alone: what says nothing of the web, a page or a wish is a question to the memory.
        semantic=False,
        works=(
            quick_lookup((*NOTES, *WEB, "read_file", "remember")),
            *((research(("web_search", *NOTES), READS),) if searches else ()),
            ingest(READS, ("memory_write",)),
        ),
        wishes=(no_internet(*WEB),),
    )


def build_app(settings: Settings, home: MemoryHome | None = None, pages: Pages | None = None) -> App:
    """Argo as the settings say, with the memory and the reader of pages that the program has, if it has any."""
    home = home or MemoryHome(settings)
    search = open_search(settings)
    tools = (
        *build_reading_tools(settings, home, search, pages or Pages(settings)),
        *build_memory_tools(home),
        *build_quoting_tools(home),
    )
    return App(
        name="argo",
        agents=(build_agent(searches=search is not None),),
        tools=tools,
        policy=build_policy(settings),
        description="A research assistant over your notes, your files and the web.",
        constrain=partial(read_for, searches=search is not None),
    )


if TYPE_CHECKING:
    APP: App
    """What `interlock ask argo` finds as an entry point."""
else:

    def __getattr__(name: str) -> App:
        # When it is asked for: a setting that is wrong must not keep the commands from saying so.
        if name != "APP":
            raise AttributeError(name)
        globals()[name] = build_app(load_settings())
        return globals()[name]
