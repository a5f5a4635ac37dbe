"""Drafts of answers: figures, dates, sums and citations as a model writes them on a bad day, or when it is told to."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from interlock.answers.grounding import Source, ground
from tests.fuzz.target import Target, mutated

_RESULT: dict[str, Any] = {
    "trail_id": "waldo-lake-3536",
    "downed_trees_per_mile": 41.5,
    "cost_usd": 298000,
    "miles": [4, 8],
    "severity": {"high": 0.42, "acres": 127831},
    "note": "assessed 2022-10-14 at 09:30 under 7 CFR 1b.4(d), see https://fs.example/a1",
    "huge": 10**300,
    "": None,
}
_TEXTS = [
    "waldo-lake-3536 is class 3 with 41.5 trees per mile, 42% burned badly, 127,831 acres, about 128,000 acres.",
    "$298,000, or $298 thousand, or about $0.3 million; 4 + 8 = 12 miles; 12 miles in all (4 + 8).",
    "on October 14, 2022 at 9:30 am under 7 CFR 1b.4(d), see https://fs.example/a1, as record 1 says",
    "one hundred and twenty thousand, two million, twenty-five; three stretches of seven; €298,000; a@b.example",
]
_FRAGMENTS = [
    "1e999999999", "9" * 400, "1,000" * 90, "(((((((((", "4 + 8 - 2 * 3 / 0 = ", "9 ^ 9 ^ 9 = 1", "0.1" + "0" * 300, "−5", "½", "٣٤", "１２",
    "one hundred and " * 60, "October 99, 99999", "24:61 am", "https://" + "a." * 200, "[1][2]" * 50, "%" * 80, "$ € £ ", "1/2/3/4/5/6",
    "7 CFR " * 40, "record " * 60, " = " * 60, "1 + " * 200, "-" * 300, "a-" * 200 + "1", "1-" * 200, "@" * 100, "\u200b", "1\u00a0000",
]  # fmt: skip
_SOURCES = st.sampled_from([[], ["result"], ["result", "text"], ["deep"]])


def _deep() -> Any:
    found: Any = 1
    for _ in range(30):
        found = {"a": [found, 2]}
    return found


_NAMED: dict[str, Any] = {"result": _RESULT, "text": "Is it safe for 12 scouts in 2026? 1e309 " * 20, "deep": _deep()}


def read(given: tuple[str, list[str]]) -> None:
    """A verdict on every claim, each at its place in the text."""
    text, names = given
    found = ground(text, [Source(f"record {n}", _NAMED[name]) for n, name in enumerate(names, 1)])
    for claim in found.claims:
        assert claim.text in text


TARGET = Target("drafts", st.tuples(mutated(_TEXTS, _FRAGMENTS), _SOURCES), read)
