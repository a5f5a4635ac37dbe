"""OAuth 2.1 for the gateway: tokens of an authorization server, bound to this gateway, checked against its keys."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
from mcp.server import ServerRequestContext
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from pydantic import ValidationError

from interlock.errors import ConfigError

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
"""Signatures that a key signs and another one checks; a secret that both know is none of them."""
_REQUIRED = ("exp", "iss", "aud", "sub")


class OAuthTerms(msgspec.Struct, frozen=True):
    """Whose tokens are taken: who issues them, for whom (the address of this gateway), and by which keys."""

    issuer: str
    audience: str
    jwks: str
    """The address of the keys, or a file that holds them."""
    scopes: tuple[str, ...] = ()

    def settings(self) -> AuthSettings:
        """For the SDK: what it tells clients that have no token yet, and what a token must be for."""
        try:
            return AuthSettings.model_validate(
                {
                    "issuer_url": self.issuer,
                    "resource_server_url": self.audience,
                    "required_scopes": list(self.scopes) or None,
                    "validate_token_resource": True,
                }
            )
        except ValidationError:
            raise ConfigError(f"issuer and audience are addresses, not {self.issuer!r} and {self.audience!r}") from None


class JwksVerifier:
    """Checks a token's signature, issuer, audience and time."""

    def __init__(self, terms: OAuthTerms) -> None:
        import jwt  # here: most gateways need none

        self._terms, self._jwt = terms, jwt
        is_address = terms.jwks.startswith(("https://", "http://"))
        self._fetched = jwt.PyJWKClient(terms.jwks, cache_keys=True) if is_address else None
        self._read = None if is_address else _read_keys(Path(terms.jwks))

    async def verify_token(self, token: str) -> AccessToken | None:
        """What a token says; None if it is not good here."""
        return await asyncio.to_thread(self._verify, token)

    def _verify(self, token: str) -> AccessToken | None:
        jwt, terms = self._jwt, self._terms
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key_of(token),
                algorithms=list(_ALGORITHMS),
                audience=terms.audience,
                issuer=terms.issuer,
                options={"require": list(_REQUIRED)},
            )
        except (jwt.PyJWTError, KeyError, ValueError):
            return None
        client, scope = claims.get("client_id") or claims.get("azp"), claims.get("scope") or ""
        if not isinstance(claims["sub"], str) or not isinstance(client, str):
            return None  # who acts has to be said
        return AccessToken(
            token="",  # nobody behind this point needs it
            client_id=client,
            scopes=scope.split() if isinstance(scope, str) else [str(one) for one in scope],
            expires_at=int(claims["exp"]),
            resource=terms.audience,
            subject=claims["sub"],
            claims={"iss": claims["iss"]},
        )

    def _key_of(self, token: str) -> Any:
        if self._fetched is not None:
            return self._fetched.get_signing_key_from_jwt(token).key
        assert self._read is not None
        return self._read[self._jwt.get_unverified_header(token)["kid"]].key


def _read_keys(file: Path) -> dict[str, Any]:
    import jwt

    try:
        return {str(key.key_id): key for key in jwt.PyJWKSet.from_json(file.read_text(encoding="utf-8")).keys}
    except (OSError, ValueError, jwt.PyJWTError) as error:
        raise ConfigError(f"{file}: these are no keys (a JWKS): {error}") from None


def caller_of(ctx: ServerRequestContext[Any, Any]) -> tuple[str, str] | None:
    """The principal and the actor of a request, by its token; None where no token is asked for."""
    user = getattr(getattr(ctx.request, "scope", {}).get("user"), "access_token", None) if ctx.request else None
    token = user or get_access_token()
    return None if token is None else (f"oauth:{token.subject}", token.client_id)
