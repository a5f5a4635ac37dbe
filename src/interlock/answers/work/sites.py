"""When two sources are one: by the domain that somebody registered, and by what they say, however a URL is spelled."""

from __future__ import annotations

import fnmatch
import hashlib
import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from interlock.addresses import as_address, plain_host
from interlock.errors import ConfigError, install_hint
from interlock.values import Json

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.I)
_BARE_HOST = re.compile(
    r"(?=[^/]{4,253}(?:/|$))(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,9}[^\W\d_]{2,63}(?::\d{1,5})?(?:/|$)"
)
"""A host that is named without its scheme, `www.example.org/page`; whether it is one is for the suffixes to say."""
_TEXT_FIELDS = frozenset({"text", "content", "body", "markdown", "page_content", "plain_text"})
_PROSE_WORDS = 8
"""A text of so many words is what a page says; shorter ones are its title, its kind, when it was fetched."""
_WORDS = re.compile(r"\w+")
_USUAL_PORTS = {"http": 80, "https": 443}


def site_of(name: str) -> str:
    """Whose source it is: the registered domain of a URL, an address or a local host as a whole, else the name itself.

    On this machine (a loopback address, `localhost` and what is below it) the port counts too: there each is another
    server.
    """
    host, port = _host_of(name)
    if not host:
        return _plain(name)
    if (address := as_address(host)) is not None:
        mapped = getattr(address, "ipv4_mapped", None) or address
        return f"{mapped}:{port}" if mapped.is_loopback and port is not None else str(mapped)
    if host == "localhost" or host.endswith(".localhost"):
        return host if port is None else f"{host}:{port}"
    return str(_suffixes().privatesuffix(host) or host)


def is_one_of(name: str, patterns: Sequence[str]) -> bool:
    """Whether a source fits a pattern: `nih.gov` is that domain and all below it, `*.gov` all below gov.

    A source that has no host is held against the patterns as a name.
    """
    host, _port = _host_of(name)
    if not host:
        return any(fnmatch.fnmatchcase(_plain(name), pattern.casefold()) for pattern in patterns)
    for pattern in patterns:
        wanted = pattern.strip().casefold()
        below = wanted.removeprefix("*")
        if host.endswith(below if below.startswith(".") else f".{below}") or host == wanted:
            return True
    return False


def is_address(text: str) -> bool:
    """Whether a text is a URL."""
    return _SCHEME.match(text.strip()) is not None


def _host_of(name: str) -> tuple[str, int | None]:
    """Host and unusual port of a source's name; no host where it is no URL."""
    text = name.strip()
    has_scheme = _SCHEME.match(text) is not None
    if not has_scheme and _BARE_HOST.match(text) is None:
        return "", None
    try:
        parts = urlsplit(text if has_scheme else f"//{text}")
        host, port = plain_host(parts.hostname or ""), parts.port
    except ValueError:
        return "", None
    if not has_scheme and _suffixes().publicsuffix(host, accept_unknown=False) is None:
        return "", None  # the name of a file, say
    return host, None if port == _USUAL_PORTS.get(parts.scheme.lower(), 443) else port


@cache
def _suffixes() -> Any:
    try:
        from publicsuffixlist import PublicSuffixList
    except ImportError:
        raise ConfigError(f"to tell sources apart by their domains: {install_hint('research')}") from None
    return PublicSuffixList()


def require_suffixes() -> None:
    """Refuse to begin what could not tell sources apart."""
    _suffixes()


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def text_of(value: Json) -> str:
    """What a result says: fields that are called so; else its texts of some length; else all of it but addresses."""
    leaves = list(_leaves(value))
    texts = [leaf for name, leaf in leaves if name in _TEXT_FIELDS]
    prose = [leaf for _name, leaf in leaves if len(_WORDS.findall(leaf)) >= _PROSE_WORDS]
    return "\n".join(texts or prose or (leaf for _name, leaf in leaves if _host_of(leaf)[0] == ""))


def digest_of(text: str) -> str:
    """Of the words of a text: spelling in capitals, white space and signs make no other text."""
    words = _WORDS.findall(unicodedata.normalize("NFKC", text).casefold())
    return hashlib.sha256(" ".join(words).encode("utf-8", "replace")).hexdigest() if words else ""


def _leaves(value: Json) -> Iterator[tuple[str, str]]:
    """What stands in a value, each with the name of its field."""
    waiting: deque[tuple[str, Json]] = deque([("", value)])
    while waiting:
        name, item = waiting.popleft()
        if isinstance(item, dict):
            waiting.extendleft(reversed([(str(key).lower(), inner) for key, inner in item.items()]))
        elif isinstance(item, list | tuple):
            waiting.extendleft(reversed([(name, inner) for inner in item]))
        elif item is not None:
            yield name, item if isinstance(item, str) else str(item)


def count_distinct(sources: Iterable[tuple[str, str]]) -> int:
    """How many of them can be chosen so that no two share a site or what they say.

    Each is a site with the digest of its text: an edge between the two, and the number is that of a largest matching.
    It never falls as more is read, and does not depend on the order in which that was.
    """
    texts: dict[str, list[str]] = {}
    for site, text in dict.fromkeys(sources):
        texts.setdefault(site, []).append(text)
    taken: dict[str, str] = {}

    def place(site: str, tried: set[str]) -> bool:
        for text in texts[site]:
            if text in tried:
                continue
            tried.add(text)
            if text not in taken or place(taken[text], tried):
                taken[text] = site
                return True
        return False

    return sum(place(site, set()) for site in texts)
