"""The Ed25519 key that signs checkpoints."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization as codec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from interlock.config import PASSPHRASE, key_passphrase
from interlock.errors import ConfigError


class SigningKey:
    """A private key and the text of its public half."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self.private = private
        self.public = private.public_key().public_bytes_raw().hex()

    def sign(self, text: bytes) -> str:
        """The signature of a text, in hex."""
        return self.private.sign(text).hex()


def load_or_make_key(file: Path) -> SigningKey:
    """The key in a PEM file; made, readable by its owner alone, if there is none."""
    if not file.exists():
        make_key(file)
    return load_key(file)


def load_key(file: Path) -> SigningKey:
    """The private key in a PEM file, which may be encrypted; `ConfigError` if there is none."""
    if not file.exists():
        raise ConfigError(f"{file}: there is no key; make one with: openssl genpkey -algorithm ed25519 -out {file}")
    mode = stat.S_IMODE(file.stat().st_mode)
    if mode & 0o077:  # whoever can read it can sign another history
        raise ConfigError(f"{file}: others can read the signing key (mode {mode:04o}); chmod 600 it, or make a new one")
    private = _load_private(file, file.read_bytes())
    if not isinstance(private, Ed25519PrivateKey):
        raise ConfigError(f"{file}: must be an Ed25519 key (openssl genpkey -algorithm ed25519)")
    return SigningKey(private)


def load_public_key(file: Path) -> str:
    """The public half of a key file, whether it holds the private key or only the public one."""
    beside = public_file(file)
    try:
        data = file.read_bytes()
        # What is encrypted need not be opened to know its public half, which lies beside it.
        data = beside.read_bytes() if b"ENCRYPTED" in data and beside.exists() else data
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    try:
        key = _load_private(file, data).public_key() if b"PRIVATE" in data else codec.load_pem_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigError(f"{file}: not a PEM key: {error}") from None
    if not isinstance(key, Ed25519PublicKey):
        raise ConfigError(f"{file}: must be an Ed25519 key")
    return key.public_bytes_raw().hex()


def public_file(file: Path) -> Path:
    """Where the public half of a key lies, for whoever verifies."""
    return file.with_name(f"{file.name}.pub")


def public_part(key: Path) -> Path:
    """The key file, or its public half where only that is here."""
    return key if key.exists() or not public_file(key).exists() else public_file(key)


def _load_private(file: Path, data: bytes) -> PrivateKeyTypes:
    given = key_passphrase()
    sealed = b"ENCRYPTED" in data
    if sealed and not given:
        raise ConfigError(f"{file}: the key is encrypted; put its passphrase into the variable {PASSPHRASE}")
    try:
        return codec.load_pem_private_key(data, password=given.encode() if sealed and given else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        why = f"the passphrase in {PASSPHRASE} does not open it" if sealed else f"not a PEM key: {error}"
        raise ConfigError(f"{file}: {why}") from None


def is_signed_by(public: str, signature: str, text: bytes) -> bool:
    """Whether the signature of a text is that of a key."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), text)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def make_key(file: Path, *, encrypted: bool = False) -> None:
    """A new key in a file that only its owner can read, its public half beside it; encrypted with the passphrase that
    the environment holds, if that is wanted."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    given = key_passphrase()
    if encrypted and not given:
        raise ConfigError(f"to encrypt the key, put a passphrase into the variable {PASSPHRASE}")
    sealed = codec.BestAvailableEncryption(given.encode()) if encrypted and given else codec.NoEncryption()
    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(codec.Encoding.PEM, codec.PrivateFormat.PKCS8, sealed)
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    # Made with its mode: there is no moment in which others could open it.
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(pem)
        stream.flush()
        os.fsync(stream.fileno())  # before it has its name: a crash must not leave an empty key
    try:
        os.link(fresh, file)  # of several processes that start at once, one key wins
        public = private.public_key().public_bytes(codec.Encoding.PEM, codec.PublicFormat.SubjectPublicKeyInfo)
        public_file(file).write_bytes(public)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
