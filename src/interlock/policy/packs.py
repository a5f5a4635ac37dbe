"""Ready-made rules for the usual hazards, taken by reference: `[[use]] pack = "public-url"`.

A pack is ordinary rules over the functions in `functions`; it denies (or clamps) and never allows. Each takes the
tools it is for and the argument it looks at.
"""

from __future__ import annotations

from collections.abc import Callable

from interlock.policy.model import Rule
from interlock.policy.sections import Finding, Section
from interlock.values import Decision, Json

Rows = list[tuple[str, str, str]]
"""Suffix of the rule's id, condition under which it denies, reason."""


def expand(part: Section, findings: list[Finding]) -> list[Rule]:
    """The rules of one [[use]] table."""
    name = part.text("pack")
    pack = PACKS.get(name)
    if pack is None:
        findings.append(part.at(f"there is no pack {name!r}; packs are {', '.join(sorted(PACKS))}"))
        return []
    options, build = pack
    part.refuse_unknown(("id", "pack", "tools", "field", *options), findings)
    count = len(findings)
    part.want_text(("id",), findings)
    tools, field = part.names("tools", findings), part.need_text("field", findings)
    identity = part.text("id") or f"{name}:{field}"
    rows = build(f"args.{field}", part, findings)
    if len(findings) > count:
        return []
    if name == "top-k":
        most = part.raw["max"]
        return [
            Rule(
                id=identity,
                tools=tools,
                place=part.place,
                when=f"args.{field} > {most} || args.{field} < 1",
                set={field: most},
                reason=f"{field} is between 1 and {most}",
                field=field,
            )
        ]
    return [
        Rule(
            id=f"{identity}:{suffix}",
            tools=tools,
            place=part.place,
            decision=Decision.DENY,
            when=condition,
            reason=reason,
            needs_egress=name == "public-url",
            field=field,
        )
        for suffix, condition, reason in rows
    ]


def _public_url(field: str, part: Section, findings: list[Finding]) -> Rows:
    schemes = part.names("schemes", findings) if "schemes" in part.raw else ("https",)
    rows = [
        (
            "scheme",
            f"!(url_scheme({field}) in {_list(schemes)})",
            f"only {', '.join(schemes)} addresses are allowed",
        ),
        (
            "private",
            f"!public_url({field})",
            "the address leads to a private, link-local or otherwise inner network",
        ),
    ]
    if "hosts" in part.raw:
        hosts = part.names("hosts", findings)
        rows.append(
            (
                "host",
                f"!host_in({field}, {_list(hosts)})",
                f"only these hosts are allowed: {', '.join(hosts)}",
            )
        )
    return rows


def _roots(field: str, part: Section, findings: list[Finding]) -> Rows:
    roots = part.names("roots", findings)
    reason = f"the path is outside {', '.join(roots)}"
    return [("root", f"!path_within({field}, {_list(roots)})", reason)]


def _bounds(field: str, part: Section, findings: list[Finding]) -> Rows:
    least, most = part.number("min", findings), part.number("max", findings)
    if any(bound is not None and bound != int(bound) for bound in (least, most)):
        findings.append(part.at("min and max are whole numbers"))
    if least is None and most is None:
        findings.append(part.at("bounds needs min or max (length of text or of a list)"))
    rows: Rows = []
    if least is not None:
        rows.append(("min", f"size({field}) < {int(least)}", f"shorter than {int(least)}"))
    if most is not None:
        rows.append(("max", f"size({field}) > {int(most)}", f"longer than {int(most)}"))
    return rows


def _top_k(field: str, part: Section, findings: list[Finding]) -> Rows:
    most = part.raw.get("max")
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        findings.append(part.at("top-k needs max = a whole number, at least 1"))
    return []


def _namespaces(field: str, part: Section, findings: list[Finding]) -> Rows:
    if ("list" in part.raw) == ("allow" in part.raw):
        findings.append(part.at('namespaces needs allow = [...] or list = "name", not both'))
        return []
    if "list" in part.raw:
        name = part.need_text("list", findings)
        return [("namespace", f"!listed({name!r}, {field})", f"not in the list {name!r}")]
    allowed = part.names("allow", findings)
    return [("namespace", f"!({field} in {_list(allowed)})", f"allowed are {', '.join(allowed)}")]


def _recipients(field: str, part: Section, findings: list[Finding]) -> Rows:
    domains = part.names("domains", findings) if "domains" in part.raw else ()
    people = part.names("addresses", findings) if "addresses" in part.raw else ()
    if not domains and not people:
        findings.append(part.at("recipients needs domains or addresses (or both)"))
    reason = f"recipients must be in {', '.join((*domains, *people))}"
    return [("recipient", f"!recipients_in({field}, {_list(domains)}, {_list(people)})", reason)]


def _list(names: tuple[str, ...]) -> str:
    return "[" + ", ".join(_text(name) for name in names) + "]"


def _text(value: str) -> Json:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


PACKS: dict[str, tuple[tuple[str, ...], Callable[[str, Section, list[Finding]], Rows]]] = {
    "public-url": (("schemes", "hosts"), _public_url),
    "roots": (("roots",), _roots),
    "bounds": (("min", "max"), _bounds),
    "top-k": (("max",), _top_k),
    "namespaces": (("allow", "list"), _namespaces),
    "recipients": (("domains", "addresses"), _recipients),
}
