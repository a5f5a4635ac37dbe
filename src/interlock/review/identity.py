"""Who decides: the operating-system user, or a service that shows a signed token."""

from __future__ import annotations

import base64
import binascii

import msgspec

from interlock.audit import SigningKey, signed_by
from interlock.errors import NotAllowed

_MARK = "il1"


class TokenClaims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a token says: who, for which ledger, until when."""

    name: str
    ledger: str
    expires_us: int


def issue(key: SigningKey, identity: TokenClaims) -> str:
    """A token that whoever trusts the key will take for this identity."""
    body = _pack(msgspec.json.encode(identity))
    return f"{_MARK}.{body}.{_pack(bytes.fromhex(key.sign(_signed(body))))}"


def authenticate(token: str, *, trusted: tuple[str, ...], ledger: str, now_us: int) -> str:
    """The principal behind a token; `NotAllowed` says what is wrong with it."""
    try:
        mark, body, signature = token.strip().split(".")
        said = msgspec.json.decode(_unpack(body), type=TokenClaims)
        signed = _unpack(signature).hex()
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        raise NotAllowed("that is not a token of Interlock; make one with: interlock review token NAME") from None
    if mark != _MARK or not any(signed_by(key, signed, _signed(body)) for key in trusted):
        raise NotAllowed("the token is not signed by a key that this store trusts")
    if said.ledger != ledger:
        raise NotAllowed("the token is for another ledger")
    if said.expires_us <= now_us:
        raise NotAllowed(f"the token of {said.name!r} has expired; make a new one")
    return f"token:{said.name}"


def _signed(body: str) -> bytes:
    return f"interlock token {body}".encode()


def _pack(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _unpack(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
