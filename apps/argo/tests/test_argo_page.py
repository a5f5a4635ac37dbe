"""Argo's page: who may come in, what happens while a question is worked on, and all of it in a real browser."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from argo_testing import OpenArgo
from interlock.errors import ConfigError
from interlock.models import Message, Proposal, Reply, Request
from interlock_argo.cli.serve import _Links
from interlock_argo.page.desk import STOPPED
from interlock_argo.page.door import Door
from interlock_argo.page.routes import TalkPage
from interlock_argo.page.serving import serve_page
from interlock_argo.talk import Talk

HOST = "127.0.0.1:8733"
HERE = {"origin": f"http://{HOST}"}
CHROMIUM = shutil.which("chromium")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
HOUSE = "# House\n\nThe boiler was serviced on 12 March 2024 by Lindt Heating for 240 euros.\n"


class Quoting:
    """A model that asks the memory, and says its first statement; it waits before that where it is told to."""

    name, instructable = "quoting", True

    def __init__(self) -> None:
        self.was_asked, self.may_go_on = asyncio.Event(), asyncio.Event()
        self.may_go_on.set()

    async def reply(self, request: Request) -> Reply:
        self.was_asked.set()
        await self.may_go_on.wait()
        found = [message for message in request.messages if message.role == "tool"]
        if not found:
            return Reply(proposals=(Proposal("memory_quote", {"question": _question(request.messages)}),))
        rows = found[-1].result.get("value") or [{"text": "nothing"}]
        return Reply(f"According to House: {rows[0]['text']}")

    async def close(self) -> None: ...


def _question(messages: Any) -> str:
    return str(next(m.text for m in reversed(messages) if isinstance(m, Message) and m.role == "user"))


class Served:
    """A page without a port, and a browser that has been let in."""

    def __init__(self, opened: Any) -> None:
        self.opened = opened
        self.links: list[str] = []
        self.model = Quoting()
        self.page = TalkPage(Talk(self.opened, self.model))
        self.door = Door(self.page.build(), HOST, self.links.append)
        self.door.open_link()

    def browser(self) -> httpx.AsyncClient:
        """A new one, which has no key."""
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.door), base_url=f"http://{HOST}")


@pytest.fixture
async def served(argo: OpenArgo, tmp_path: Path) -> AsyncIterator[Served]:
    (tmp_path / "house.md").write_text(HOUSE)
    assert (await argo.call("ingest_file", {"path": str(tmp_path / "house.md"), "trusted": True}, actor="you")).ok
    made = Served(argo)
    yield made
    await made.page.desk.close()


@pytest.fixture
async def browser(served: Served) -> AsyncIterator[httpx.AsyncClient]:
    async with served.browser() as client:
        assert (await client.get(served.links[-1])).status_code == 303
        yield client


async def events(browser: httpx.AsyncClient, work: str, **headers: str) -> list[tuple[str, str]]:
    """All that is told of a question, until its end."""
    told = (await browser.get(f"/work/{work}", headers=headers)).text
    blocks = [block.split("\n") for block in told.strip().split("\n\n")]
    return [
        (lines[1].removeprefix("event: "), "\n".join(line.removeprefix("data: ") for line in lines[2:]))
        for lines in blocks
    ]


async def begin(browser: httpx.AsyncClient, question: str, session: str = "s") -> str:
    asked = await browser.post(
        "/ask", data={"session": session, "question": question}, headers={**HERE, "HX-Request": "true"}
    )
    assert asked.status_code == 200, asked.text
    return str(re.findall(r"/work/([^/\"]+)", asked.text)[0])


async def test_only_a_browser_that_was_given_the_link_comes_in(served: Served) -> None:
    async with served.browser() as one, served.browser() as other:
        for path in ("/", "/talk?session=s", "/memory", "/work/1"):
            assert (await one.get(path)).status_code == 403
        assert (await one.get("/enter?code=")).status_code == 403
        assert (await one.get("/enter?code=guessed")).status_code == 403
        assert (await one.get("/static/argo.css")).status_code == 200
        link = served.links[-1]
        assert (await one.head(link)).status_code == 403  # who only looks at a link does not use it up
        entered = await one.get(link)
        assert entered.headers["location"] == "/"
        assert {"HttpOnly", "SameSite=strict"} <= {part.strip() for part in entered.headers["set-cookie"].split(";")}
        assert (await one.get("/memory")).status_code == 200
        assert (await other.get(link)).status_code == 403  # each is good for one
        assert (await other.get("/memory", headers={"cookie": "argo=guessed"})).status_code == 403
        assert (await other.get(served.links[-1])).status_code == 303
        assert served.links[0] != served.links[-1]
        # What other servers of this machine have left in the browser does not lock it out.
        key = f"{entered.headers['set-cookie'].partition(';')[0]}"
        for odd in ('prefs={"dark": true}', "bad[]=1", "a b", "path=/"):
            assert (await served.browser().get("/memory", headers={"cookie": f"{odd}; {key}"})).status_code == 200


async def test_no_other_site_can_use_it(browser: httpx.AsyncClient) -> None:
    form = {"session": "s", "question": "When was the boiler serviced?"}
    for headers in ({}, {"origin": "null"}, {"origin": "http://evil.example"}, {"origin": f"https://{HOST}"}):
        assert (await browser.post("/ask", data=form, headers=headers)).status_code == 403
    assert (await browser.get("/memory", headers={"host": "evil.example"})).status_code == 421
    shown = await browser.get("/memory")
    assert "default-src 'self'" in shown.headers["content-security-policy"]
    assert shown.headers["cache-control"] == "no-store"


async def test_a_question_is_told_of_until_its_answer(browser: httpx.AsyncClient) -> None:
    number = await begin(browser, "When was the boiler serviced?")
    told = await events(browser, number)
    assert [kind for kind, _ in told] == ["progress", "text", "result"]
    assert "→ memory_quote" in told[0][1]
    assert "serviced on 12 March 2024" in told[1][1]
    assert 'class="verified"' in told[2][1]
    assert "12 March 2024</b> ←" in told[2][1]
    # A browser that was away is told what it has missed.
    assert await events(browser, number, **{"last-event-id": "1"}) == told[1:]
    page = await browser.get("/talk?session=s")
    assert page.text.count("serviced on 12 March 2024") == 1
    assert "When was the boiler serviced?</a>" in page.text  # among the sessions
    # Nor does it wait for ever for what it has seen already, or for a place that there is not.
    assert [kind for kind, _ in await events(browser, number, **{"last-event-id": "3"})] == ["result"]
    assert [kind for kind, _ in await events(browser, number, **{"last-event-id": "0" * 5_000})][-1] == "result"
    ((kind, html),) = await events(browser, "unknown")
    assert (kind, "load the page again" in html) == ("result", True)


async def test_a_question_is_stopped_and_the_session_goes_on(served: Served, browser: httpx.AsyncClient) -> None:
    served.model.may_go_on.clear()
    number = await begin(browser, "When was the boiler serviced?")
    await served.model.was_asked.wait()
    busy = await browser.post("/ask", data={"session": "s", "question": "And now?"}, headers=HERE)
    assert (busy.status_code, "still at the question before" in busy.text) == (409, True)
    assert f"/work/{number}/stop" in (await browser.get("/talk?session=s")).text
    assert (await browser.post(f"/work/{number}/stop", headers=HERE)).status_code == 303
    assert STOPPED in (await events(browser, number))[-1][1]
    assert "it was stopped" in (await browser.get("/talk?session=s")).text
    served.model.may_go_on.set()
    again = await begin(browser, "When was the boiler serviced?")
    assert "12 March 2024" in (await events(browser, again))[-1][1]
    assert (await browser.post("/work/unknown/stop", headers=HERE)).status_code == 404


async def test_what_cannot_be_asked_is_said(browser: httpx.AsyncClient) -> None:
    for form, said in (
        ({"session": "s", "question": "  "}, "needs words"),
        ({"session": "s" * 201, "question": "Why?"}, "at most 200 characters"),
        ({"session": "a\u200bb", "question": "Why?"}, "printable text"),
        ({"session": "s", "question": "Why?", "work": "magic"}, "no such way of working"),
        ({"session": "s", "question": "x" * 10_001}, "at most 10,000 characters"),
        ({"session": "s", "question": "x" * 100_001}, "more than 100,000 bytes"),
    ):
        told = await browser.post("/ask", data=form, headers=HERE)
        assert (told.status_code, said in told.text) == (422, True), told.text
    lost = await browser.get("/nothing")
    assert (lost.status_code, "A new session" in lost.text) == (404, True)


async def test_a_model_that_breaks_is_said_and_nothing_else(served: Served, browser: httpx.AsyncClient) -> None:
    async def explode(_request: Request) -> Reply:
        raise RuntimeError("secret of the inside")

    served.model.reply = explode  # type: ignore[assignment]
    told = await events(browser, await begin(browser, "When was the boiler serviced?"))
    assert "secret" not in told[-1][1]
    assert told[-1][0] == "result"


async def test_texts_are_texts(browser: httpx.AsyncClient) -> None:
    number = await begin(browser, "<script>alert(1)</script> When was the boiler serviced?", "<b>s</b>")
    assert all("<script>" not in html for _, html in await events(browser, number))
    page = await browser.get("/talk", params={"session": "<b>s</b>"})
    assert "&lt;script&gt;" in page.text
    assert "<b>s</b>" not in page.text


async def test_what_is_remembered_is_found_and_forgotten(browser: httpx.AsyncClient) -> None:
    found = await browser.get("/memory", params={"q": "boiler"})
    (document,) = set(re.findall(r"/memory/([0-9a-f]+)", found.text))
    assert document in (await browser.get("/memory")).text
    assert "Lindt Heating" in (await browser.get(f"/memory/{document}")).text
    assert (await browser.post(f"/memory/{document}/forget", headers=HERE)).status_code == 303
    assert (await browser.get(f"/memory/{document}")).status_code == 404
    assert (await browser.post(f"/memory/{document}/forget", headers=HERE)).status_code == 404
    assert "Nothing is remembered about that" in (await browser.get("/memory", params={"q": "boiler"})).text


async def test_a_port_that_is_taken_is_said(served: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigError, match="--port 0"):
        await serve_page(served.opened, taken.getsockname()[1], None, print)


def test_the_first_link_is_printed_and_opened(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    links = _Links(opens=True)
    links.say("http://127.0.0.1:1/enter?code=a")
    links.say("http://127.0.0.1:1/enter?code=b")
    shown = capsys.readouterr()
    assert opened == ["http://127.0.0.1:1/enter?code=a"]
    assert "Argo is at http://127.0.0.1:1/enter?code=a" in shown.out
    assert "For another one: http://127.0.0.1:1/enter?code=b" in shown.out


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_it_is_told_to(tmp_path: Path, number: int) -> None:
    """While a question is worked on that is followed: whoever follows it is told, and nothing is left open."""
    (tmp_path / "slow.py").write_text(SLOW)
    command = [sys.executable, "-m", "interlock", "argo", "serve", "--port", "0", "--model", "python:slow:MODEL"]
    with subprocess.Popen(
        [*command, "--by-address"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        link = next(line for line in server.stdout if "Argo is at" in line).split()[-1]
        here = link.partition("/enter")[0]
        with httpx.Client(base_url=here, timeout=60) as client:
            client.get(link)
            form = {"session": "s", "question": "When was the boiler serviced?"}
            asked = client.post("/ask", data=form, headers={"origin": here, "hx-request": "true"})
            work = re.findall(r"/work/([^/\"]+)", asked.text)[0]
            with client.stream("GET", f"/work/{work}") as told:
                lines = told.iter_lines()
                assert any("no_data" in line for line in lines)  # nothing is remembered, and the model thinks on
                server.send_signal(number)
                assert any(STOPPED in line for line in lines)
        assert server.stderr is not None
        said = server.stderr.read()
        assert (server.wait(timeout=60), "ended; what was asked" in said, "Traceback" in said) == (0, True, False), said


SLOW = """
import asyncio
from interlock.models import Proposal, Reply


class Slow:
    name, instructable = "slow", True

    async def reply(self, request):
        if any(message.role == "tool" for message in request.messages):
            await asyncio.Event().wait()
        return Reply(proposals=(Proposal("memory_quote", {"question": "boiler"}),))

    async def close(self): ...


MODEL = Slow()
"""


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium (Debian's package of that name)")
def test_a_person_in_a_browser(tmp_path: Path) -> None:
    """The commands as they are typed, Argo's own reader, a real browser: ask, go on, look where it is from, forget."""
    from playwright.sync_api import sync_playwright

    (tmp_path / "house.md").write_text(HOUSE)
    command = [sys.executable, "-m", "interlock", "argo"]
    subprocess.run([*command, "ingest", "house.md", "--mine"], cwd=tmp_path, check=True, timeout=300)
    with (
        subprocess.Popen([*command, "serve", "--port", "0"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server,
        sync_playwright() as playwright,
    ):
        try:
            assert server.stdout is not None
            link = next(line for line in server.stdout if "Argo is at" in line).split()[-1]
            chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
            look(chromium.new_page(), link)
            chromium.close()
        finally:
            server.terminate()


def look(page: Any, link: str) -> None:
    """What a person does there."""
    wrong: list[Any] = []
    page.on("pageerror", lambda error: wrong.append(error))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.set_default_timeout(120_000)
    page.goto(link)
    page.fill("#question", "When was the boiler serviced?")
    page.click("form.ask button")
    page.locator("article.exchange:not(.at-work) .status").first.wait_for()
    assert page.locator(".answer").inner_text().startswith("According to House: The boiler was serviced")
    assert page.input_value("#question") == ""
    page.locator("summary").first.click()
    assert page.locator(".sources li").inner_text().endswith("house.md")
    page.fill("#question", "and how much was it?")
    page.press("#question", "Enter")
    page.locator("article.exchange:not(.at-work) .status").nth(1).wait_for()
    assert "240 euros" in page.locator(".answer").nth(1).inner_text()
    page.reload()
    assert page.locator("article.exchange").count() == 2
    page.click("nav >> text=memory")
    page.click("article.document a")
    page.locator("details.forget summary").click()
    page.click("details.forget button")
    page.locator("text=Nothing is remembered yet").wait_for()
    assert wrong == []
