"""What a server knows us by: from the environment, or from the keyring of the machine; never from a call or a file."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.config import read_variable
from interlock.errors import ConfigError, install_hint

KEYRING = "keyring:"


def read_secrets(server: str, wanted: Mapping[str, str]) -> dict[str, str]:
    """All that a server knows us by."""
    return {name: read_secret(server, where) for name, where in wanted.items()}


def read_secret(server: str, where: str) -> str:
    """The value of a variable, or of an entry of the keyring (`keyring:SERVICE/USER`)."""
    if where.startswith(KEYRING):
        return _usable(server, _from_keyring(server, where))
    if not where.isidentifier():  # perhaps the secret itself: it is not said again
        raise ConfigError(
            f"the MCP server {server!r}: what stands there is no name of a variable; name the variable that holds the"
            f" value, or {KEYRING}SERVICE/USER, and not the value itself"
        )
    value = read_variable(where)
    if value is None:
        # In any other spelling it may be the secret itself, which is not said again.
        named = f"the variable {where}" if where.isupper() else "a variable"
        raise ConfigError(f"the MCP server {server!r} is handed {named}, which is not set")
    return _usable(server, value)


def _usable(server: str, value: str) -> str:
    """The value without the line end that files and shells put behind it; errors of others would quote a worse one."""
    kept = value.rstrip("\r\n")
    if not kept.isprintable():
        raise ConfigError(f"the MCP server {server!r}: its secret holds characters that cannot be sent")
    if kept != kept.strip():  # whoever refuses that quotes it
        raise ConfigError(f"the MCP server {server!r}: its secret begins or ends with a blank; take that away")
    return kept


def _from_keyring(server: str, where: str) -> str:
    service, slash, user = where.removeprefix(KEYRING).rpartition("/")
    if not slash or not service or not user:
        raise ConfigError(f"the MCP server {server!r}: {where!r} names no entry; write {KEYRING}SERVICE/USER")
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise ConfigError(f"{where} needs the package keyring: {install_hint('keyring')}") from None
    try:
        value = keyring.get_password(service, user)
    except KeyringError as error:
        raise ConfigError(f"the MCP server {server!r}: the keyring does not open: {error}") from None
    if value is None:
        raise ConfigError(
            f"the MCP server {server!r} is known by {where}, which the keyring does not have; put it there with:"
            f" keyring set {service} {user}"
        )
    return value
