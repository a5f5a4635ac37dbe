"""Tokens: who may do what. The file holds digests, never the tokens themselves."""

from __future__ import annotations

import hashlib
import re
import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from interlock.errors import ConfigError
from interlock_catalog.text_files import read_utf8

ROLES = ("reader", "editor", "admin")
"""Each may do what those before it may."""


class TokenHolder(msgspec.Struct, frozen=True):
    """Whose token it is, and what it allows."""

    name: str
    role: str

    def has_role(self, role: str) -> bool:
        """Whether the holder may do what a role may."""
        return ROLES.index(self.role) >= ROLES.index(role)


Tokens = Mapping[str, TokenHolder]
"""Holders by the digest of their token."""


def digest_token(token: str) -> str:
    """What is kept of a token; it is random and long, so a plain digest cannot be turned back."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_tokens(file: Path, options: str = "") -> dict[str, TokenHolder]:
    """The tokens of a file; `options` are those with which `interlock catalog token` would write them there."""
    try:
        raw = tomllib.loads(read_utf8(file))
    except FileNotFoundError:
        way_out = f"make one with `interlock catalog token NAME{options}`"
        raise ConfigError(f"{file}: there are no tokens; {way_out}") from None
    except (tomllib.TOMLDecodeError, OSError, RecursionError) as error:
        raise ConfigError(f"{file}: not valid TOML: {error}") from None
    found = {}
    for name, table in raw.get("token", {}).items():
        role, digest = table.get("role"), table.get("sha256")
        if role not in ROLES or not isinstance(digest, str) or len(digest) != 64:
            raise ConfigError(f"{file}: token {name!r} needs role ({', '.join(ROLES)}) and sha256")
        found[digest] = TokenHolder(str(name), str(role))
    return found


def create_token(file: Path, name: str, role: str) -> str:
    """A new token, shown once; its digest is added to the file."""
    # A bare key of TOML: anything else would make the file unreadable.
    if role not in ROLES or not re.fullmatch(r"[A-Za-z0-9-]{1,64}", name):
        raise ConfigError(f"a token has a plain name (letters, digits, '-') and a role: {', '.join(ROLES)}")
    if file.exists() and any(holder.name == name for holder in read_tokens(file).values()):
        raise ConfigError(f"{file}: there is a token {name!r} already; remove it there first")
    token = f"cat_{secrets.token_urlsafe(24)}"
    with file.open("a", encoding="utf-8") as out:
        out.write(f'[token.{name}]\nrole = "{role}"\nsha256 = "{digest_token(token)}"\n\n')
    file.chmod(0o600)
    return token
