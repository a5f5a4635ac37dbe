"""One table of a policy, with its place: reads keys and collects findings instead of raising."""

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
    """A table and its place. Whoever writes a policy sees every mistake at once, so a read never raises."""

    def __init__(self, raw: Any, place: Place, title: str, findings: list[Finding], *, when_line: int = 0) -> None:
        self.raw: dict[str, Any] = raw if isinstance(raw, dict) else {}
        self.place = place
        self.when_line = when_line
        self.title = title
        self.is_sound = True
        """Whether nothing was wrong in this table so far."""
        self.findings = findings
        if not isinstance(raw, dict):
            self.refuse(f"is a table with keys, not {type(raw).__name__}")

    def __contains__(self, key: str) -> bool:
        return key in self.raw

    def refuse(self, message: str) -> None:
        """Note what is wrong in this table, named by its id where it has one."""
        name = self.raw.get("id")
        self.is_sound = False
        self.findings.append(Finding(str(self.place), f"{self.title}{f' {name!r}' if name else ''}: {message}"))

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Every key that nothing reads is an error that names the nearest one."""
        known = tuple(known)
        for key in self.raw:
            if key not in known:
                close = nearest(key, known, 1)
                way_out = f"did you mean {close[0]!r}?" if close else f"keys here are {', '.join(known)}"
                self.refuse(f"unknown key {key!r}; {way_out}")

    def text(self, key: str) -> str:
        """The text of a key, or '' where it is not there."""
        value = self.raw.get(key, "")
        if isinstance(value, str):
            return value
        self.refuse(f"{key} is text, not {value!r}")
        return ""

    def need_text(self, key: str) -> str:
        """The text of a key that must be there."""
        value = self.raw.get(key)
        if isinstance(value, str) and value.strip():
            return value
        self.refuse(f"{key} is missing or not text")
        return ""

    def names(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """A list of names that is not empty; without a default it must be there."""
        if key not in self.raw and default is not None:
            return default
        value = self.raw.get(key)
        if value == []:
            way_on = ", or leave it out" if default is not None else ""
            self.refuse(f'{key} = [] names nothing: write the names, for example {key} = ["a", "b"]{way_on}')
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            self.refuse(f'{key} is a list of names, for example {key} = ["a", "b"]')
            return ()
        return tuple(value)

    def number(self, key: str) -> float | None:
        """A number of zero or more, if the key is there."""
        value = self.raw.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
            self.refuse(f"{key} is a number of zero or more")
            return None
        return value
