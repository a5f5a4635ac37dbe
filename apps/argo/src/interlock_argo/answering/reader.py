"""`Reader`: a model that wraps one too small to read, and answers by quoting what the tools have returned.

It chooses the calls that a question needs by what the turn says is missing, and its answers are the statements that fit
the question best, each as it stands there. A model that can be told what to do is never wrapped.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from interlock.answers.constrained import constrain
from interlock.models import Message, Model, Proposal, Reply, Request, Task
from interlock_argo.answering.follow_ups import Meant, resolve
from interlock_argo.answering.planning import compose_plan
from interlock_argo.answering.quotes import Quotes
from interlock_argo.answering.ranking import Candidate, candidates_of
from interlock_argo.answering.said_of_you import forgotten_words, told_fact

URL = re.compile(r"https?://[^\s<>\"']+[^\s<>\"'.,;:!?)]")
_SEARCHES = re.compile(
    r"^\W*(?:please\W+)?(?:(?:can|could|would) you\W+)?(?:search|look up|look|google|check|find(?: me)?)?\W*"
    r"(?:up |for )?(?:on |in )?(?:the (?:web|internet|net)|online|google)\W*(?:for|about|to see)?\W*",
    re.I,
)
_PAGES = 3
"""So many pages are read for one question."""
_ROWS, _MOST_ROWS = 5, 10
_LONGEST_QUERY = 300
NOTHING = "Nothing that I have read says that"


class Reader:
    """Calls by what is missing, answers by quoting; what neither fits is left to the constrained model."""

    instructable = False

    def __init__(self, inner: Model, *, searches: bool = False) -> None:
        self.name = inner.name
        self._inner = constrain(inner)
        self._searches = searches
        self._quotes = Quotes()

    async def reply(self, request: Request) -> Reply:
        """The next call, or an answer out of what the calls have returned."""
        task = request.task
        if task is not None and task.work is not None and task.work.plan:
            return Reply(compose_plan(task.question))
        if task is None or not task.required:
            return await self._inner.reply(request)
        done = _Done(request, task)
        if task.work is not None:
            return await self._work(done)
        wanted = request.force or next((name for name in task.needs if name in done.offered), None)
        proposal = self._next_call(done, wanted)
        if proposal is not None:
            return Reply(proposals=(proposal,))
        if wanted is not None and wanted not in _OWN:
            return await self._inner.reply(request)
        return await self._answer(done)

    async def close(self) -> None:
        await self._inner.close()

    def _next_call(self, done: _Done, wanted: str | None) -> Proposal | None:
        """What is to be called now; None where nothing more would help."""
        if wanted in ("remember", "forget", "read_file") and not done.has_tried(wanted):
            return _about_you(wanted, done.task)
        if url := URL.search(done.task.question):
            return done.reading([url[0]]) or done.quoting("web")
        if wanted == "web_search" and not done.has_tried("web_search"):
            return done.searching(_query(done.meant))
        if "web_search" in done.tried:
            return done.reading(done.found_pages()[:_PAGES]) or (done.quoting("web") if done.pages else None)
        if wanted == "memory_quote" or "memory_quote" in done.tried:
            first = done.quoting("all")
            searches = self._searches and "web_search" in done.offered and not done.is_quoted
            return first or (done.searching(_query(done.meant)) if searches else None)
        return None

    async def _answer(self, done: _Done) -> Reply:
        """What the last look into the memory said, or what a tool says of what it did."""
        last = next((one for one in reversed(done.results) if one.tool in _OWN), None)
        if last is None:
            return Reply(final=True)
        if last.result["status"] == "ok" and last.result.get("summary"):
            return Reply(str(last.result["summary"]), final=True)
        if last.tool == "read_file" and last.result["status"] == "ok":
            return await self._quote(done.meant, [last])
        return Reply(final=True, declines=str(last.result.get("summary") or "")) if done.pages else Reply(final=True)

    async def _quote(self, meant: Meant, results: Sequence[Message]) -> Reply:
        """The statements of what was read that answer; declined where none surely does."""
        candidates = [one for message in results for one in _statements_of(message.result)]
        found = await asyncio.to_thread(self._quotes.choose, meant, candidates)
        if found.is_sure:
            return Reply(found.text, final=True)
        return Reply(final=True, declines=f"{NOTHING}. {found.text}".strip())

    async def _work(self, done: _Done) -> Reply:
        """In phases: read for each question of the plan, then quote what was read for each."""
        work = done.task.work
        assert work is not None
        if work.calls_left and not (work.answers and done.results):
            proposal = self._research(done) if work.questions else self._next_call(done, done.first_offered())
            if proposal is not None:
                return Reply(proposals=(proposal,))
        if not work.questions and not done.pages:
            return await self._answer(done)
        said = list[str]()
        for question in work.questions or (done.task.question,):
            reply = await self._quote(Meant(question=question), done.pages)
            said += [reply.text] if reply.text else []
        if not said:
            return Reply(final=True, declines=f"{NOTHING}.")
        return Reply(" ".join(dict.fromkeys(said)), final=True)

    def _research(self, done: _Done) -> Proposal | None:
        """Search for a question that has no source yet, read what was found; then more pages, until enough are."""
        work = done.task.work
        assert work is not None
        open_ones = [work.questions[number - 1] for number in work.open_questions] or list(work.questions)
        for question in open_ones:
            query = _query(Meant(question=question))
            if "web_search" in done.offered and not done.has_searched(query):
                return done.searching(query, most=_MOST_ROWS)
            if proposal := done.reading(done.found_pages(query)):
                return proposal
        return done.reading(done.found_pages())


_OWN = ("memory_quote", "remember", "forget", "web_search", "web_access", "read_file")
_PAGE_TOOLS = ("web_access", "read_file")


class _Done:
    """What a turn has done so far, as its messages tell."""

    def __init__(self, request: Request, task: Task) -> None:
        self.task = task
        self.meant = resolve(task.question, task.earlier_questions)
        self.offered = {card.name for card in request.tools}
        calls = [call for message in request.messages for call in message.proposals]
        self._calls = {call.id: call.arguments for call in calls}
        self.results = [m for m in request.messages if m.role == "tool" and "status" in m.result]
        self.tried = {message.tool for message in self.results}
        self.pages = [m for m in self.results if m.tool in _PAGE_TOOLS and m.result["status"] == "ok"]
        self.is_quoted = any(m.tool == "memory_quote" and m.result["status"] == "ok" for m in self.results)

    def has_tried(self, tool: str) -> bool:
        return tool in self.tried

    def first_offered(self) -> str | None:
        return next((name for name in ("memory_quote", *self.task.needs) if name in self.offered), None)

    def has_searched(self, query: str) -> bool:
        return any(self._argument(one, "query") == query for one in self.results if one.tool == "web_search")

    def searching(self, query: str, most: int = _ROWS) -> Proposal:
        return Proposal("web_search", {"query": query, "max_results": most})

    def found_pages(self, query: str = "") -> list[str]:
        """The addresses that searches have found, the first of each before the second."""
        rows: list[list[str]] = []
        for one in self.results:
            matches = not query or self._argument(one, "query") == query
            if one.tool == "web_search" and one.result["status"] == "ok" and matches:
                rows.append([str(row.get("url") or "") for row in _rows(one.result.get("value"))])
        turns = max(map(len, rows), default=0)
        return [row[place] for place in range(turns) for row in rows if place < len(row) and row[place]]

    def reading(self, pages: Sequence[str]) -> Proposal | None:
        """The first of these pages that was not tried, rather of a site that nothing was read of yet."""
        tried = {str(self._argument(one, "url")) for one in self.results if one.tool == "web_access"}
        sites = set(map(_site_of, tried))
        fresh = sorted((page for page in pages if page not in tried), key=lambda page: _site_of(page) in sites)
        return Proposal("web_access", {"url": fresh[0]}) if fresh and "web_access" in self.offered else None

    def quoting(self, among: str) -> Proposal | None:
        """A look into the memory that was not made yet."""
        made = {self._argument(one, "among") for one in self.results if one.tool == "memory_quote"}
        if among in made or "memory_quote" not in self.offered:
            return None
        details: dict[str, Any] = {"about": self.meant.about, "other": self.meant.other}
        given = {name: value for name, value in details.items() if value}
        return Proposal("memory_quote", {"question": self.meant.question, "among": among, **given})

    def _argument(self, message: Message, name: str) -> object:
        arguments = self._calls.get(message.call_id)
        return arguments.get(name) if isinstance(arguments, dict) else None


def _about_you(wanted: str, task: Task) -> Proposal | None:
    if wanted == "remember":
        return Proposal("remember", {"text": told_fact(task.question)})
    if wanted == "forget":
        return Proposal("forget", {"text": forgotten_words(task.question)})
    path = next((word for word in task.question.split() if "/" in word), "")
    return Proposal("read_file", {"path": path}) if path else None


def _query(meant: Meant) -> str:
    """What is searched for: the question without the words that ask for a search."""
    text = " ".join(part for part in (meant.about, _SEARCHES.sub("", meant.question, count=1)) if part)
    return " ".join(text.split())[:_LONGEST_QUERY].strip(" ?.!") or meant.question[:_LONGEST_QUERY]


def _site_of(url: str) -> str:
    """Whose page it is, roughly: which sources are distinct is the turn's to say."""
    return ".".join((urlsplit(url).hostname or "").split(".")[-2:])


def _rows(value: object) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
    return found[:_MOST_ROWS]


def _statements_of(result: Mapping[str, Any]) -> list[Candidate]:
    """The statements of a page or file that was read."""
    value = result.get("value")
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        return []
    source = str(value.get("url") or value.get("path") or "")
    return candidates_of(value["text"], title=str(value.get("title") or ""), source=source)


def read_for(model: Model, *, searches: bool = False) -> Model:
    """A model that Argo can work with: itself, if it can be told what to do, otherwise one that is read for."""
    return constrain(model) if model.instructable else Reader(model, searches=searches)
