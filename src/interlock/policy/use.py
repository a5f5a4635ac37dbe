"""`[[use]]`: which packs there are (built-in, given, installed), and the rules that one makes of its table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from interlock.canonical import nearest
from interlock.errors import ConfigError
from interlock.policy.model import Rule
from interlock.policy.packs import PACKS, Pack, PackRule, Use
from interlock.values import Decision

GROUP = "interlock.packs"
"""The entry points under which distributions offer packs: the name of a pack, and where it is found."""


def collect_packs(given: Iterable[Pack]) -> dict[str, Pack]:
    """The built-in packs and those given; a name stands for one pack, so nobody can replace a built-in one."""
    packs = dict(PACKS)
    for pack in (given,) if isinstance(given, Pack) else given:
        if not isinstance(pack, Pack):
            raise ConfigError(f"packs= takes interlock.policy.Pack values, not {type(pack).__name__}")
        if pack.name in packs:
            raise ConfigError(f"there are two packs called {pack.name!r}; give yours another name")
        packs[pack.name] = pack
    return packs


def expand_pack(use: Use, packs: Mapping[str, Pack]) -> list[Rule]:
    """The rules of one [[use]] table; what is wrong with it, or with the pack, is a finding."""
    pack = _find_pack(use, packs)
    if pack is None:
        return []
    use.refuse_unknown(("id", "pack", "tools", *(("field",) if pack.looks_at_field else ()), *pack.keys))
    tools, field = use.names("tools"), use.need_text("field") if pack.looks_at_field else None
    identity = use.text("id") or (f"{pack.name}:{field}" if field else pack.name)
    made = _build_rules(pack, use)
    if not use.is_sound:
        return []
    return [
        Rule(
            id=f"{identity}:{rule.id}" if rule.id else identity,
            tools=tools,
            place=use.place,
            decision=_decision(rule),
            when=rule.when,
            reason=rule.reason,
            set=rule.set,
            needs_egress=pack.needs_egress,
            field=field,
            names_tools=rule.names_tools,
            names_arguments=rule.names_arguments,
        )
        for rule in made
    ]


def _decision(rule: PackRule) -> Decision | None:
    """Never allow: a pack cannot widen the policy."""
    if rule.set:
        return None
    return Decision.REVIEW if rule.asks else Decision.DENY


def _find_pack(use: Use, packs: Mapping[str, Pack]) -> Pack | None:
    name = use.text("pack")
    if name in packs:
        return packs[name]
    # Looking through what is installed takes milliseconds: only a policy that names such a pack pays for it.
    installed = _list_installed()
    found = installed.get(name, [])
    if len(found) == 1:
        return _load_installed(use, name, found[0])
    if found:
        use.refuse(f"two installed distributions have a pack {name!r}; remove one")
        return None
    known = sorted({*packs, *installed})
    close = nearest(name, known, 1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    use.refuse(f"there is no pack {name!r}; {hint}packs are {', '.join(known)}")
    return None


def _list_installed() -> dict[str, list[Any]]:
    from importlib.metadata import entry_points

    found: dict[str, list[Any]] = {}
    for entry in entry_points(group=GROUP):
        found.setdefault(entry.name, []).append(entry)
    return found


def _load_installed(use: Use, name: str, entry: Any) -> Pack | None:
    try:
        pack = entry.load()
    except Exception as error:  # noqa: BLE001 - a module of somebody else may fail in any way
        use.refuse(f"the installed pack {name!r} ({entry.value}) cannot be loaded: {type(error).__name__}: {error}")
        return None
    if not isinstance(pack, Pack) or pack.name != name:
        use.refuse(f"the installed pack {name!r} ({entry.value}) is no interlock.policy.Pack of that name")
        return None
    return pack


def _build_rules(pack: Pack, use: Use) -> list[PackRule]:
    """What the pack makes of its table. It may be somebody else's code: what it does wrong is a finding, too."""
    try:
        made = list(pack.build(use))
    except Exception as error:  # noqa: BLE001 - a pack of somebody else may fail in any way
        use.refuse(f"the pack {pack.name!r} failed: {type(error).__name__}: {error}")
        return []
    for rule in made:
        if not isinstance(rule, PackRule):
            use.refuse(f"the pack {pack.name!r} makes {type(rule).__name__} where a PackRule is expected")
        elif not (isinstance(rule.when, str) and rule.when.strip() and isinstance(rule.reason, str)):
            use.refuse(f"the pack {pack.name!r} makes a rule without a condition or a reason")
    return made
