"""One table of a policy file, with its place: reads keys and collects findings instead of raising."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from interlock.canonical import nearest
from interlock.policy.model import Place


class Finding(msgspec.Struct, frozen=True):
    """Something that is wrong in a policy, and where."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


class Section:
    """A table and its place."""

    def __init__(self, raw: Any, file: str, line: int, title: str) -> None:
        self.raw: dict[str, Any] = raw if isinstance(raw, dict) else {}
        self.place = Place(file=file, line=line)
        self.title = title

    def at(self, message: str) -> Finding:
        """A finding in this table, named by its id where it has one."""
        name = self.raw.get("id")
        return Finding(str(self.place), f"{self.title}{f' {name!r}' if name else ''}: {message}")

    def refuse_unknown(self, known: Iterable[str], findings: list[Finding]) -> None:
        """Every key that nothing reads is an error that names the nearest one."""
        known = tuple(known)
        for key in self.raw:
            if key not in known:
                close = nearest(key, known, 1)
                way_out = f"did you mean {close[0]!r}?" if close else f"keys here are {', '.join(known)}"
                findings.append(self.at(f"unknown key {key!r}; {way_out}"))

    def text(self, key: str) -> str:
        """The text of a key, or ''."""
        value = self.raw.get(key, "")
        return value if isinstance(value, str) else ""

    def want_text(self, keys: Iterable[str], findings: list[Finding]) -> None:
        """Keys that are text where they are there."""
        for key in keys:
            if key in self.raw and not isinstance(self.raw[key], str):
                findings.append(self.at(f"{key} is text"))

    def need_text(self, key: str, findings: list[Finding]) -> str:
        """The text of a key that must be there."""
        value = self.text(key)
        if not value.strip():
            findings.append(self.at(f"{key} is missing or not text"))
        return value

    def names(self, key: str, findings: list[Finding]) -> tuple[str, ...]:
        """A list of names that must be there and not be empty."""
        value = self.raw.get(key)
        if not isinstance(value, list) or not value or not all(isinstance(item, str) and item for item in value):
            findings.append(self.at(f'{key} is a list of names, for example {key} = ["a", "b"]'))
            return ()
        return tuple(value)

    def number(self, key: str, findings: list[Finding]) -> float | None:
        """A number of zero or more, if the key is there."""
        value = self.raw.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
            findings.append(self.at(f"{key} is a number of zero or more"))
            return None
        return value
