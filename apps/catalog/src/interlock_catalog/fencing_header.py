"""The header of fencing tokens, for both ends of the wire: KEY=NUMBER,KEY=NUMBER, the keys percent-encoded."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, unquote

_UNTOUCHED = ":/"
"""Beside letters and digits: what every key has in it, and what has no meaning in the header."""
_MAX_DIGITS = 18
"""Fencing tokens are 64-bit numbers in the database; eighteen digits always fit."""
_MAX_KEY_CHARS = 200
MAX_TOKENS = 200
"""Tokens of one request: each is a row of the database, and a lock."""


def write_fencing_tokens(tokens: Mapping[str, int]) -> str:
    """The header's value. A key may hold a comma, an equals sign or letters that no header takes: it is encoded."""
    return ",".join(f"{quote(key, safe=_UNTOUCHED)}={token}" for key, token in sorted(tokens.items()))


def read_fencing_tokens(header: str) -> dict[str, int]:
    """The tokens by their keys; ValueError for anything that `write_fencing_tokens` cannot have written."""
    tokens: dict[str, int] = {}
    parts = header.split(",", MAX_TOKENS)
    if len(parts) > MAX_TOKENS:
        raise ValueError(f"a request carries at most {MAX_TOKENS} tokens")
    for part in parts:
        if not part.strip():
            continue
        name, _, number = part.strip().rpartition("=")
        key = unquote(name, errors="strict")
        if not key.isprintable() or not 1 <= len(key) <= _MAX_KEY_CHARS or key in tokens:
            raise ValueError("a key is printable text of at most 200 characters, and comes once")
        if not (number.isascii() and number.isdecimal()) or len(number) > _MAX_DIGITS:
            raise ValueError("a token is a number of at most 18 digits")
        tokens[key] = int(number)
    return tokens
