"""Argo's ways of working hold at the gate, whoever calls: quick, research, and what a request takes away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from argo_testing import PAGES, LocalWeb, OpenArgo, serve_web
from interlock import Status
from interlock.answers import Again, Answers, TurnResult, TurnStatus
from interlock_argo.settings import load_settings

QUESTION = "How long is the Tamar Bridge, and how often does the Torpoint Ferry cross?"
PLAN = "1. How long is the Tamar Bridge?\n2. How often does the Torpoint Ferry cross the Tamar?"


@pytest.fixture
def webs(tmp_path: Path) -> Iterator[list[LocalWeb]]:
    """Three owners of pages: on this machine, another port is another one."""
    with ExitStack() as stack:
        yield [stack.enter_context(serve_web()) for _number in range(3)]


@pytest.fixture
def argo(tmp_path: Path, webs: list[LocalWeb]) -> OpenArgo:
    (tmp_path / "argo.toml").write_text(
        f'[web]\nsearxng = "{webs[0].address}"\n[security]\nweb_allowed_networks = ["127.0.0.0/8"]\n'
    )
    return OpenArgo(load_settings())


async def test_research_answers_only_after_a_plan_and_three_sources(argo: OpenArgo, webs: list[LocalWeb]) -> None:
    async with argo, Answers(argo.runtime).turn(QUESTION, agent=argo.app.agents[0], work="research") as turn:
        assert (await turn.call("web_access", {"url": f"{webs[0].address}/bridge"})).status is Status.DENIED
        assert isinstance(await turn.finish(PLAN), Again)
        assert (await turn.call("web_search", {"query": "Tamar Bridge Torpoint Ferry"})).ok
        for web, page in ((webs[0], "/bridge"), (webs[0], "/bridge?again"), (webs[1], "/ferry")):
            await turn.call("web_access", {"url": web.address + page})
        held = await turn.finish("The bridge is 642 metres long.")
        assert isinstance(held, Again)
        assert "2 of 3" in held.prompt  # one page under two spellings is one source
        assert (await turn.call("web_access", {"url": f"{webs[2].address}/tunnel"})).ok
        answer = f"According to web_access: {PAGES['/bridge'][1]} {PAGES['/ferry'][1]}"
        result = await turn.finish(answer)
    assert isinstance(result, TurnResult)
    assert (result.status, result.partial) == (TurnStatus.VERIFIED, False), result.reason
    assert {source.split("/")[3] for source in result.sources if source.startswith("http")} >= {"bridge", "ferry"}


async def test_a_quick_look_up_makes_two_calls(argo: OpenArgo, webs: list[LocalWeb]) -> None:
    async with argo, Answers(argo.runtime).turn(QUESTION, agent=argo.app.agents[0], work="quick") as turn:
        for _time in range(2):
            await turn.call("web_access", {"url": f"{webs[0].address}/bridge"})
            await turn.call("memory_query", {"query": "bridge"})
        third = await turn.call("memory_query", {"query": "ferry"})
    assert third.status is Status.DENIED


async def test_without_the_internet_nothing_is_asked_of_it(argo: OpenArgo, webs: list[LocalWeb]) -> None:
    question = "Without the internet: how long is the Tamar Bridge?"
    async with argo, Answers(argo.runtime).turn(question, agent=argo.app.agents[0]) as turn:
        for tool, arguments in (
            ("web_access", {"url": f"{webs[0].address}/bridge"}),
            ("web_search", {"query": "Tamar Bridge"}),
        ):
            outcome = await turn.call(tool, arguments)
            assert outcome.status is Status.DENIED
            assert "withheld" in outcome.summary
    assert [web.asked for web in webs] == [[], [], []]
