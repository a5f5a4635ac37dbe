"""The words that argument extraction goes by, from a table."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def table() -> dict[str, Any]:
    """The table as it is written."""
    text = (files("interlock.answers.constrained") / "tables" / "extraction.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def common_words() -> frozenset[str]:
    """Words that tell nothing about which of the known values is meant."""
    return frozenset(table()["common"])


@cache
def openings() -> frozenset[str]:
    """Words that a sentence begins with, and that are no part of a name then."""
    return frozenset(table()["openings"])


@cache
def capitalised_words() -> frozenset[str]:
    """Words that are always capitalised, and name nothing that could be on file."""
    return frozenset(table()["capitalised"])


@cache
def negation() -> re.Pattern[str]:
    """The end of a text after which something is not meant: "not the north of "."""
    return re.compile(rf"\b(?:{'|'.join(table()['negations'])})\s+(?:\w+\s+){{0,3}}$")


@cache
def bound() -> re.Pattern[str]:
    """A figure that bounds another: at least 12, 12 or more."""
    given = table()
    before = "|".join([*given["bounds_before"], rf"\b(?:{'|'.join(given['bound_words_before'])})"])
    after = "|".join(given["bound_words_after"])
    # From the first digit of a figure, and with a word that is none between: no place of a long one is gone over twice.
    figure = r"(?<![\d.,])\d[\d.,]{0,40}+"
    between = r"\s{0,8}(?:[^\W\d]\w{0,40}\s{1,8})?"
    return re.compile(rf"(?:{before})\s*\$?\d[\d.,]*|{figure}{between}(?:{after})\b", re.I)
