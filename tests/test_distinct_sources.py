"""What counts as a source: something that was fetched, of a domain of its own, that says something of its own."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from interlock import Result, Runtime, Tool, tool
from interlock.answers import Agent, Answers, TurnOutcome, TurnResult, TurnStatus, all_of
from interlock.answers.presets import research
from interlock.answers.work import sites
from interlock.answers.work.plans import parse_plan, questions_of
from interlock.answers.work.sites import count_distinct, digest_of, is_one_of, site_of, text_of
from interlock.answers.workflows import Done, Phase, SourceRule, Workflow
from interlock.errors import ConfigError
from interlock.models import Proposal
from interlock.policy import parse_policy
from tests.growth import LINEAR, growth
from tests.test_turns import OPEN

PLAN = "1. How deep is the lake?\n2. How old is the lake?"
DEEP = "By the survey of {host} the lake is 594 m deep, which makes it the deepest of the country."
OLD = "The records of {host} say that the lake is 7700 years old, as the mountain fell in about then."
AGENT = Agent(name="reader", tools=("web_search", "web_access"), semantic=False)


def web(pages: dict[str, str], hits: tuple[str, ...] = ()) -> list[Tool]:
    @tool(effect="read")
    async def web_search(query: str) -> Result[list[dict[str, str]]]:
        """Find pages."""
        found = [{"url": url, "snippet": DEEP.format(host="somebody") + OLD.format(host="somebody")} for url in hits]
        return Result(value=found, sources=hits)

    @tool(effect="read")
    async def web_access(url: str, question: str = "") -> Result[dict[str, Any]]:
        """Read a page."""
        return Result(value={"url": url, "title": f"At {url}", "status": 200, "text": pages[url]}, sources=(url,))

    return [web_search, web_access]


async def read(pages: dict[str, str], *calls: Proposal, hits: tuple[str, ...] = (), **terms: Any) -> TurnResult:
    """A turn of research with a caller's own loop: a plan, these calls, and a draft."""
    workflow = research(("web_search",), ("web_access",), **terms)
    async with Runtime.open("memory://", policy=parse_policy(OPEN), tools=web(pages, hits)) as runtime:
        answers = Answers(runtime)
        async with answers.turn(
            "How deep and old is the lake?", agent=AGENT, requires=all_of(), workflow=workflow
        ) as turn:
            await turn.finish(PLAN)
            await turn.propose(calls)
            while not isinstance(step := await turn.finish("The lake is 594 m deep and 7700 years old."), TurnResult):
                assert turn.replies < turn.most_replies
            return step


def fetch(*urls: str) -> list[Proposal]:
    return [Proposal("web_access", {"url": url}) for url in urls]


def pages(*urls: str) -> dict[str, str]:
    return {url: (DEEP + " " + OLD).format(host=url) for url in urls}


async def test_one_search_that_lists_three_spellings_of_one_url_is_no_research() -> None:
    hits = ("https://lake.example.com/a", "http://www.lake.example.com/a/", "HTTPS://LAKE.example.com:443/a#top")
    result = await read({}, Proposal("web_search", {"query": "lake"}), hits=hits)
    assert (result.status, result.outcome, result.verified) == (TurnStatus.PARTIAL, TurnOutcome.PARTIAL, False)
    assert "0 of 3 sources were read" in result.gaps


async def test_three_spellings_that_were_fetched_are_one_source() -> None:
    urls = ("https://lake.example.com/a", "http://www.example.com/a/", "https://example.com:443/a?x=1#top")
    result = await read(pages(*urls), *fetch(*urls))
    assert result.partial
    assert "1 of 3 sources were read" in result.gaps


async def test_three_domains_that_say_something_of_their_own_are_three() -> None:
    urls = ("https://a.com/x", "https://b.org/x", "https://c.co.uk/x")
    result = await read(pages(*urls), *fetch(*urls))
    assert (result.status, result.outcome, result.partial, result.gaps) == (
        TurnStatus.VERIFIED, TurnOutcome.SKIPPED_NO_REQUIREMENTS, False, (),
    )  # fmt: skip


async def test_two_domains_that_serve_the_same_text_are_one_source() -> None:
    urls = ("https://a.com/x", "https://b.org/x", "https://c.co.uk/x")
    same = pages("https://a.com/x")["https://a.com/x"]
    copies = {urls[0]: same, urls[1]: f"  {same.upper()}!\n", urls[2]: pages(urls[2])[urls[2]]}
    result = await read(copies, *fetch(*urls))
    assert "2 of 3 sources were read" in result.gaps


async def test_a_page_without_a_word_is_no_source() -> None:
    urls = ("https://a.com/x", "https://b.org/x", "https://c.co.uk/x")
    result = await read({**pages(*urls[:2]), urls[2]: " \n… "}, *fetch(*urls))
    assert result.partial


async def test_what_is_authoritative_is_a_rule_of_the_user() -> None:
    urls, rule = (
        ("https://a.com/x", "https://b.org/x", "https://usgs.gov/x"),
        SourceRule(("*.gov", "nih.org"), at_least=1),
    )
    assert not (await read(pages(*urls), *fetch(*urls), rule=rule)).partial
    others = (*urls[:2], "https://gov.example.net/x")
    result = await read(pages(*others), *fetch(*others), rule=rule)
    assert result.partial
    assert "0 of 1 authoritative sources were read" in result.gaps


async def test_each_sub_question_may_need_an_authoritative_source() -> None:
    urls, rule = (
        ("https://a.com/x", "https://b.org/x", "https://usgs.gov/x"),
        SourceRule(("*.gov",), each_question=True),
    )
    deep = {**pages(*urls[:2]), urls[2]: DEEP.format(host="the office")}
    result = await read(deep, *fetch(*urls), rule=rule)
    assert "1 of 2 sub-questions has no authoritative source" in result.gaps
    assert "no source: “How old is the lake?”" in result.gaps


@pytest.mark.parametrize(
    ("name", "site"),
    [
        ("https://www.bbc.co.uk/news", "bbc.co.uk"),
        ("http://NEWS.bbc.co.uk.:80/news?x#y", "bbc.co.uk"),
        ("www.bbc.co.uk/news", "bbc.co.uk"),
        ("https://ann.github.io/", "ann.github.io"),
        ("https://bob.github.io/", "bob.github.io"),
        ("https://bücher.de/a", "xn--bcher-kva.de"),
        ("https://xn--bcher-kva.de/b", "xn--bcher-kva.de"),
        ("https://wiki/", "wiki"),
        ("https://pages.team.internal:8443/", "team.internal"),
        ("https://93.184.216.34:8443/x", "93.184.216.34"),
        ("http://0x5db8d822/x", "93.184.216.34"),
        ("http://127.0.0.1:8001/x", "127.0.0.1:8001"),
        ("http://127.1:8001/y", "127.0.0.1:8001"),
        ("http://127.0.0.1:8002/x", "127.0.0.1:8002"),
        ("http://127.0.0.2:8001/x", "127.0.0.2:8001"),
        ("http://[::1]:8001/x", "::1:8001"),
        ("http://[::ffff:127.0.0.1]:8001/x", "127.0.0.1:8001"),
        ("http://localhost:8001/x", "localhost:8001"),
        ("http://lakes.localhost:8001/x", "lakes.localhost:8001"),
        ("notes/lake.md", "notes/lake.md"),
        ("./lake.txt", "./lake.txt"),
        ("My  Notes", "my notes"),
        ("https://user:word@a.com/", "a.com"),
        ("https:///nothing", "https:///nothing"),
        ("", ""),
    ],
)
def test_whose_a_source_is(name: str, site: str) -> None:
    assert site_of(name) == site


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        ("https://www.nih.gov/x", "*.gov", True),
        ("https://www.nih.gov/x", "nih.gov", True),
        ("https://nih.gov/x", "nih.gov", True),
        ("https://nih.gov.example.com/x", "*.gov", False),
        ("https://notnih.gov/x", "nih.gov", False),
        ("https://example.com/nih.gov", "*.gov", False),
        ("Handbook 2024", "handbook*", True),
    ],
)
def test_what_fits_a_rule(name: str, pattern: str, fits: bool) -> None:
    assert is_one_of(name, (pattern,)) is fits


def test_the_count_depends_on_no_order_and_never_falls() -> None:
    found = [("x", "1"), ("y", "1"), ("y", "2"), ("z", "2"), ("z", "2"), ("w", "3")]
    for seed in range(50):
        random.Random(seed).shuffle(found)
        counts = [count_distinct(found[:n]) for n in range(len(found) + 1)]
        assert counts[-1] == 3
        assert counts == sorted(counts)


def test_what_a_page_says_is_its_text_and_not_when_it_was_fetched() -> None:
    one, other = ({"url": f"https://{h}.com", "at": h, "bytes": n, "text": DEEP} for h, n in (("a", 1), ("b", 2)))
    assert digest_of(text_of(one)) == digest_of(text_of(other)) != ""
    assert digest_of(text_of({"url": "https://a.com", "depth": 1})) != digest_of(text_of({"depth": 2}))
    assert digest_of(text_of({"url": "https://a.com"})) == ""


LAKE = ("How deep is Crater Lake?", "When did Crater Lake form?", "Who discovered Crater Lake?")


@pytest.mark.parametrize(
    ("text", "said", "spoken_to"),
    [
        ("Crater Lake has a maximum depth of 594 m.", None, (1,)),
        ("Crater Lake formed 7700 years ago.", None, (2,)),
        ("The discovery of Crater Lake by Hillman; it is the deepest of all.", None, (1, 3)),
        ("Crater Lake is blue, and much visited.", None, ()),  # of what they all ask about alone
        ("Crater Lake is blue, and much visited.", 2, (2,)),
        ("Crater Lake is blue, and much visited.", "2.", (2,)),
        ("Crater Lake is blue, and much visited.", "when did the lake form", (2,)),
        ("Bananas are yellow.", 2, ()),
        ("Crater Lake is blue, and much visited.", 7, ()),
        ("Crater Lake is blue, and much visited.", True, ()),
        ("", 1, ()),
    ],
)
def test_which_sub_questions_a_text_speaks_to(text: str, said: object, spoken_to: tuple[int, ...]) -> None:
    assert questions_of(LAKE, text, said) == spoken_to


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (
            "Plan:\n1. **How deep** is it?\n   - the survey\n2) How old?\n3. Compare them",
            ("How deep is it?", "How old?"),
        ),
        ("1. find pages\n2. read three of them", ("find pages", "read three of them")),
        ("<research_plan>How deep?\nHow old?</research_plan>", ("How deep?", "How old?")),
        ("- one\n* two\n- one", ("one", "two")),
        ("1. only one", ()),
        ("I would look at the survey.", ()),
        ("\n".join(f"{n}. What is {n}?" for n in range(1, 40)), tuple(f"What is {n}?" for n in range(1, 13))),
    ],
)
def test_a_plan_is_its_questions(text: str, steps: tuple[str, ...]) -> None:
    assert parse_plan(text) == steps


@pytest.mark.parametrize("part", ["a.", "a-", "://", "www.", "é"])
def test_four_times_the_name_takes_about_four_times_as_long(part: str) -> None:
    assert growth(lambda size: site_of(part * (size // len(part))), 20_000) < LINEAR


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        text = (DEEP + " " + OLD).format(host=self.headers["host"]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_servers_of_this_machine_are_sources_of_their_own() -> None:
    @tool(effect="read")
    async def web_access(url: str) -> str:
        """Read a page; what its source is called stands in the arguments alone."""
        async with httpx.AsyncClient(trust_env=False) as client:
            return (await client.get(url)).text

    agent = Agent(name="reader", tools=("web_access",), semantic=False)
    with served() as one, served() as two:
        async with Runtime.open("memory://", policy=parse_policy(OPEN), tools=web_access) as runtime:
            work = research((), ("web_access",), sources=2)
            async with Answers(runtime).turn("How old?", agent=agent, requires=all_of(), workflow=work) as turn:
                await turn.finish(PLAN)
                await turn.propose(fetch(one, f"{one}?again", two))
                result = await turn.finish("The lake is 594 m deep.")
    assert isinstance(result, TurnResult)
    assert (result.status, result.partial) == (TurnStatus.VERIFIED, False)


def test_a_phase_has_to_say_whose_results_are_sources() -> None:
    with pytest.raises(ConfigError, match=r"does not say whose results are any; name the tools that fetch"):
        Workflow("mine", 3, (Phase("read", "read", ("a",), Done(sources=3)), Phase("say", "say it", answers=True)))


async def test_without_the_list_of_suffixes_no_source_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "publicsuffixlist", None)
    sites._suffixes.cache_clear()
    try:
        with pytest.raises(ConfigError, match=r"to tell sources apart by their domains: pip install '\.\[research\]'"):
            await read({})
    finally:
        sites._suffixes.cache_clear()
