"""What a constrained model may say: sentences that are each true of a result as they stand."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.answers.constrained.fact_sentences import fact_sentences


@pytest.mark.parametrize(
    ("result", "leads", "lines"),
    [
        ({"summary": "Two trails  are closed."}, ("Two trails are closed",), ()),
        ({"value": {"name": "Waldo Lake", "acres": 1200}}, (), ("Waldo Lake: acres 1,200",)),
        ({"value": {"damage_class": 3, "rule": "R-4"}}, (), ("damage class 3",)),
        (
            {"value": {"name": "Cedar", "stands": [{"label": "A", "trees": 7}, {"trees": 9}]}},
            (),
            ("Cedar, A: stands trees 7", "Cedar: stands trees 9"),
        ),
        ({"value": {"open": None, "note": "a; b."}}, (), ("note a, b",)),
        ({"value": "That is 40.5 hectares."}, ("That is 40.5 hectares",), ()),
        ({"value": "All of it.", "summary": "Said by the tool."}, ("Said by the tool",), ()),
        ({"value": "x" * 1001}, (), ()),
        ({"value": ["loose", "texts"]}, (), ()),
    ],
)
def test_a_result_becomes_leads_and_statements(
    result: dict[str, Any], leads: tuple[str, ...], lines: tuple[str, ...]
) -> None:
    assert fact_sentences([result]) == (leads, lines)


def test_statements_are_short_few_and_said_once() -> None:
    rows: list[dict[str, Any]] = [
        {"value": {f"field_{n}": n for n in range(100)}},
        {"value": {"field_1": 1, "text": "long " * 60}},
    ]
    _leads, lines = fact_sentences(rows)
    assert (len(lines), lines.count("field 1 1"), max(map(len, lines)) <= 120) == (60, 1, True)
