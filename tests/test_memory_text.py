"""How documents are cut, and when two texts are the same one."""

from __future__ import annotations

import time
from itertools import pairwise
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.memory.chunking import MOST_CHARS, split_chunks
from interlock.memory.matching import query_words
from interlock.memory.text import content_digest, make_snippet, normalize_text

GUIDE = """Guide
=====

Read this first.

# Install

Type the command.

```
pip install x

# no heading
```

- one thing
- another thing

## From source

1. clone
2. build

# Use

It runs.
"""


def cut(text: str, **more: int) -> list[tuple[str, str]]:
    return [(part.heading, text[part.start : part.end]) for part in split_chunks(text, **more)]


def test_a_chunk_is_what_stands_under_one_heading() -> None:
    assert cut(GUIDE) == [
        ("Guide", "Guide\n=====\n\nRead this first."),
        (
            "Install",
            "# Install\n\nType the command.\n\n```\npip install x\n\n# no heading\n```\n\n- one thing\n- another thing",
        ),
        ("Install > From source", "## From source\n\n1. clone\n2. build"),
        ("Use", "# Use\n\nIt runs."),
    ]


def test_blocks_that_do_not_fit_together_are_chunks_of_their_own() -> None:
    first, second = "a " * 150, "b " * 150
    assert cut(f"{first}\n\n{second}", most=500) == [("", first), ("", second)]


def test_a_long_paragraph_is_cut_between_sentences_and_overlaps_by_one() -> None:
    text = " ".join(f"This is the sentence number {n} of them." for n in range(40))
    parts = [part for _heading, part in cut(text, most=200, overlap=50)]
    assert all(part.endswith(".") for part in parts)
    assert all(part.startswith("This") for part in parts)
    for before, after in pairwise(parts):
        assert before.rpartition("This")[2] in after.partition(".")[0] + "."
    assert "".join(dict.fromkeys(text.split())) == "".join(dict.fromkeys(" ".join(parts).split()))


def test_long_code_and_lists_are_cut_between_lines_without_overlap() -> None:
    code = "```python\n" + "\n".join(f"value_{n} = {n}" for n in range(100)) + "\n```"
    parts = [part for _heading, part in cut(code, most=200)]
    assert "\n".join(parts) == code
    items = "\n".join(f"- item {n} of a list" for n in range(60))
    assert "\n".join(part for _heading, part in cut(items, most=200)) == items


def test_a_heading_without_text_stands_in_the_path_of_what_is_below_it() -> None:
    assert cut("# A\n\n## B\n\ntext") == [("A > B", "## B\n\ntext")]
    assert cut("# A\n\n## B") == [("A > B", "## B")]


def test_a_heading_with_nothing_below_it_is_kept() -> None:
    assert cut("# To do\n\n## Call Ann\n\n## Buy bread\n\n# Done\n\nnothing") == [
        ("To do > Call Ann", "## Call Ann"),
        ("To do > Buy bread", "## Buy bread"),
        ("Done", "# Done\n\nnothing"),
    ]
    assert cut("a\n\n# B\n\n# C\n\nc") == [("", "a"), ("B", "# B"), ("C", "# C\n\nc")]
    long = [f"{'#' * level} {level} {'word ' * 30}end{level}" for level in range(1, 6)]
    text = "\n\n".join([*long, "below"])
    shown = " ".join(f"{heading} {part}" for heading, part in cut(text))
    assert [line for line in long if line.lstrip("# ") not in shown] == []  # though the path is cut


@given(st.text(alphabet=st.sampled_from("ab .#-`\n1)=é語"), max_size=1500))
def test_nothing_is_lost_and_no_chunk_is_too_long(text: str) -> None:
    text = normalize_text(text)
    parts = list(split_chunks(text, most=120, overlap=20))
    assert all(0 < part.end - part.start <= 120 for part in parts)
    assert [part.start for part in parts] == sorted(part.start for part in parts)
    covered = np.zeros(len(text), dtype=bool)
    for part in parts:
        covered[part.start : part.end] = True
    missing = "".join(letter for letter, has in zip(text, covered, strict=True) if not has)
    paths = "\n".join(part.heading for part in parts)
    for line in missing.splitlines():  # only headings that stand in a path, and blanks
        assert line.strip(" \t#=-") == "" or line.strip(" #=-") in paths


@pytest.mark.parametrize(
    "unit", ["a", "a ", "# ", "#", "- x\n", "```\n", "x\n", ".", ". ", "1. ", "a\n=\n", "\n", " \n", "`" * 3, "~"]
)
def test_hostile_texts_are_cut_in_time_that_grows_with_their_length(unit: str) -> None:
    text = unit * (400_000 // len(unit)) + "x"
    began = time.process_time()
    parts = list(split_chunks(text))
    assert time.process_time() - began < 5
    assert all(part.end - part.start <= MOST_CHARS for part in parts)


@pytest.mark.parametrize(
    "unit", [" ", "\t", " \t", "\u0301\u0327", "\u0344", "a" + "\u0301\u0327" * 15, "\u200d\u0301"]
)
def test_hostile_texts_are_normalised_in_time_that_grows_with_their_length(unit: str) -> None:
    text = "x" + unit * (400_000 // len(unit)) + "y"
    began = time.process_time()
    for work in (normalize_text, content_digest, query_words):
        work(text)
    assert time.process_time() - began < 5
    assert normalize_text("a \t\nb\t") == "a\nb"
    assert normalize_text("e" + "\u0301" * 31) == "\u00e9" + "\u0301" * 29


SAME = [
    "Ask Ann.",
    "  ask\n\nANN. ",
    "Ask\u200b Ann.",
    "\ufeffAsk\u00a0Ann.",
    "Ａｓｋ Ann.",
    "Ask\r\nAnn.",
    "A\u00adsk Ann.",
]


def test_spaces_case_and_hidden_characters_make_no_other_text() -> None:
    assert len({content_digest(text) for text in SAME}) == 1
    assert content_digest("Ask Ann") != content_digest("Ask Anne")


@pytest.mark.parametrize(
    "code",
    [
        *(0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x180B, 0x180E, 0x180F, 0x200B, 0x202E, 0x2060, 0x2065),
        *(0x206F, 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF0, 0xFFF9, 0xFFFB, 0x1BCA0, 0x1D173, 0xE0000),
        *(0xE0100, 0xE0FFF),
    ],
)
def test_a_character_that_nobody_sees_makes_no_other_text_and_hides_no_word(code: int) -> None:
    hidden = f"Pay ann{chr(code)}a"
    assert content_digest(hidden) == content_digest("Pay anna")
    assert normalize_text(hidden) == "Pay anna"
    assert query_words(hidden) == (("pay",), ("anna",))


def test_no_letter_is_another_one_in_capitals_or_taken_apart() -> None:
    others = []
    for code in (*range(0x300), *range(0x370, 0x600), *range(0x1E00, 0x2000), *range(0xFB00, 0xFB07)):
        letter = chr(code)
        forms = [letter, letter.upper(), letter.title(), normalize("NFD", letter), normalize("NFD", letter.upper())]
        if len({content_digest(form) for form in forms}) > 1:
            others.append(letter)
    assert others == ["\u0131"]  # a dotless i, of which Unicode says that it is another letter


def test_a_snippet_shows_the_words_that_were_asked_for() -> None:
    text = f"{'before ' * 60}the needle is here {'after ' * 60}"
    snippet = make_snippet(text, ("needle",), 100)
    assert "needle" in snippet
    assert len(snippet) <= 102
    assert (snippet[0], snippet[-1]) == ("…", "…")
    assert make_snippet("short\n\ntext", ("x",)) == "short text"
