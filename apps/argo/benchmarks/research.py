"""Argo over the local web: research questions with known answers, hostile pages, and how often retrieval finds it.

    python apps/argo/benchmarks/research.py [--questions N] [--queries N] [--show]

The embedded model works as `interlock ask argo … --work research` has it: its plan and synthesis are composed, not
written. A synthesis is full where the turn calls it verified, and otherwise marked as partial or withheld.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from serving import LocalWeb, local_web, serve_local_web

from interlock import Runtime
from interlock.answers import Answers, TurnResult, run_turn
from interlock.models import open_model
from interlock_argo.answering.reader import read_for
from interlock_argo.app import build_app
from interlock_argo.memory.home import MemoryHome
from interlock_argo.reading.pages import Pages
from interlock_argo.reading.readable import read_content
from interlock_argo.settings import Settings, load_settings

_WANTED_SOURCES, _TOP = 3, 5
_FULL = ("verified", "rendered")


def settings_over(web: LocalWeb, folder: Path) -> Settings:
    """Argo's settings with the local web in place of the real one."""
    made = load_settings()
    return msgspec.structs.replace(
        made,
        memory=msgspec.structs.replace(made.memory, url=f"sqlite:///{folder / 'memory.db'}"),
        web=msgspec.structs.replace(made.web, searxng=web.search, timeout_s=5.0),
        security=msgspec.structs.replace(made.security, web_allowed_networks=("127.0.0.0/8",)),
    )


async def research(web: LocalWeb, folder: Path, questions: Sequence[dict[str, Any]], *, show: bool) -> list[str]:
    """Each question in a turn of its own."""
    settings = settings_over(web, folder)
    home = MemoryHome(settings)
    app = build_app(settings, home, Pages(settings, resolve=web.resolve))
    assert app.policy is not None
    counts: Counter[str] = Counter()
    model = read_for(open_model("local"), searches=True)
    async with Runtime.open("memory://", policy=app.policy, tools=app.tools) as runtime:
        for question in questions:
            turn = Answers(runtime).turn(question["text"], agent=app.agents[0], work="research")
            async with turn as opened:
                result = await run_turn(opened, model)
            count(counts, question, result)
            if show:
                print(f"[{result.status.value}] {question['text']}\n    {result.answer}\n    {result.sources}")
    await home.close()
    await model.close()
    total = len(questions)
    return [
        f"{total} research questions: {counts['full']} full, {counts['partial']} partial, {counts['other']} withheld",
        f"full ones with at least {_WANTED_SOURCES} distinct sources: {counts['sourced']} of {counts['full']}",
        f"known values in the answer: {counts['found']} of {counts['values']}",
        f"claims that resolve to a result: {counts['resolved']} of {counts['claims']}",
    ]


def count(counts: Counter[str], question: dict[str, Any], result: TurnResult) -> None:
    """One answer, by the values that are known."""
    status = result.status.value
    counts["full" if status in _FULL else "partial" if status == "partial" else "other"] += 1
    sites = {local_web.registrable_domain(one) for one in result.sources if one.startswith("http")}
    counts["sourced"] += status in _FULL and len(sites) >= _WANTED_SOURCES
    for fact in question["facts"]:
        counts["values"] += 1
        counts["found"] += re.search(rf"(?<!\w){re.escape(str(fact['value']))}(?!\w)", result.answer) is not None
    counts["claims"] += len(result.claims)
    counts["resolved"] += sum(bool(claim.source) for claim in result.claims)


async def recall(folder: Path, queries: Sequence[dict[str, Any]]) -> str:
    """How often a chunk with the sentence is among the first."""
    made = load_settings()
    memory = msgspec.structs.replace(made.memory, url=f"sqlite:///{folder / 'recall.db'}")
    home = MemoryHome(msgspec.structs.replace(made, memory=memory))
    pages = 0
    for url, page in local_web.pages().items():
        if page.status == 200 and not page.redirect_to and len(page.body) < 1_000_000 and not page.delay_s:
            try:
                found = read_content(page.body, page.content_type, url)
                await home.keep_page(url, found.title, found.text)
                pages += 1
            except Exception as error:  # noqa: BLE001 - the web has pages that cannot be read, and they are counted
                del error
    hits = 0
    for query in queries:
        found_chunks = (await home.memory.search(query["query"], top_k=_TOP)).hits
        texts = [getattr(await home.memory.fetch(hit.chunk), "text", "") for hit in found_chunks]
        hits += any(_plain(query["sentence"]) in _plain(text) for text in texts)
    await home.close()
    return f"recall@{_TOP} over {pages} pages: {hits} of {len(queries)} queries"


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[*_`|]", " ", text).split()).casefold()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=50, metavar="N")
    parser.add_argument("--queries", type=int, default=200, metavar="N")
    parser.add_argument("--show", action="store_true", help="print every answer")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, serve_local_web() as web:
        folder = Path(scratch)
        if given.questions:
            questions = local_web.load_records("questions.jsonl")[: given.questions]
            print("\n".join(asyncio.run(research(web, folder, questions, show=given.show))))
        if given.queries:
            print(asyncio.run(recall(folder, local_web.load_records("queries.jsonl")[: given.queries])))


if __name__ == "__main__":
    main()
