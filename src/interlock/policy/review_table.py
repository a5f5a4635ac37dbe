"""What the table [review] of a policy says: who decides what waits for a person."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Any

from interlock.errors import ConfigError
from interlock.policy.model import ReviewSpec
from interlock.policy.sections import Section
from interlock.policy.spans import span_s
from interlock.principals import OURS, check_name
from interlock.state import Delegation

_KEYS = (
    "expires",
    "escalate",
    "remind",
    "self_approval",
    "approvers",
    "quorum",
    "keys",
    "vouched",
    "groups",
    "delegation",
)
_GROUP = "group:"
_MOST_APPROVALS = 1_000


def read_review(part: Section) -> ReviewSpec:
    """The terms of review; what is wrong with them is a finding."""
    part.refuse_unknown(_KEYS)
    spec = ReviewSpec()
    own = part.raw.get("self_approval", False)
    if not isinstance(own, bool):
        part.refuse("self_approval is true or false")
    vouched = part.names("vouched", ())
    for kind in vouched:
        if kind in OURS or not kind.isidentifier() or not kind.islower():
            part.refuse(f'vouched names kinds of names that an application gives, such as "user", not {kind!r}')
    return ReviewSpec(
        expires_s=_span(part, "expires", spec.expires_s),
        escalate_s=_span(part, "escalate", spec.escalate_s),
        remind_s=_span(part, "remind", spec.remind_s),
        self_approval=own is True,
        approvers=read_approvers(part, groups_of(part)),
        quorum=read_quorum(part) or 1,
        keys=part.names("keys", ()),
        vouched=vouched,
        delegations=_delegations(part),
    )


def groups_of(part: Section) -> dict[str, tuple[str, ...]]:
    """The groups that [review.groups] names."""
    table = part.raw.get("groups", {})
    if not isinstance(table, dict):
        part.refuse('groups is a table: write [review.groups] and name = ["os:ann", "os:bob"]')
        return {}
    found = Section(table, part.place, "[review.groups]", part.findings)
    return {name: _check_names(found, found.names(name)) for name in table}


def read_approvers(part: Section, groups: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Names, with those of groups written out."""
    names: list[str] = []
    for name in part.names("approvers", ()):
        group = name.removeprefix(_GROUP)
        if group == name:
            names.append(name)
        elif group in groups:
            names += groups[group]
        else:
            part.refuse(f"there is no group {group!r}; [review.groups] has {', '.join(sorted(groups)) or 'none'}")
    return _check_names(part, tuple(dict.fromkeys(names)))


def read_quorum(part: Section) -> int:
    """How many must approve; 0 where nothing is said."""
    value = part.raw.get("quorum", 0)
    if "quorum" in part and (
        not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST_APPROVALS
    ):
        part.refuse(f"quorum is a whole number, at least 1 and at most {_MOST_APPROVALS:,}")
        return 0
    approvers = part.raw.get("approvers", [])
    if isinstance(approvers, list) and 0 < len(approvers) < value and not any(_GROUP in str(n) for n in approvers):
        part.refuse(f"{value} approvals are wanted, of {len(approvers)} who may give one")
    return int(value)


def _check_names(part: Section, names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        try:
            check_name(name)
        except ConfigError as error:
            part.refuse(str(error))
    return names


def _span(part: Section, key: str, default: int) -> int:
    if key not in part:
        return default
    found = span_s(part.text(key))
    if found is None:
        part.refuse(f'{key} is written "24h" (s, m, h, d), and is at most ten years')
    return found or default


def _delegations(part: Section) -> tuple[Delegation, ...]:
    tables = part.raw.get("delegation", [])
    if not isinstance(tables, list):
        part.refuse("delegation is a list of tables: write [[review.delegation]]")
        return ()
    found = []
    for table in tables:
        one = Section(table, part.place, "[[review.delegation]]", part.findings)
        one.refuse_unknown(("of", "to", "until"))
        of, to, until_us = one.need_text("of"), one.need_text("to"), _moment_us(one.raw.get("until"))
        if until_us is None:
            one.refuse("until says when it ends: until = 2026-12-24, or a date with a time")
        _check_names(one, tuple(name for name in (of, to) if name))
        if one.is_sound and until_us is not None:
            found.append(Delegation(of, to, until_us))
    return tuple(found)


def _moment_us(value: Any) -> int | None:
    """A date (to its end) or a moment, as TOML or a text has it, in microseconds; without a zone it is UTC."""
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value) if len(value) == 10 else datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    elif isinstance(value, date):
        moment = datetime.combine(value, time.max, UTC)
    else:
        return None
    return round(moment.timestamp() * 1_000_000)
