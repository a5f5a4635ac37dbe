"""A judge that shares nothing with the turn layer: it reads the ledger's file and compares with what is on paper."""

from __future__ import annotations

import json
import math
import re
import sqlite3
from pathlib import Path
from typing import Any

_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")
_NAMES = re.compile(r"\[record \d+\]|(?m:^\s*\d{1,2}\.\s)")
"""Names of records and numbers of a list: no figures of the answer."""


def calls_of(file: Path, turn: str) -> list[tuple[str, str, Any, Any]]:
    """Tool, status, arguments and value of every call of a turn, straight from the file."""
    with sqlite3.connect(file) as db:
        rows = db.execute(
            "SELECT id, tool, status, body FROM records WHERE kind = 'call' AND turn = ? ORDER BY id", (turn,)
        ).fetchall()
        beside = {
            number: json.loads(body)
            for number, body in db.execute("SELECT id, payload FROM records WHERE payload IS NOT NULL").fetchall()
            if any(number == row[0] for row in rows)
        }
    found = []
    for number, tool, status, body in rows:
        content = json.loads(body)
        whole = beside.get(number) or {}
        value = {"value": whole.get("value", content.get("value")), "said": content.get("said")}
        value["problem"] = content.get("problem")
        found.append((tool, status, whole.get("arguments", content.get("arguments")), value))
    return found


def numbers(value: Any) -> set[float]:
    """Every number in a JSON value or a text."""
    if isinstance(value, bool) or value is None:
        return set()
    if isinstance(value, int | float):
        return {float(value)}
    if isinstance(value, str):
        return {float(found.replace(",", "")) for found in _NUMBER.findall(value)}
    items = value.values() if isinstance(value, dict) else value
    keys = {n for key in value for n in numbers(str(key))} if isinstance(value, dict) else set()
    lengths = {float(len(value))}
    return keys | lengths | {n for item in items for n in numbers(item)}


def untraced(answer: str, question: str, calls: list[tuple[str, str, Any, Any]]) -> set[float]:
    """Figures of an answer that stand neither in a result nor in the question."""
    known = numbers(question) | {
        n for _, state, _, value in calls if state in ("ok", "no_data") for n in numbers(value)
    }
    return {n for n in numbers(_NAMES.sub("", answer)) if n not in known and abs(n) not in known and -n not in known}


def wilson(k: int, n: int) -> str:
    """A rate with its 95 % interval."""
    if n == 0:
        return "–"
    z, p = 1.96, k / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return f"{k}/{n} = {p:.1%} ({max(0, middle - half):.1%}–{min(1, middle + half):.1%})"
