"""Who decides: the operating-system user, or a service that shows a signed token (a JWT)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec

from interlock.errors import NotAllowed

ISSUER = "interlock"
_ALGORITHM = "EdDSA"
_MAX_CHARACTERS = 4096  # ours have a few hundred; the bound is on what is decoded for a stranger
_CLOCK_SKEW_US = 60_000_000
_NOT_A_TOKEN = "that is not a token of Interlock; make one with: interlock review token NAME"


class TokenClaims(msgspec.Struct, frozen=True, kw_only=True):
    """What a token says, by the names of RFC 7519: who, for which ledger, made when, good until when (in seconds)."""

    sub: Annotated[str, msgspec.Meta(min_length=1)]
    aud: str
    iat: int
    exp: int
    nbf: int = 0
    iss: str = ISSUER


def issue(key_file: Path, claims: TokenClaims) -> str:
    """A token that whoever trusts the key will take for this identity."""
    import jwt  # here and below: only when a token is made or checked

    from interlock.audit import load_key

    key = load_key(key_file)  # refuses a file that others can read
    return jwt.encode(msgspec.to_builtins(claims), key.private, algorithm=_ALGORITHM)


def authenticate(token: str, *, trusted: tuple[str, ...], ledger: str, now_us: int) -> str:
    """The principal behind a token; `NotAllowed` says what is wrong with it."""
    token = token.strip()
    if len(token) > _MAX_CHARACTERS or not token.isascii():
        raise NotAllowed(_NOT_A_TOKEN)
    for public in trusted:
        payload = _verify(token, public, ledger)
        if payload is not None:
            return f"token:{_check_times(payload, now_us).sub}"
    raise NotAllowed("the token is not signed by a key that this store trusts")


def _verify(token: str, public: str, ledger: str) -> dict[str, Any] | None:
    """What the token says; None if another key signed it."""
    import jwt
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
    try:
        return jwt.decode(
            token,
            key,
            algorithms=[_ALGORITHM],  # never what the header of the token asks for
            audience=ledger,
            issuer=ISSUER,
            # Times are checked by our own clock, and as numbers: the library would take "9999999999" for one.
            options={
                "require": ["sub", "aud", "exp", "iat", "iss"],
                "strict_aud": True,
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
            },
        )
    except jwt.InvalidSignatureError:
        return None
    except jwt.InvalidAlgorithmError:
        raise NotAllowed("the token must be signed with Ed25519 (EdDSA); nothing else is accepted") from None
    except jwt.MissingRequiredClaimError as error:
        raise NotAllowed(f"the token does not say {error.claim!r}; make a new one") from None
    except jwt.InvalidAudienceError:
        raise NotAllowed("the token is for another ledger") from None
    except jwt.InvalidIssuerError:
        raise NotAllowed(f"the token was not issued by {ISSUER!r}") from None
    except jwt.InvalidTokenError:
        raise NotAllowed(_NOT_A_TOKEN) from None


def _check_times(payload: dict[str, Any], now_us: int) -> TokenClaims:
    try:
        claims = msgspec.convert(payload, TokenClaims)
    except msgspec.ValidationError as error:
        raise NotAllowed(f"a claim of the token is not what it must be: {error}") from None
    # No tolerance at the end, a little at the start: the clock of the machine that made the token may be ahead.
    if claims.exp * 1_000_000 <= now_us:
        raise NotAllowed(f"the token of {claims.sub!r} has expired; make a new one")
    if max(claims.iat, claims.nbf) * 1_000_000 > now_us + _CLOCK_SKEW_US:
        raise NotAllowed(f"the token of {claims.sub!r} is not yet valid; compare the clocks of both machines")
    return claims
