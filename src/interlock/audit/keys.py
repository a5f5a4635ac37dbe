"""The Ed25519 key that signs checkpoints."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization as codec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from interlock.errors import ConfigError


class SigningKey:
    """A private key and the text of its public half."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = private.public_key().public_bytes_raw().hex()

    def sign(self, text: bytes) -> str:
        """The signature of a text, in hex."""
        return self._private.sign(text).hex()


def load_or_make_key(file: Path) -> SigningKey:
    """The key in a PEM file; made, readable by its owner alone, if there is none."""
    if not file.exists():
        _make(file)
    mode = stat.S_IMODE(file.stat().st_mode)
    if mode & 0o077:  # whoever can read it can sign another history
        raise ConfigError(f"{file}: others can read the signing key (mode {mode:04o}); chmod 600 it, or make a new one")
    try:
        private = codec.load_pem_private_key(file.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigError(f"{file}: not an unencrypted PEM key: {error}") from None
    if not isinstance(private, Ed25519PrivateKey):
        raise ConfigError(f"{file}: must be an Ed25519 key (openssl genpkey -algorithm ed25519)")
    return SigningKey(private)


def load_public_key(file: Path) -> str:
    """The public half of a key file, whether it holds the private key or only the public one."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    try:
        if b"PRIVATE" in data:
            key = codec.load_pem_private_key(data, password=None).public_key()
        else:
            key = codec.load_pem_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigError(f"{file}: not a PEM key: {error}") from None
    if not isinstance(key, Ed25519PublicKey):
        raise ConfigError(f"{file}: must be an Ed25519 key")
    return key.public_bytes_raw().hex()


def is_signed_by(public: str, signature: str, text: bytes) -> bool:
    """Whether the signature of a text is that of a key."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), text)
    except (InvalidSignature, ValueError):
        return False
    return True


def _make(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    pem = Ed25519PrivateKey.generate().private_bytes(
        codec.Encoding.PEM, codec.PrivateFormat.PKCS8, codec.NoEncryption()
    )
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    # Made with its mode: there is no moment in which others could open it.
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(pem)
        stream.flush()
        os.fsync(stream.fileno())  # before it has its name: a crash must not leave an empty key
    try:
        os.link(fresh, file)  # of several processes that start at once, one key wins
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
