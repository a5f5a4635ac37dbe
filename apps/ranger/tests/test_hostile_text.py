"""Names and texts are somebody else's: whatever stands in them, a page, a picture and a table only show it."""

from __future__ import annotations

import io
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from rich.console import Console

from interlock_ranger.briefing.compose import Briefing
from interlock_ranger.briefing.page import render_page
from interlock_ranger.briefing.terminal import print_briefing
from interlock_ranger.records import Fire
from interlock_ranger.view.result_tables import LAYOUTS, build_table
from interlock_ranger.view.svg import Bar, StackedBar, draw_bars, draw_map, draw_stacked_bars
from ranger_parts import Composed

HOSTILE = (
    "</title></style></svg></td><script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
    " {{ 7 * 191 }}{% raw %} ]]> &amp; &lt;b&gt; [red]\\"
)
TAGS = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "code", "figure", "figcaption", "span", "i",
    "section", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "ol", "ul", "li",
    "svg", "path", "text", "line", "rect", "circle",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "class", "style", "id", "title", "viewbox", "role", "aria-label", "d", "fill", "stroke",
    "stroke-width", "fill-rule", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height",
}  # fmt: skip
STYLES = ("background:#", "text-anchor:")


class Seen(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: dict[str, list[str]] = {}
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value or "")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def poison(value: Any, path: str = "") -> Any:
    """A value with every text in it replaced by hostile text that says where it stood."""
    if isinstance(value, str):
        return f"{HOSTILE}{path}"
    if isinstance(value, dict):
        return {key: poison(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(poison(item, f"{path}[]") for item in value)
    return value


def poison_struct(struct: Any, path: str, **more: Any) -> Any:
    texts = {
        name: poison(value, f"{path}.{name}")
        for name in struct.__struct_fields__
        if isinstance(value := getattr(struct, name), str)
        or (isinstance(value, tuple) and value and isinstance(value[0], str))
    }
    return msgspec.structs.replace(struct, **(texts | more))


def poison_fire(fire: Fire) -> Fire:
    trails = {
        key: poison_struct(trail, "trail", damage_points=tuple(poison_struct(p, "damage") for p in trail.damage_points))
        for key, trail in fire.trails.items()
    }
    return msgspec.structs.replace(
        fire,
        facts=poison_struct(fire.facts, "facts"),
        sectors={key: poison_struct(sector, "sector") for key, sector in fire.sectors.items()},
        trails=trails,
        stands={key: poison_struct(stand, "stand") for key, stand in fire.stands.items()},
    )


@pytest.fixture
def briefing(composed: dict[str, Composed]) -> Briefing:
    found = composed["cedar-creek-2022"].briefing
    results = tuple(
        msgspec.structs.replace(result, value=poison(result.value, result.tool), summary=f"{HOSTILE}{result.tool}")
        for result in found.results
    )
    turn = msgspec.structs.replace(found.turn, turn=HOSTILE, sources=(HOSTILE,), answer=HOSTILE)
    return msgspec.structs.replace(found, fire=poison_fire(found.fire), turn=turn, results=results)


def test_no_text_of_any_field_becomes_an_element_or_an_attribute(briefing: Briefing) -> None:
    page = render_page(briefing)
    seen = Seen(page)
    assert seen.tags <= TAGS
    assert set(seen.attributes) <= ATTRIBUTES
    assert all(style.startswith(STYLES) and '"' not in style for style in seen.attributes["style"])
    assert "<script" not in page
    assert str(7 * 191) not in page  # a text is no template


def test_every_text_of_the_page_is_shown_as_it_is(briefing: Briefing) -> None:
    seen = Seen(render_page(briefing))
    shown = "\n".join([*seen.texts, *seen.attributes["aria-label"]])
    fields = ["facts.name", "facts.fire_id", "facts.forests[]", "sector.sector_id", "sector.name", "trail.name",
              "damage.damage_id"]  # fmt: skip
    for tool in {result.tool for result in briefing.results}:
        fields += [tool, f"{tool}.evidence.reasoning[].text", f"{tool}.evidence.reasoning[].rule"]
        layout = LAYOUTS[tool]
        rows = next(r.value[layout.key] for r in briefing.results if r.tool == tool)
        fields += [f"{tool}.{layout.key}[].{c}" for row in rows for c in layout.columns if isinstance(row[c], str)]
    fields += [f"{briefing.results[0].tool}.evidence.data_sources[].{name}" for name in ("file", "dated", "sha256")]
    for field in fields:
        assert f"{HOSTILE}{field}" in shown, field
    assert HOSTILE in seen.texts  # the turn's id


def test_pictures_are_well_formed_whatever_they_are_told(briefing: Briefing) -> None:
    fire = briefing.fire
    told = {"severity": HOSTILE, "dnbr_mean": HOSTILE, "advice": HOSTILE, "risk_score": HOSTILE}
    drawn = draw_map(fire, dict.fromkeys(fire.sectors, told), dict.fromkeys(fire.trails, told))
    tree = ElementTree.fromstring(drawn)
    assert {element.tag for element in tree.iter()} == {"svg", "path", "title", "text", "circle", "line"}
    assert {e.get("fill") for e in tree.iter("path")} == {"#eeeeee", "none"}  # a colour is never a text of others
    bars = ElementTree.fromstring(draw_bars([Bar(label=HOSTILE, value=3.0, colour="#123456", error=1.0)], HOSTILE))
    assert [text.text for text in bars.iter("text")] == [HOSTILE[:28], f"3 {HOSTILE}"]
    stacked = draw_stacked_bars([StackedBar(label=HOSTILE, shares_pct={HOSTILE: 40.0})])
    (title,) = ElementTree.fromstring(stacked).iter("title")
    assert title.text == f"{HOSTILE}: {HOSTILE} 40.0 %"


def test_a_terminal_shows_brackets_and_takes_no_orders_from_them(briefing: Briefing) -> None:
    screen = io.StringIO()
    print_briefing(Console(file=screen, width=400), briefing)
    assert "[red]" in screen.getvalue()
    table = build_table("portfolio_triage", {"fires": [{"name": "[bold]x[/] [link=evil]y"}]}, 7)
    assert table is not None
    shown = io.StringIO()
    Console(file=shown, width=120).print(table)
    assert "[bold]x[/] [link=evil]y" in shown.getvalue()
