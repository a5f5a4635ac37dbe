"""What conditions may call beside standard CEL; each is pure, and an error in one denies."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_math, ext_strings

from interlock.addresses import host_matches, is_public_host, split_url

_TEXTS = cel.Type.List(cel.Type.STRING)

FUNCTIONS = {
    "url_scheme": "url_scheme(url) -> text",
    "url_host": "url_host(url) -> text, plain lower-case form",
    "public_url": "public_url(url) -> whether its host can be on the public internet",
    "host_in": "host_in(url, ['example.org', '*.example.org'])",
    "path_within": "path_within(path, ['/root']) -> whether it stays below a root, links followed",
    "recipients_in": "recipients_in(address or list, domains, addresses)",
    "listed": "listed('name', value) -> whether a named list holds the value",
}


LOOK_OUTSIDE = ("path_within", "listed")
"""Functions whose answer can change while the values they are given stay the same."""


def extensions() -> list[Any]:
    """The standard extensions: strings and math."""
    return [ext_strings.ExtStrings(), ext_math.ExtMath()]


def declare_functions(listed: Callable[[str, str], bool]) -> list[Any]:
    """The functions, with the policy's own named lists behind `listed`."""
    text, truth = cel.Type.STRING, cel.Type.BOOL
    return [
        _declare("url_scheme", text, [text], lambda url: split_url(url)[0]),
        _declare("url_host", text, [text], lambda url: split_url(url)[1]),
        _declare("public_url", truth, [text], _public_url),
        _declare("host_in", truth, [text, _TEXTS], _host_in),
        _declare("path_within", truth, [text, _TEXTS], path_within),
        _declare("recipients_in", truth, [_TEXTS, _TEXTS, _TEXTS], _recipients_in, [text, _TEXTS, _TEXTS]),
        _declare("listed", truth, [text, text], listed),
    ]


def _declare(name: str, returns: Any, takes: list[Any], body: Callable[..., Any], *others: list[Any]) -> Any:
    overloads = [
        cel.Overload(f"interlock_{name}_{index}", returns, taken, False, body)
        for index, taken in enumerate((takes, *others))
    ]
    return cel.FunctionDecl(name, overloads)


def _public_url(url: str) -> bool:
    try:
        return is_public_host(split_url(url)[1])
    except (ValueError, UnicodeError):  # what has no honest reading is not public: denied, and not as an error
        return False


def _host_in(url: str, hosts: list[str]) -> bool:
    host = split_url(url)[1]
    return any(host_matches(host, allowed) for allowed in hosts)


def path_within(path: str, roots: list[str]) -> bool:
    """Whether a path, with links and '..' followed, is a root or below it."""
    if path.startswith("~"):  # a shell or a tool would expand it, realpath does not
        return False
    real = os.path.realpath(path)
    # With the separator: /data-old is not below /data. Roots are resolved too, as they may be links themselves.
    return any(real == root or real.startswith(root.rstrip(os.sep) + os.sep) for root in map(os.path.realpath, roots))


def _recipients_in(given: str | list[str], domains: list[str], people: list[str]) -> bool:
    addresses = [given] if isinstance(given, str) else given
    allowed_domains = {domain.lower() for domain in domains}
    allowed_people = {person.lower() for person in people}
    # `all` of nothing is true: without this a call that names no recipient would pass.
    return bool(addresses) and all(_is_allowed(item, allowed_domains, allowed_people) for item in addresses)


# A mailer reads more spellings than these (routes, quoted local parts, comments); each is a way to smuggle another
# recipient past the rule, so only the plain forms are known.
_LOCAL = r"[A-Za-z0-9][A-Za-z0-9._+'=-]*"
_DOMAIN = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"(?:[^<>@,;:\\\r\n]*<({_LOCAL}@{_DOMAIN})>|({_LOCAL}@{_DOMAIN}))")


def _is_allowed(text: str, domains: set[str], people: set[str]) -> bool:
    """Only `address` or `Name <address>`, in full: whatever else a mailer might make of the text is refused."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None:
        return False
    address = (found[1] or found[2]).lower()
    return address in people or address.rpartition("@")[2] in domains
