"""What conditions may call beside standard CEL; each is pure, and an error in one denies."""

from __future__ import annotations

import os
from collections.abc import Callable
from email.utils import parseaddr
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


def extensions() -> list[Any]:
    """The standard extensions: strings and math."""
    return [ext_strings.ExtStrings(), ext_math.ExtMath()]


def declarations(listed: Callable[[str, str], bool]) -> list[Any]:
    """The functions, with the policy's own named lists behind `listed`."""
    text, truth, dyn = cel.Type.STRING, cel.Type.BOOL, cel.Type.DYN
    return [
        _declare("url_scheme", text, [text], lambda url: split_url(url)[0]),
        _declare("url_host", text, [text], lambda url: split_url(url)[1]),
        _declare("public_url", truth, [text], _public_url),
        _declare("host_in", truth, [text, _TEXTS], _host_in),
        _declare("path_within", truth, [text, _TEXTS], path_within),
        _declare("recipients_in", truth, [dyn, _TEXTS, _TEXTS], _recipients_in),
        _declare("listed", truth, [text, text], listed),
    ]


def _declare(name: str, returns: Any, takes: list[Any], body: Callable[..., Any]) -> Any:
    return cel.FunctionDecl(name, [cel.Overload(f"interlock_{name}", returns, takes, False, body)])


def _public_url(url: str) -> bool:
    try:
        return is_public_host(split_url(url)[1])
    except (ValueError, UnicodeError):
        return False


def _host_in(url: str, hosts: list[str]) -> bool:
    host = split_url(url)[1]
    return any(host_matches(host, allowed) for allowed in _plain(hosts))


def path_within(path: str, roots: list[str]) -> bool:
    """Whether a path, with links and '..' followed, is a root or below it."""
    if "\0" in path or path.startswith("~"):
        return False
    real = os.path.realpath(path)
    return any(real == root or real.startswith(root.rstrip(os.sep) + os.sep) for root in map(os.path.realpath, _plain(roots)))


def _recipients_in(given: Any, domains: list[str], people: list[str]) -> bool:
    addresses = [given] if isinstance(given, str) else _plain(given)
    allowed_domains = {domain.lower() for domain in _plain(domains)}
    allowed_people = {person.lower() for person in _plain(people)}
    return bool(addresses) and all(_recipient(item, allowed_domains, allowed_people) for item in addresses)


def _recipient(text: str, domains: set[str], people: set[str]) -> bool:
    if any(character in text for character in "\r\n,;"):
        return False
    address = parseaddr(text, strict=True)[1].lower() if _STRICT else parseaddr(text)[1].lower()
    name, at, domain = address.rpartition("@")
    return bool(name and at) and "@" not in name and (address in people or domain in domains)


def _plain(values: Any) -> list[str]:
    return [value if isinstance(value, str) else str(value.value()) for value in values]


_STRICT = "strict" in (parseaddr.__kwdefaults__ or {})
