"""`interlock tools show`: the whole contract of a tool."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.main import main

TOOLS = '''
from enum import StrEnum

from interlock import Compensation, Context, Limits, RetryRule, tool
from interlock.resources import Documents
from interlock.tools.egress import Egress

shelf = Documents("sqlite:///documents.db", "shelf")
TRAILS = {"waldo-3536": ("Waldo Lake", "the lake trail"), "bobby-3526": "Bobby Lake"}
MANY = [f"plot-{n}" for n in range(12)]


class Season(StrEnum):
    SUMMER = "summer"


def find_crews(text):
    return ("hotshots",)


async def has_been_sent(arguments, context):
    return None


@tool(effect="write", key="{trail_id}", resource=shelf, locks="district/{season}", once_per="run", repeatable=True,
      simulate=lambda state, arguments: state, review_when="args.closed", timeout_s=5, deadline_s=20,
      retry=RetryRule(max_attempts=2), limits=Limits(concurrency=3, cost_usd=0.25), capabilities={"trails:close"},
      trust="untrusted", redact={"phone"},
      known_values={"trail_id": TRAILS, "season": Season, "crew": find_crews, "plot": MANY})
async def close(trail_id: str, season: str, crew: str, plot: str, phone: str = "") -> str:
    """Close a trail.

    For a season.
    """
    return trail_id


def which(arguments):
    return arguments["to"]


@tool(effect="send", key=which, idempotent=True, probe=has_been_sent,
      compensate=Compensation("mail", lambda arguments, value: {"to": arguments["to"]}))
async def mail(to: str, context: Context) -> str:
    """Send a mail."""
    return "sent"


@tool(effect="read", egress=Egress(hosts=("*.example.org",)))
async def fetch(url: str) -> str:
    """Fetch a page."""
    return url


TOOLS = [close, mail, fetch]
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "closures.py").write_text(TOOLS)
    (tmp_path / "interlock.toml").write_text('tools = ["closures:TOOLS"]\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("closures", None)


def show(capsys: pytest.CaptureFixture[str], name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The contract as JSON, and as the lines that people read."""
    assert main(["tools", "show", name, "--json"]) == 0
    contract: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert main(["tools", "show", name]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    return contract, {line[0]: line[1] for line in lines if len(line) == 2}


def test_everything_that_a_contract_says_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    contract, lines = show(capsys, "close")
    expected = {
        "name": "close",
        "description": "Close a trail.\n\nFor a season.",
        "effect": "write",
        "key": "{trail_id}",
        "resource": "shelf",
        "locks": "district/{season}",
        "once_per": "run",
        "repeatable": True,
        "idempotent": False,
        "simulate": True,
        "probe": None,
        "compensate": None,
        "review_when": "args.closed",
        "operator": False,
        "capabilities": ["trails:close"],
        "trust": "untrusted",
        "redact": ["phone"],
        "timeout_s": 5,
        "deadline_s": 20,
        "cost_usd": 0.25,
    }
    assert expected.items() <= contract.items()
    assert (contract["retry"]["max_attempts"], contract["limits"]["concurrency"]) == (2, 3)
    assert list(contract["parameters"]["properties"]) == ["trail_id", "season", "crew", "plot", "phone"]
    assert contract["returns"]["type"] == "string"
    assert contract["known_values"]["trail_id"]["waldo-3536"] == ["Waldo Lake", "the lake trail"]
    assert contract["known_values"]["season"] == {"summer": []}
    assert contract["known_values"]["crew"] == "closures:find_crews"
    assert len(contract["known_values"]["plot"]) == 12
    assert set(contract) - {"name", "description", "parameters", "returns"} <= set(lines)
    assert (lines["key"], lines["locks"], lines["resource"]) == ("{trail_id}", "district/{season}", "shelf")
    assert (lines["repeatable"], lines["idempotent"], lines["probe"]) == ("yes", "no", "–")
    assert lines["retry"].startswith("max_attempts 2, base_s 0.2")
    assert "trail_id (waldo-3536 (Waldo Lake, the lake trail); bobby-3526 (Bobby Lake))" in lines["known_values"]
    assert "crew (found by closures:find_crews)" in lines["known_values"]
    assert "plot-7; and 4 more)" in lines["known_values"]


def test_functions_are_told_by_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    contract, lines = show(capsys, "mail")
    assert (contract["key"], contract["probe"]) == ("closures:which", "closures:has_been_sent")
    assert (contract["compensate"], contract["idempotent"]) == ("mail", True)
    assert (lines["compensate"], lines["idempotent"]) == ("mail", "yes")


def test_where_a_tool_may_connect_to_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    contract, lines = show(capsys, "fetch")
    assert contract["egress"] == {"hosts": ["*.example.org"], "schemes": ["https"], "networks": []}
    assert lines["egress"] == "hosts *.example.org, schemes https, networks –"
