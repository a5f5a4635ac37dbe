"""Read a policy file; every finding names file and line and what to write instead."""

from __future__ import annotations

import re
import tomllib
from math import isfinite
from pathlib import Path
from typing import Any

from interlock.errors import PolicyError
from interlock.policy.model import RISKS, Cooldown, ListSpec, Policy, Rule
from interlock.policy.packs import expand
from interlock.policy.sections import Finding, Section
from interlock.values import EVERYONE, Budget, Decision, Grant, Json, Mode, Rate

_TABLES = ("version", "mode", "rule", "risk", "use", "rate", "budget", "cooldown", "actor", "limits", "lists")
_LONGEST_S = 3650 * 86_400
_LISTS = ("rule", "risk", "use", "rate", "budget", "cooldown")
_PER = {
    "s": 1.0,
    "second": 1.0,
    "m": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
}
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*([a-z]+)")
_SPAN = re.compile(r"(\d+)\s*(s|m|h|d)")
_HEADER = re.compile(r"^\s*\[\[?\s*([A-Za-z_][\w-]*)(?:\s*\.\s*(?:\"([^\"]+)\"|([\w-]+)))?\s*\]\]?")


def load_policy(path: str | Path) -> Policy:
    """The policy in a file."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PolicyError([f"{file}: there is no such policy file; write one or pass policy=..."]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError([f"{file}: cannot be read: {error}"]) from None
    return parse_policy(text, str(file))


def parse_policy(text: str, file: str = "policy") -> Policy:
    """The policy in a text; raises PolicyError with every finding at once."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError([f"{file}: not valid TOML: {error}"]) from None
    lines = _lines(text)
    top = Section(raw, file, 1, "the policy")
    findings: list[Finding] = []
    top.refuse_unknown(_TABLES, findings)
    if raw.get("version") != 1 or isinstance(raw.get("version"), bool):
        findings.append(Finding(f"{file}:1", "write version = 1 at the top (the only version there is)"))
    if raw.get("mode") not in (None, *Mode):
        findings.append(Finding(f"{file}:1", f"mode is one of {', '.join(Mode)}, not {raw['mode']!r}"))
    sections = {name: _tables(raw, name, file, lines, findings) for name in _LISTS}
    rules = [rule for part in sections["rule"] if (rule := _rule(part, findings)) is not None]
    for part in sections["use"]:
        rules.extend(expand(part, findings))
    policy = Policy(
        file=file,
        rules=tuple(rules),
        risks=tuple(risk for part in sections["risk"] if (risk := _risk(part, findings)) is not None),
        rates=tuple(rate for part in sections["rate"] if (rate := _rate(part, findings)) is not None),
        budgets=tuple(item for part in sections["budget"] if (item := _budget(part, findings)) is not None),
        cooldowns=tuple(rest for part in sections["cooldown"] if (rest := _cooldown(part, findings)) is not None),
        grants=_grants(raw, file, lines, findings),
        limits=_limits(raw, file, findings),
        lists=_lists(raw, file, lines, findings),
        mode=Mode(raw["mode"]) if raw.get("mode") in tuple(Mode) else None,
        places={part.text("id"): part.place for parts in sections.values() for part in parts if "id" in part.raw},
    )
    for kind, ids in (
        ("rules", [rule.id for rule in policy.rules]),
        ("risks", [risk.id for risk in policy.risks]),
        ("rates", [rate.id for rate in policy.rates]),
        ("budgets", [item.id for item in policy.budgets]),
        ("cooldowns", [item.id for item in policy.cooldowns]),
    ):
        _refuse_twice(kind, ids, policy, findings)
    if findings:
        raise PolicyError([str(finding) for finding in findings])
    return policy


def _lines(text: str) -> dict[tuple[str, object], int]:
    """Line numbers of table headers: of the nth [[name]], and of [name.key]."""
    found: dict[tuple[str, object], int] = {}
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header is None:
            continue
        name, key = header[1], header[2] or header[3]
        if line.lstrip().startswith("[["):
            counts[name] = counts.get(name, -1) + 1
            found[name, counts[name]] = number
        else:
            found[name, key] = number
    return found


def _tables(raw: dict[str, Any], name: str, file: str, lines: Any, findings: list[Finding]) -> list[Section]:
    tables = raw.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        findings.append(Finding(f"{file}:1", f"{name} is a list of tables: write [[{name}]]"))
        return []
    return [Section(table, file, lines.get((name, index), 1), f"[[{name}]]") for index, table in enumerate(tables)]


def _rule(part: Section, findings: list[Finding]) -> Rule | None:
    part.refuse_unknown(("id", "tools", "decision", "when", "reason", "set", "actors", "modes"), findings)
    part.want_text(("reason",), findings)
    count = len(findings)
    identity, tools = part.need_text("id", findings), part.names("tools", findings)
    decision, rewrites = part.raw.get("decision"), part.raw.get("set", {})
    if decision == "clamp":
        if not isinstance(rewrites, dict) or not rewrites:
            findings.append(part.at('a clamp rule needs set = { field = "CEL expression" }'))
    elif decision not in tuple(Decision):
        findings.append(part.at(f"decision is allow, deny, review or clamp, not {decision!r}"))
    elif "set" in part.raw:
        findings.append(part.at('only a rule with decision = "clamp" may set arguments'))
    when = _condition(part, findings)
    if len(findings) > count:
        return None
    return Rule(
        id=identity,
        tools=tools,
        place=part.place,
        decision=None if decision == "clamp" else Decision(str(decision)),
        when=when,
        reason=part.text("reason"),
        set=rewrites,
    )


def _condition(part: Section, findings: list[Finding]) -> str | None:
    """`when`, with the lists of actors and modes written out as conditions too."""
    clauses = []
    for key, variable in (("actors", "actor"), ("modes", "mode")):
        if key in part.raw:
            names = part.names(key, findings)
            if key == "modes":
                findings.extend(
                    part.at(f"modes are {', '.join(Mode)}, not {n!r}") for n in names if n not in tuple(Mode)
                )
            clauses.append(f"{variable} in [{', '.join(repr(name) for name in names)}]")
    if "when" in part.raw:
        clauses.append(f"({part.need_text('when', findings)})")
    return " && ".join(clauses) or None


def _risk(part: Section, findings: list[Finding]) -> Rule | None:
    part.refuse_unknown(("id", "tools", "level", "when"), findings)
    identity, tools = part.need_text("id", findings), part.names("tools", findings)
    level, when = part.text("level"), part.need_text("when", findings)
    if level not in RISKS:
        findings.append(part.at(f"level is one of {', '.join(RISKS)}"))
        return None
    return Rule(id=identity, tools=tools, place=part.place, when=when, level=level)


def _rate(part: Section, findings: list[Finding]) -> Rate | None:
    part.refuse_unknown(("id", "tools", "per", "rate", "burst", "actors"), findings)
    identity, tools = part.need_text("id", findings), part.names("tools", findings)
    per = part.names("per", findings) if "per" in part.raw else ("actor", "tool")
    spelled = _RATE.fullmatch(part.text("rate"))
    burst = part.raw.get("burst", 1)
    if spelled is None or spelled[2] not in _PER or float(spelled[1]) <= 0:
        findings.append(part.at('rate is written "10/minute" (second, minute, hour, day)'))
        return None
    if any(name not in ("actor", "tool") for name in per):
        findings.append(part.at('per is ["actor"], ["tool"] or both'))
        return None
    if not isinstance(burst, int) or isinstance(burst, bool) or burst < 1:
        findings.append(part.at("burst is a whole number, at least 1"))
        return None
    return Rate(
        id=identity,
        tools=tools,
        per=per,
        per_s=float(spelled[1]) / _PER[spelled[2]],
        burst=burst,
        actors=part.names("actors", findings) if "actors" in part.raw else EVERYONE,
    )


def _budget(part: Section, findings: list[Finding]) -> Budget | None:
    part.refuse_unknown(("id", "per", "calls", "cost_usd", "seconds", "actors", "window"), findings)
    identity, per = part.need_text("id", findings), part.text("per")
    if per not in ("turn", "run", "actor"):
        findings.append(part.at("per is turn, run or actor"))
        return None
    amounts = {key: part.number(key, findings) for key in ("calls", "cost_usd", "seconds")}
    if all(amount is None for amount in amounts.values()):
        findings.append(part.at("a budget limits calls, cost_usd or seconds (or several)"))
        return None
    window = _SPAN.fullmatch(part.text("window")) if "window" in part.raw else None
    if "window" in part.raw and (window is None or int(window[1]) < 1 or per != "actor"):
        findings.append(part.at('window is written "1d" (s, m, h, d) and goes with per = "actor"'))
        return None
    calls, cost, seconds = amounts["calls"], amounts["cost_usd"], amounts["seconds"]
    if calls is not None and calls != int(calls):
        findings.append(part.at("calls is a whole number"))
        return None
    return Budget(
        id=identity,
        per=per,
        calls=None if calls is None else int(calls),
        cost_micros=None if cost is None else round(cost * 1_000_000),
        ms=None if seconds is None else round(seconds * 1000),
        actors=part.names("actors", findings) if "actors" in part.raw else EVERYONE,
        window_s=None if window is None else int(int(window[1]) * _PER[window[2]]),
    )


def _cooldown(part: Section, findings: list[Finding]) -> Cooldown | None:
    part.refuse_unknown(("id", "tools", "window", "actors"), findings)
    identity, tools = part.need_text("id", findings), part.names("tools", findings)
    window = _SPAN.fullmatch(part.text("window"))
    if window is None or not 1 <= int(window[1]) * _PER[window[2]] <= _LONGEST_S:
        findings.append(part.at('window is written "7d" (s, m, h, d), and at most ten years'))
        return None
    actors = part.names("actors", findings) if "actors" in part.raw else EVERYONE
    return Cooldown(id=identity, tools=tools, window_s=int(int(window[1]) * _PER[window[2]]), actors=actors)


def _grants(raw: dict[str, Any], file: str, lines: Any, findings: list[Finding]) -> dict[str, Grant]:
    grants: dict[str, Grant] = {}
    for actor, table in _keyed(raw, "actor", file, findings).items():
        part = Section(table, file, lines.get(("actor", actor), 1), f"[actor.{actor}]")
        if not isinstance(table, dict):
            findings.append(part.at("an actor is a table with capabilities and modes"))
            continue
        part.refuse_unknown(("capabilities", "modes"), findings)
        modes = part.names("modes", findings) if "modes" in part.raw else tuple(Mode)
        wrong = [mode for mode in modes if mode not in tuple(Mode)]
        if wrong:
            findings.append(part.at(f"modes are {', '.join(Mode)}, not {wrong[0]!r}"))
            continue
        capabilities = part.names("capabilities", findings) if "capabilities" in part.raw else ()
        grants[actor] = Grant(
            actor=actor, capabilities=frozenset(capabilities), modes=frozenset(Mode(mode) for mode in modes)
        )
    return grants


def _limits(raw: dict[str, Any], file: str, findings: list[Finding]) -> dict[str, Json]:
    limits: dict[str, Json] = _keyed(raw, "limits", file, findings)
    for name, value in limits.items():
        texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
        number = isinstance(value, int | float) and isfinite(value)
        if not (isinstance(value, str) or texts or number):
            findings.append(Finding(f"{file}:1", f"limits.{name} is text, a number, true/false or a list of text"))
    return limits


def _lists(raw: dict[str, Any], file: str, lines: Any, findings: list[Finding]) -> dict[str, ListSpec]:
    lists: dict[str, ListSpec] = {}
    for name, table in _keyed(raw, "lists", file, findings).items():
        written = {"values": table} if isinstance(table, list) else table
        part = Section(written, file, lines.get(("lists", name), lines.get(("lists", None), 1)), f"[lists.{name}]")
        part.refuse_unknown(("values", "file", "database", "query", "ttl_s"), findings)
        kinds = [key for key in ("values", "file", "query") if key in part.raw]
        if len(kinds) != 1 or ("query" in part.raw) != ("database" in part.raw):
            findings.append(part.at('a list has values = [...], or file = "...", or database and query'))
            continue
        lists[name] = ListSpec(
            name=name,
            place=part.place,
            values=part.names("values", findings) if "values" in part.raw else None,
            file=part.text("file") or None,
            database=part.text("database") or None,
            query=part.text("query") or None,
            ttl_s=30.0 if (ttl_s := part.number("ttl_s", findings)) is None else float(ttl_s),
        )
    return lists


def _refuse_twice(kind: str, ids: list[str], policy: Policy, findings: list[Finding]) -> None:
    for identity in sorted({name for name in ids if ids.count(name) > 1}):
        place = policy.places.get(identity, policy.file)
        findings.append(Finding(str(place), f"there are two {kind} with id {identity!r}; an id names one thing"))


def _keyed(raw: dict[str, Any], name: str, file: str, findings: list[Finding]) -> dict[str, Any]:
    """A table of named tables, or a finding."""
    table = raw.get(name, {})
    if not isinstance(table, dict):
        findings.append(Finding(f"{file}:1", f"{name} is a table: write [{name}] or [{name}.NAME]"))
        return {}
    return table
