"""What each kind of table in a policy says: rule, risk, rate, budget, cooldown, actor, lists."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

from interlock.canonical import Refusal, canonical
from interlock.policy.model import RISKS, Cooldown, ListSpec, Rule
from interlock.policy.review_table import read_approvers, read_quorum
from interlock.policy.sections import Section
from interlock.policy.spans import UNIT_S, span_s
from interlock.values import EVERYONE, Budget, Decision, Grant, Mode, Rate

_RULE = ("id", "tools", "decision", "when", "reason", "instead", "set", "actors", "modes", "approvers", "quorum")
_BUDGET = ("id", "per", "calls", "cost_usd", "seconds", "sum", "most", "actors", "tools", "window")
_MOST_SUM = 1e12
_ARGUMENT = re.compile(r"args(?:\.\w+)+")
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*([a-z]+)")


def read_rule(part: Section, groups: dict[str, tuple[str, ...]]) -> Rule | None:
    """A rule that decides, or one that sets arguments."""
    part.refuse_unknown(_RULE)
    identity, tools, reason = part.need_text("id"), part.names("tools"), part.text("reason")
    instead = part.text("instead")
    decision, sets = part.raw.get("decision"), part.raw.get("set", {})
    if decision == "clamp":
        if not isinstance(sets, dict) or not sets:
            part.refuse('a clamp rule needs set = { field = "CEL expression" }')
        else:
            _refuse_unwritable(part, sets)
    elif decision not in tuple(Decision):
        part.refuse(f"decision is allow, deny, review or clamp, not {decision!r}")
    elif "set" in part:
        part.refuse('only a rule with decision = "clamp" may set arguments')
    if instead and decision != "deny":
        part.refuse('only a rule with decision = "deny" says what to do instead')
    if decision != "review" and ("approvers" in part or "quorum" in part):
        part.refuse('only a rule with decision = "review" has approvers or a quorum')
    approvers, quorum = read_approvers(part, groups), read_quorum(part)
    when = _read_condition(part)
    if not part.is_sound:
        return None
    decides = None if decision == "clamp" else Decision(str(decision))
    return Rule(
        id=identity,
        tools=tools,
        place=part.place,
        decision=decides,
        when=when,
        reason=reason,
        set=sets,
        approvers=approvers,
        quorum=quorum,
        instead=instead,
        when_line=part.when_line,
    )


def _refuse_unwritable(part: Section, sets: dict[str, Any]) -> None:
    """TOML has values that no argument can be: what is not a number, dates, numbers without end."""
    for field, value in sets.items():
        try:
            canonical(value)
        except Refusal as error:
            part.refuse(f"set.{field}: {error}")


def _read_condition(part: Section) -> str | None:
    """`when`, with the lists of actors and modes written out as conditions too."""
    clauses = []
    when = part.need_text("when") if "when" in part else None
    if when is not None:
        # In brackets, or an || in it would make actors and modes optional.
        clauses.append(f"({when})" if "actors" in part or "modes" in part else when)
    for key, variable in (("actors", "actor"), ("modes", "mode")):
        if key in part:
            names = part.names(key)
            if key == "modes":
                _refuse_other_modes(part, names)
            clauses.append(f"{variable} in [{', '.join(repr(name) for name in names)}]")
    return " && ".join(clauses) or None


def _refuse_other_modes(part: Section, names: tuple[str, ...]) -> None:
    for name in names:
        if name not in tuple(Mode):
            part.refuse(f"modes are {', '.join(Mode)}, not {name!r}")


def read_risk(part: Section) -> Rule | None:
    """How risky a plan is for which a condition holds."""
    part.refuse_unknown(("id", "tools", "level", "when"))
    identity, tools = part.need_text("id"), part.names("tools")
    level, when = part.text("level"), part.need_text("when")
    if level not in RISKS:
        part.refuse(f"level is one of {', '.join(RISKS)}")
    if not part.is_sound:
        return None
    return Rule(id=identity, tools=tools, place=part.place, when=when, level=level, when_line=part.when_line)


def read_rate(part: Section) -> Rate | None:
    """A limit on calls per time."""
    part.refuse_unknown(("id", "tools", "per", "rate", "burst", "actors"))
    identity, tools, actors = part.need_text("id"), part.names("tools"), part.names("actors", EVERYONE)
    per, burst = part.names("per", ("actor", "tool")), part.raw.get("burst", 1)
    spelled = _RATE.fullmatch(part.text("rate"))
    if spelled is None or spelled[2] not in UNIT_S or float(spelled[1]) <= 0:
        part.refuse('rate is written "10/minute" (second, minute, hour, day)')
    if any(name not in ("actor", "tool") for name in per):
        part.refuse('per is ["actor"], ["tool"] or both')
    if not isinstance(burst, int) or isinstance(burst, bool) or burst < 1:
        part.refuse("burst is a whole number, at least 1")
    if spelled is None or not part.is_sound:
        return None
    per_s = float(spelled[1]) / UNIT_S[spelled[2]]
    return Rate(id=identity, tools=tools, per=per, per_s=per_s, burst=burst, actors=actors)


def read_budget(part: Section) -> Budget | None:
    """A limit on calls, money and time, or on the sum of an argument, in a turn, a run, for an actor or for all."""
    part.refuse_unknown(_BUDGET)
    identity, per, actors = part.need_text("id"), part.text("per"), part.names("actors", EVERYONE)
    if "|" in identity:
        part.refuse("the id of a budget holds no '|', which stands between the parts of its scope")
    if per not in ("turn", "run", "actor", "all"):
        part.refuse("per is turn, run, actor or all")
    calls, seconds = part.number("calls"), part.number("seconds")
    summed, micros = _read_sum(part)
    if part.is_sound and calls is None and micros is None and seconds is None:
        part.refuse("a budget limits calls, cost_usd or seconds (or several), or the sum of an argument")
    if calls is not None and calls != int(calls):
        part.refuse("calls is a whole number")
    window_s = span_s(part.text("window"))
    if "window" in part and (window_s is None or per not in ("actor", "all")):
        part.refuse('window is written "1d" (s, m, h, d), is at most ten years, and goes with per = "actor" or "all"')
    if not part.is_sound:
        return None
    return Budget(
        id=identity,
        per=per,
        calls=None if calls is None else int(calls),
        cost_micros=micros,
        ms=None if seconds is None else round(seconds * 1000),
        actors=actors,
        window_s=window_s,
        tools=part.names("tools", EVERYONE),
        sum=summed,
    )


def _read_sum(part: Section) -> tuple[str, int | None]:
    """The argument that a budget adds up, if it does, and how much of it (or of money) there may be."""
    named, most, cost_usd = part.text("sum"), part.number("most"), part.number("cost_usd")
    if ("sum" in part) != ("most" in part):
        part.refuse('the sum of an argument and its limit go together: sum = "args.amount", most = 1000')
    if named and not _ARGUMENT.fullmatch(named):
        part.refuse(f'sum names an argument, for example sum = "args.amount", not {named!r}')
    if named and cost_usd is not None:
        part.refuse("cost_usd is the money that calls cost; a sum needs a budget of its own")
    if most is not None and most > _MOST_SUM:
        part.refuse(f"most is {_MOST_SUM:,.0f} or less: count in larger units")
    limit = most if named else cost_usd
    return named.removeprefix("args."), None if limit is None else round(limit * 1_000_000)


def read_cooldown(part: Section) -> Cooldown | None:
    """How long a key rests after a change."""
    part.refuse_unknown(("id", "tools", "window", "actors"))
    identity, tools, actors = part.need_text("id"), part.names("tools"), part.names("actors", EVERYONE)
    window_s = span_s(part.text("window"))
    if window_s is None:
        part.refuse('window is written "7d" (s, m, h, d), and at most ten years')
    if window_s is None or not part.is_sound:
        return None
    return Cooldown(id=identity, tools=tools, window_s=window_s, actors=actors)


def read_grant(actor: str, part: Section) -> Grant | None:
    """What an actor may use."""
    part.refuse_unknown(("capabilities", "modes"))
    modes, capabilities = part.names("modes", tuple(Mode)), part.names("capabilities", ())
    _refuse_other_modes(part, modes)
    if not part.is_sound:
        return None
    return Grant(actor=actor, capabilities=frozenset(capabilities), modes=frozenset(Mode(mode) for mode in modes))


def read_list(name: str, part: Section) -> ListSpec | None:
    """A named list: written out, from a file, or from a query."""
    part.refuse_unknown(("values", "file", "database", "query", "ttl_s"))
    kinds = [key for key in ("values", "file", "query") if key in part]
    if len(kinds) != 1 or ("query" in part) != ("database" in part):
        part.refuse('a list has values = [...], or file = "...", or database and query')
    ttl_s = part.number("ttl_s")
    made = ListSpec(
        name=name,
        place=part.place,
        values=part.names("values") if "values" in part else None,
        file=part.text("file") or None,
        database=part.text("database") or None,
        query=part.text("query") or None,
        ttl_s=30.0 if ttl_s is None else float(ttl_s),
    )
    return made if part.is_sound else None


def is_limit(value: Any) -> bool:
    """Whether a value under [limits] is one that a condition can be given."""
    texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, str) or texts or (isinstance(value, int | float) and isfinite(value))
