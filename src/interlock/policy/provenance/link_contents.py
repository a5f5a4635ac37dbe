"""What an address tells whoever it leads to: its path, its query and names below its host, however it is written."""

from __future__ import annotations

import base64
import binascii
import re
from urllib.parse import unquote_plus

_BETWEEN_PARTS = re.compile(r"[/?&=#:;,|@\s]+|(?<=[^\W\d])\.|\.(?=[^\W\d])")
_BETWEEN_WORDS = re.compile(r"[^\w]+|_+")
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{12,2000}={0,2}")
_MOST_ENCODED = 20
_LONGEST = 20_000


def link_contents(text: str) -> tuple[str, ...]:
    """The texts in an address, part by part and word by word, and what is written in them in base64 or hex; nothing of
    what is no address."""
    _scheme, there, rest = text[:_LONGEST].partition("://")
    if not there:
        return ()
    said = unquote_plus(unquote_plus(rest))
    decoded = [found for one in _ENCODED.findall(said)[:_MOST_ENCODED] if (found := _decode(one))]
    return tuple(
        spelled
        for one in (said, *decoded)
        for spelled in dict.fromkeys((_BETWEEN_PARTS.sub(" ", one), _BETWEEN_WORDS.sub(" ", one)))
    )


def _decode(text: str) -> str:
    """What it says in hex or base64; empty where that is no text."""
    plain = text.rstrip("=")
    for read in (bytes.fromhex, _read_base64):
        try:
            found = read(plain).decode("utf-8")
        except (ValueError, binascii.Error):
            continue
        if found.isprintable():
            return found
    return ""


def _read_base64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.replace("+", "-").replace("/", "_") + "=" * (-len(text) % 4))
