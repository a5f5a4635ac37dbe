"""Read a policy from a file, a text or a dict; every finding names its place and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from interlock.errors import ConfigError, PolicyError
from interlock.policy.model import ListSpec, Place, Policy
from interlock.policy.packs import Pack, Use
from interlock.policy.review_table import groups_of, read_review
from interlock.policy.sections import Finding, Section
from interlock.policy.tables import (
    is_limit,
    read_budget,
    read_cooldown,
    read_grant,
    read_list,
    read_rate,
    read_risk,
    read_rule,
)
from interlock.policy.use import collect_packs, expand_pack
from interlock.toml_text import parse_toml
from interlock.values import Grant, Json, Mode
from interlock.wrong_values import require_kind

PolicySource = str | Path | Mapping[str, Any] | Policy
"""The name of a file, the text of one, a dict with the same keys, or a policy that was read already."""

_LISTS = ("rule", "risk", "use", "rate", "budget", "cooldown")
_TABLES = ("version", "mode", "as_planned", "review", *_LISTS, "actor", "limits", "lists")
# [[rule]], [actor.ann] or [lists."a b"]: tomllib gives no line numbers, and a finding has to name its place.
_HEADER = re.compile(r"^\s*\[\[?\s*([A-Za-z_][\w-]*)(?:\s*\.\s*(?:\"([^\"]+)\"|([\w-]+)))?\s*\]\]?")

_WHEN = re.compile(r"""^\s*when\s*=\s*(?P<opens>\"{3}\s*$|'{3}\s*$)?""")

T = TypeVar("T")


def load_policy(source: PolicySource, *, packs: Iterable[Pack] = ()) -> Policy:
    """The policy in a file, a text or a dict, with packs of your own beside the built-in and the installed ones."""
    if isinstance(source, Policy):
        if tuple(packs):
            raise ConfigError("packs= has no effect on a policy that was read already: give them to parse_policy")
        return source
    if isinstance(source, Mapping):
        return build_policy(source, packs=packs)
    if not isinstance(source, str | Path):
        raise ConfigError(
            f"policy= is the name of a file, the text of one, a dict with its keys or a Policy, not"
            f" {type(source).__name__}"
        )
    if isinstance(source, str) and "\n" in source:  # no file is called so
        return parse_policy(source, packs=packs)
    file = Path(source)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        way_on = "write one, or say where it is: policy in the settings, --policy, or policy=..."
        raise PolicyError([f"{file}: there is no such policy file; {way_on}"]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError([f"{file}: cannot be read: {error}"]) from None
    return parse_policy(text, str(file), packs=packs)


def parse_policy(text: str, file: str = "policy", *, packs: Iterable[Pack] = ()) -> Policy:
    """The policy in a text; raises PolicyError with every finding at once."""
    require_kind("what parse_policy takes", text, str, "the text of a policy (load_policy reads files and dicts)")
    try:
        raw = parse_toml(text)
    except ValueError as error:
        raise PolicyError([f"{file}: not valid TOML: {error}"]) from None
    return _Reader(raw, file, _find_lines(text), packs).read()


def build_policy(raw: Mapping[str, Any], file: str = "policy", *, packs: Iterable[Pack] = ()) -> Policy:
    """The policy in a dict with the keys that a file has; checked as a file is, without line numbers."""
    try:
        plain = _as_in_toml(raw)
    except (TypeError, RecursionError) as error:
        raise PolicyError([f"{file}: a policy is made of text, numbers, lists and tables: {error}"]) from None
    return _Reader(plain, file, None, packs).read()


def _as_in_toml(value: Any) -> Any:
    """A value as a file would give it: other collections are lists, sets in one order, enumerations their values."""
    if isinstance(value, Mapping):
        return {str(key): _as_in_toml(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(_as_in_toml, value), key=str)
    if isinstance(value, list | tuple):
        return [_as_in_toml(item) for item in value]
    if isinstance(value, Enum):
        return _as_in_toml(value.value)
    if not isinstance(value, str | int | float | date):
        raise TypeError(f"{value!r} is none of these")
    return value


def _find_lines(text: str) -> dict[tuple[str, object], int]:
    """Line numbers of table headers: of the nth [[name]], and of [name.key]; and of the conditions in them."""
    found: dict[tuple[str, object], int] = {}
    counts: dict[str, int] = {}
    name = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header is None:
            condition = _WHEN.match(line)
            if condition is not None:  # TOML leaves out the end of a line that comes first in a long text
                found.setdefault((f"{name}.when", counts.get(name)), number + (condition["opens"] is not None))
            continue
        name, key = header[1], header[2] or header[3]
        if line.lstrip().startswith("[["):
            counts[name] = counts.get(name, -1) + 1
            found[name, counts[name]] = number
        else:
            found[name, key] = number
    return found


class _Reader:
    """One policy while it is read: its tables, their lines (None: it has none), and what was found wrong."""

    def __init__(
        self, raw: dict[str, Any], file: str, lines: dict[tuple[str, object], int] | None, packs: Iterable[Pack]
    ) -> None:
        self._raw = raw
        self._file = file
        self._lines = lines
        self._packs = collect_packs(packs)
        self._findings: list[Finding] = []
        self._top = Section(raw, self._place("", None), "the policy", self._findings)

    def read(self) -> Policy:
        """The whole policy, or PolicyError with every finding."""
        self._top.refuse_unknown(_TABLES)
        mode = self._raw.get("mode")
        if self._raw.get("version") != 1 or isinstance(self._raw.get("version"), bool):  # true == 1 in Python
            self._refuse("write version = 1 at the top (the only version there is)")
        if mode not in (None, *Mode):
            self._refuse(f"mode is one of {', '.join(Mode)}, not {mode!r}")
        parts = {name: self._tables(name) for name in _LISTS}
        review = Section(self._raw.get("review", {}), self._place("review", None), "[review]", self._findings)
        groups = groups_of(review)
        rules = [made for part in parts["rule"] if (made := read_rule(part, groups)) is not None]
        for part in parts["use"]:
            rules.extend(expand_pack(Use(part.raw, part.place, part.title, self._findings), self._packs))
        policy = Policy(
            file=self._file,
            rules=tuple(rules),
            risks=tuple(_read_all(parts["risk"], read_risk)),
            rates=tuple(_read_all(parts["rate"], read_rate)),
            budgets=tuple(_read_all(parts["budget"], read_budget)),
            cooldowns=tuple(_read_all(parts["cooldown"], read_cooldown)),
            grants=self._grants(),
            limits=self._limits(),
            lists=self._lists(),
            as_planned=self._top.names("as_planned", ()),
            review=read_review(review),
            mode=Mode(mode) if mode in tuple(Mode) else None,
            places={str(part.raw["id"]): part.place for found in parts.values() for part in found if "id" in part},
        )
        for kind in ("rules", "risks", "rates", "budgets", "cooldowns"):
            self._refuse_duplicates(kind, [item.id for item in getattr(policy, kind)], policy.places)
        if self._findings:
            raise PolicyError(list(dict.fromkeys(str(finding) for finding in self._findings)))
        return policy

    def _place(self, name: str, key: object) -> Place:
        return Place(self._file, 0 if self._lines is None else self._lines.get((name, key), 1))

    def _refuse(self, message: str) -> None:
        self._findings.append(Finding(str(self._top.place), message))

    def _tables(self, name: str) -> list[Section]:
        tables = self._raw.get(name, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self._refuse(f"{name} is a list of tables: write [[{name}]]")
            return []
        return [self._section(table, name, index) for index, table in enumerate(tables)]

    def _section(self, table: dict[str, Any], name: str, index: int) -> Section:
        # Without lines, a table that has no id is found by its number.
        number = f" number {index + 1}" if self._lines is None and "id" not in table else ""
        when_line = (self._lines or {}).get((f"{name}.when", index), 0)
        return Section(table, self._place(name, index), f"[[{name}]]{number}", self._findings, when_line=when_line)

    def _read_keyed(self, name: str) -> dict[str, Any]:
        """A table of named values, or a finding."""
        table = self._raw.get(name, {})
        if not isinstance(table, dict):
            self._refuse(f"{name} is a table: write [{name}] or [{name}.NAME]")
            return {}
        return table

    def _grants(self) -> dict[str, Grant]:
        grants = {}
        for actor, table in self._read_keyed("actor").items():
            part = Section(table, self._place("actor", actor), f"[actor.{actor}]", self._findings)
            grants[actor] = read_grant(actor, part)
        return {actor: grant for actor, grant in grants.items() if grant is not None}

    def _limits(self) -> dict[str, Json]:
        limits: dict[str, Json] = self._read_keyed("limits")
        for name, value in limits.items():
            if not is_limit(value):
                self._refuse(f"limits.{name} is text, a number, true/false or a list of text")
        return limits

    def _lists(self) -> dict[str, ListSpec]:
        lists = {}
        for name, table in self._read_keyed("lists").items():
            written = {"values": table} if isinstance(table, list) else table
            known = self._lines is None or ("lists", name) in self._lines
            place = self._place("lists", name if known else None)
            lists[name] = read_list(name, Section(written, place, f"[lists.{name}]", self._findings))
        return {name: found for name, found in lists.items() if found is not None}

    def _refuse_duplicates(self, kind: str, ids: list[str], places: Mapping[str, Place]) -> None:
        for identity in sorted({name for name in ids if ids.count(name) > 1}):
            place = places.get(identity, self._file)
            self._findings.append(
                Finding(str(place), f"there are two {kind} with id {identity!r}; an id names one thing")
            )


def _read_all(parts: Iterable[Section], read: Callable[[Section], T | None]) -> list[T]:
    return [made for part in parts if (made := read(part)) is not None]
