"""Packs: rules for a hazard, ready-made and taken by reference (`[[use]] pack = "public-url"`).

A pack turns one [[use]] table into ordinary rules. They deny, ask a person or set arguments, and never allow: what no
rule of the policy itself allows stays denied, whoever wrote the pack. One of your own is a value like those here:

    def build(use: Use) -> list[PackRule]:
        most = use.number("max") or 8
        return [PackRule(id="long", when=f"{use.field} > {most}", reason=f"longer than {most} hours")]

    SHIFT = Pack(name="shift", keys=("max",), build=build)

It is found by an entry point of the group `interlock.packs` (`shift = "mymodule:SHIFT"`), or it is given: to commands
by the setting `packs = ["mymodule:SHIFT"]`, in Python by `packs=[SHIFT]` of `Runtime.open` and `parse_policy`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec

from interlock.policy.sections import Section
from interlock.values import Json


class Use(Section):
    """A [[use]] table as a pack reads it: `names`, `number`, `text` read keys, and `refuse` says what is wrong."""

    @property
    def argument(self) -> str:
        """The argument that the pack looks at."""
        return self.text("field")

    @property
    def field(self) -> str:
        """The same as conditions name it: `args.url`."""
        return f"args.{self.argument}"


class PackRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of a pack: where its condition holds the call is denied or, with `set`, its arguments are rewritten."""

    when: str
    reason: str
    id: str = ""
    """Follows the id of the [[use]] table; may be left out by a pack that makes one rule only."""
    set: dict[str, Json] = {}
    asks: bool = False
    """A person is asked, where the call would otherwise be denied."""
    names_tools: tuple[str, ...] = ()
    """Tools that it speaks of beside those that it is for: each has to be there."""
    names_arguments: tuple[str, ...] = ()
    """Arguments that it speaks of: each has to be one of some tool that it is for."""


class Pack(msgspec.Struct, frozen=True, kw_only=True):
    """Rules for one hazard, made from the keys of a [[use]] table."""

    name: str
    build: Callable[[Use], Iterable[PackRule]]
    keys: tuple[str, ...] = ()
    """What a [[use]] table may say beside id, pack, tools and field."""
    looks_at_field: bool = True
    """Whether the table names one argument. Where that is optional and left out, the rules are not asked."""
    needs_egress: bool = False
    """Whether the rules protect nothing unless the tool fetches through `interlock.tools.egress`."""


def cel_text(value: str) -> str:
    """A text as CEL writes it, whatever it holds."""
    # Backslashes first: those that the second step adds must not be doubled.
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def cel_list(values: Iterable[str]) -> str:
    """A list of texts as CEL writes it."""
    return f"[{', '.join(cel_text(value) for value in values)}]"


def _public_url(use: Use) -> Iterable[PackRule]:
    schemes = use.names("schemes", ("https",))
    yield PackRule(
        id="scheme",
        when=f"!(url_scheme({use.field}) in {cel_list(schemes)})",
        reason=f"only {', '.join(schemes)} addresses are allowed",
    )
    yield PackRule(
        id="private",
        when=f"!public_url({use.field})",
        reason="the address leads to a private, link-local or otherwise inner network",
    )
    if "hosts" in use:
        hosts = use.names("hosts")
        yield PackRule(
            id="host",
            when=f"!host_in({use.field}, {cel_list(hosts)})",
            reason=f"only these hosts are allowed: {', '.join(hosts)}",
        )


def _roots(use: Use) -> Iterable[PackRule]:
    roots = use.names("roots")
    outside = f"!path_within({use.field}, {cel_list(roots)})"
    yield PackRule(id="root", when=outside, reason=f"the path is outside {', '.join(roots)}")


def _bounds(use: Use) -> Iterable[PackRule]:
    least, most = use.number("min"), use.number("max")
    if any(bound is not None and bound != int(bound) for bound in (least, most)):
        use.refuse("min and max are whole numbers")
    if least is None and most is None:
        use.refuse("bounds needs min or max (length of text or of a list)")
    if least is not None:
        yield PackRule(id="min", when=f"size({use.field}) < {int(least)}", reason=f"shorter than {int(least)}")
    if most is not None:
        yield PackRule(id="max", when=f"size({use.field}) > {int(most)}", reason=f"longer than {int(most)}")


def _top_k(use: Use) -> Iterable[PackRule]:
    most = use.raw.get("max")
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        use.refuse("top-k needs max = a whole number, at least 1")
    yield PackRule(
        when=f"{use.field} > {most} || {use.field} < 1",
        set={use.argument: most},
        reason=f"{use.argument} is between 1 and {most}",
    )


def _namespaces(use: Use) -> Iterable[PackRule]:
    if ("list" in use) == ("allow" in use):
        use.refuse('namespaces needs allow = [...] or list = "name", not both')
    elif "list" in use:
        name = use.need_text("list")
        yield PackRule(
            id="namespace", when=f"!listed({cel_text(name)}, {use.field})", reason=f"not in the list {name!r}"
        )
    else:
        allowed = use.names("allow")
        outside = f"!({use.field} in {cel_list(allowed)})"
        yield PackRule(id="namespace", when=outside, reason=f"allowed are {', '.join(allowed)}")


def _recipients(use: Use) -> Iterable[PackRule]:
    domains, people = use.names("domains", ()), use.names("addresses", ())
    if not domains and not people:
        use.refuse("recipients needs domains or addresses (or both)")
    outside = f"!recipients_in({use.field}, {cel_list(domains)}, {cel_list(people)})"
    yield PackRule(id="recipient", when=outside, reason=f"recipients must be in {', '.join((*domains, *people))}")


def _asks(use: Use) -> bool:
    """What becomes of a call otherwise: a person is asked, or it is denied."""
    otherwise = use.text("otherwise") or "review"
    if otherwise not in ("review", "deny"):
        use.refuse('otherwise is "review" (a person is asked) or "deny"')
    return otherwise == "review"


def _provenance(use: Use) -> Iterable[PackRule]:
    sinks = use.names("sinks", ())
    unknown = f"origin.unknown.exists(field, field in {cel_list(sinks)})" if sinks else "size(origin.unknown) > 0"
    yield PackRule(when=unknown, reason="{origins}", asks=_asks(use), names_arguments=sinks)


def _refuse_unasked(use: Use) -> Iterable[PackRule]:
    yield PackRule(when="!turn.asked", reason="{asked}", asks=_asks(use))


def _exfiltration(use: Use) -> Iterable[PackRule]:
    private = use.names("private")
    patterns = [cel_text("^" + ".*".join(re.escape(part) for part in name.split("*")) + "$") for name in private]
    carried = " || ".join(f"source.matches({pattern})" for pattern in patterns)
    yield PackRule(
        when=f"origin.carries.exists(source, {carried}) && !origin.to_known",
        reason="{carried}",
        asks=_asks(use),
        names_tools=private,
    )


PACKS: dict[str, Pack] = {
    pack.name: pack
    for pack in (
        Pack(name="public-url", keys=("schemes", "hosts"), build=_public_url, needs_egress=True),
        Pack(name="roots", keys=("roots",), build=_roots),
        Pack(name="bounds", keys=("min", "max"), build=_bounds),
        Pack(name="top-k", keys=("max",), build=_top_k),
        Pack(name="namespaces", keys=("allow", "list"), build=_namespaces),
        Pack(name="recipients", keys=("domains", "addresses"), build=_recipients),
        Pack(name="provenance", keys=("sinks", "otherwise"), build=_provenance, looks_at_field=False),
        Pack(name="exfiltration", keys=("private", "otherwise"), build=_exfiltration, looks_at_field=False),
        Pack(name="unasked", keys=("otherwise",), build=_refuse_unasked, looks_at_field=False),
    )
}
"""The built-in packs by name."""
