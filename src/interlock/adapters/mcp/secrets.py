"""What a server knows us by: from the environment, or from the keyring of the machine; never from a call or a file."""

from __future__ import annotations

from interlock.config import read_variable
from interlock.errors import ConfigError, install_hint

KEYRING = "keyring:"


def read_secret(server: str, where: str) -> str:
    """The value of a variable, or of an entry of the keyring (`keyring:SERVICE/USER`)."""
    if where.startswith(KEYRING):
        return _from_keyring(server, where)
    value = read_variable(where)
    if value is None:
        raise ConfigError(f"the MCP server {server!r} is handed the variable {where}, which is not set")
    return value


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
