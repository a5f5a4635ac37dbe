"""The HTML report: whatever documents, models and people have written, it stays text."""

from __future__ import annotations

import argparse
import io
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from interlock_catalog.app import POLICY
from interlock_catalog.checks import Issue
from interlock_catalog.cli.suggestions import catalog_commands
from interlock_catalog.confidence import Calibration
from interlock_catalog.report.change_report import Change, ChangeReport, Difference, FamilyReport
from interlock_catalog.report.html import render_html
from interlock_catalog.report.terminal import print_report
from interlock_catalog.roles.context import Rejection
from interlock_catalog.runner.records import FamilyResult, Run

HOSTILE = """<script>alert("x")</script>' onload='y' " onclick="z &amp; {{ 7 * 7 }} {% raw %}</style></svg>"""
PLACES = iter(range(10_000))


def hostile() -> str:
    """Hostile text that tells where it was put."""
    return f"{HOSTILE}#{next(PLACES)}#"


def build_report(status: str) -> ChangeReport:
    """A report with hostile text in every field that holds text."""
    issue = Issue(
        target=hostile(), field=hostile(), code=hostile(), issue_type=hostile(), severity=hostile(), evidence=hostile()
    )
    change = Change(
        op=hostile(),
        status=status,
        actor=hostile(),
        targets=(hostile(),),
        why=hostile(),
        evidence=(hostile(), hostile()),
        confidence=0.5,
        risk=hostile(),
        rule=hostile(),
        reason=hostile(),
        ticket=hostile(),
        record=7,
        differences=(
            Difference(hostile(), hostile(), hostile(), {hostile(): [hostile(), None, 1.5]}),
            Difference(hostile(), hostile(), None, hostile()),
        ),
        deviates=(hostile(),),
    )
    result = FamilyResult(
        family=hostile(),
        state=hostile(),
        counts={"denied": 1},
        issues={hostile(): 1},
        unresolved=(issue,),
        rejected=(Rejection(hostile(), {"text": hostile()}, hostile()),),
        reason=hostile(),
    )
    run = Run(
        id=hostile(),
        mode=hostile(),
        status=hostile(),
        by=hostile(),
        started=hostile(),
        ended=hostile(),
        worker=hostile(),
        requested=(hostile(),),
        counts={"denied": 1, "ok": 2, hostile(): 3},
        issues={hostile(): 2, hostile(): 1},
        families=(result,),
        left_over=(hostile(), hostile()),
        calibration=Calibration(),
    )
    return ChangeReport(run, (FamilyReport(result, (change,)),))


class Page(HTMLParser):
    """The elements, attributes and texts that a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _value in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def texts_of(value: Any) -> Iterator[str]:
    """Every text somewhere in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for pair in value.items():
            for part in pair:
                yield from texts_of(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts_of(part)


TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "h1",
    "h2",
    "p",
    "span",
    "svg",
    "rect",
    "details",
    "summary",
    "b",
    "br",
    "table",
    "tr",
    "td",
    "del",
    "ins",
}
ATTRIBUTES = {
    "lang",
    "charset",
    "name",
    "content",
    "class",
    "style",
    "viewbox",
    "width",
    "height",
    "role",
    "aria-label",
    "x",
    "fill",
    "open",
}


@pytest.mark.parametrize("status", ["denied", HOSTILE])
def test_hostile_text_in_every_field_stays_text(status: str) -> None:
    report = build_report(status)
    page = Page(render_html(report))
    assert page.tags <= TAGS
    assert page.attributes <= ATTRIBUTES
    whole = "".join(page.texts)
    assert status in whole
    places = {text.rpartition(HOSTILE)[2] for text in texts_of(msgspec.to_builtins(report)) if "#" in text}
    shown = {place for place in places if f"{HOSTILE}{place}" in whole or _as_json(place) in whole}
    assert len(shown) >= (31 if status == "denied" else 28)  # rule, reason and ticket only where a change was stopped


def _as_json(place: str) -> str:
    return msgspec.json.encode(f"{HOSTILE}{place}").decode()[1:-1]


def test_a_run_in_which_nothing_was_done_has_a_page() -> None:
    shown = render_html(ChangeReport(Run(id="r1", mode="dry_run", status="succeeded"), ()))
    assert "Nothing was to be done." in shown
    assert "issues:\nnone." in shown
    assert "<svg" not in shown


def test_what_is_cut_says_so() -> None:
    long = "word " * 100
    whole = build_report("failed")
    rejected = tuple(Rejection(f"tool-{n}", {}, long) for n in range(5))
    (family,) = whole.families
    result = msgspec.structs.replace(family.result, rejected=rejected)
    run = msgspec.structs.replace(whole.run, left_over=tuple(f"family-{n}" for n in range(12)))
    (change,) = family.changes
    told = msgspec.structs.replace(change, why=long)
    out = Console(record=True, width=300, file=io.StringIO())
    print_report(out, ChangeReport(run, (FamilyReport(result, (told,)),)), str, str)
    text = out.export_text()
    assert "and 2 more that were rejected" in text
    assert "family-9 and 2 more" in text
    assert sum(line.rstrip().endswith("word…") or line.rstrip().endswith("word …") for line in text.splitlines()) == 4


def test_what_is_only_observed_is_enabled_by_a_command_that_finds_the_same_catalog() -> None:
    whole = build_report("denied")
    (family,) = whole.families
    (change,) = family.changes
    result = msgspec.structs.replace(family.result, family="squat")
    for rule in ("family-not-enabled", "aliases-not-enabled"):
        told = FamilyReport(result, (msgspec.structs.replace(change, rule=rule),))
        out = Console(record=True, width=300, file=io.StringIO())
        own = catalog_commands(argparse.Namespace(home=Path("my home")))
        print_report(out, ChangeReport(whole.run, (told,)), str, own)
        assert (
            "let it be changed, if this looks right: interlock catalog enable squat --home 'my home'"
            in out.export_text()
        )


def test_a_reason_of_the_policy_names_no_command_as_it_cannot_know_the_folder() -> None:
    reasons = [rule.get("reason", "") for rule in tomllib.loads(POLICY.read_text(encoding="utf-8"))["rule"]]
    assert any("observed only" in reason for reason in reasons)
    assert not [reason for reason in reasons if "interlock " in reason]
