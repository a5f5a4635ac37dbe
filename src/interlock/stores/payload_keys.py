"""Payloads under lock: AES-256-GCM with a key from a file, bound to the ledger and the record that they lie beside.

The file holds keys as 64 hexadecimal digits, one to a line. The last one locks, all of them open; a line `lost ID` says
that a key is gone for good. What was written before there was a key is read as it lies there.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import threading
from pathlib import Path
from typing import Any

from interlock.errors import PayloadUnreadable, StoreError
from interlock.stores.private_files import write_private

# No JSON text begins with a zero, so that what was written before there were keys cannot be taken for this.
_MARK = b"\x00ILP"
_PLAIN, _LOCKED = _MARK + b"\x00", _MARK + b"\x01"
_ID_BYTES, _NONCE_BYTES = 8, 12
_KEY = re.compile(r"[0-9a-fA-F]{64}")
_LOST = re.compile(r"lost ([0-9a-f]{16})")
_MAKE = "make one with (umask 077; openssl rand -hex 32 > FILE) and give every machine that opens the store a copy"


class _KeyRing:
    """The keys of a file by their ids."""

    def __init__(self, file: Path) -> None:
        self._ciphers: dict[str, Any] = {}
        self.lost: set[str] = set()
        self.current = ""
        self.encrypt: Any = None
        """With the current key."""
        self.mark = b""
        """What a payload under the current key begins with."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # here: a ledger without payloads needs none

        for number, line in enumerate(_read_private(file).splitlines(), 1):
            text = line.strip()
            lost = _LOST.fullmatch(text)
            if lost is not None:
                self.lost.add(lost[1])
            elif _KEY.fullmatch(text):
                key = bytes.fromhex(text)
                self.current = key_id(key)
                self._ciphers[self.current] = AESGCM(key)
            elif text:
                raise StoreError(f"{file}:{number}: not a payload key: it is 64 hexadecimal digits, one key to a line")
        if not self.current and not self.lost:
            raise StoreError(f"{file}: holds no payload key; {_MAKE}")
        if self.current:  # else it only says which keys are lost: what lies there can be listed, and nothing written
            self.encrypt, self.mark = self._ciphers[self.current].encrypt, _LOCKED + bytes.fromhex(self.current)

    def __contains__(self, name: str) -> bool:
        return name in self._ciphers

    def cipher(self, name: str) -> Any:
        """The cipher of a key."""
        return self._ciphers[name]


class PayloadKeys:
    """Locks and opens the payloads of one ledger; without a file it leaves them as they are."""

    def __init__(self, file: Path | None, ledger: str, *, may_make: bool) -> None:
        self._file = file
        self._ledger = ledger
        self._may_make = may_make
        self._ring: _KeyRing | None = None
        self._place = f"interlock payload {ledger} "
        """What a payload is bound to, but for the number of its record."""
        self._lock = threading.Lock()  # the writer's thread locks while readers open

    @property
    def is_on(self) -> bool:
        """Whether new payloads are locked."""
        return self._file is not None

    def ready(self, noted: str | None) -> str:
        """The id of the key that new payloads are locked with; `noted` is that of the ledger's last ones.

        Refused if the file does not hold that key: half of a ledger would be unreadable here, and half elsewhere.
        """
        file = self._file
        assert file is not None
        with self._lock:
            if not file.exists() and noted is None and self._may_make:
                _make(file)
            ring = self._load(noted or "")
        if noted is not None and noted not in ring and noted not in ring.lost:
            raise PayloadUnreadable(f"the payloads of this ledger are encrypted with {self._missing(noted)}", key=noted)
        if not ring.current:
            raise StoreError(f"{file}: holds no payload key beside those that are lost; {_MAKE}")
        return ring.current

    def lock(self, record: int, payload: bytes) -> bytes:
        """A payload as it is stored."""
        if self._file is None:
            return _PLAIN + payload if payload.startswith(_MARK) else payload
        ring = self._ring
        assert ring is not None, "ready() comes first"
        nonce = os.urandom(_NONCE_BYTES)
        return b"".join((ring.mark, nonce, ring.encrypt(nonce, payload, self._bound_to(record))))

    def open(self, record: int, stored: bytes) -> bytes:
        """A payload as it was; `PayloadUnreadable` if the key for it is not here.

        What was changed or moved from another record is given as it lies there, which is no payload: whoever reads it
        finds that it is not what was recorded.
        """
        if not stored.startswith(_MARK):
            return stored
        if stored.startswith(_PLAIN):
            return stored[len(_PLAIN) :]
        start = len(_LOCKED)
        name = stored[start : start + _ID_BYTES].hex()
        nonce = stored[start + _ID_BYTES : start + _ID_BYTES + _NONCE_BYTES]
        text = stored[start + _ID_BYTES + _NONCE_BYTES :]
        with self._lock:
            ring = self._load(name)
        if name in ring.lost and name not in ring:
            why = (
                f"the payload of record {record} is encrypted with the key {name}, which is lost ({self._file} says so)"
            )
            raise PayloadUnreadable(why, key=name, lost=True)
        if name not in ring:
            why = f"the payload of record {record} is there, encrypted with {self._missing(name)}"
            raise PayloadUnreadable(why, key=name)
        from cryptography.exceptions import InvalidTag

        try:
            return bytes(ring.cipher(name).decrypt(nonce, text, self._bound_to(record)))
        except (InvalidTag, ValueError):
            return stored

    def _load(self, name: str) -> _KeyRing:
        """The keys as the file has them; read again for one that was not there when it was read."""
        if self._file is None:
            raise PayloadUnreadable(
                f"payloads of this ledger are encrypted with the key {name}, and no key file is named; name it with the"
                " setting payload_key",
                key=name,
            )
        if self._ring is None or (name and name not in self._ring and name not in self._ring.lost):
            if not self._file.exists():
                raise PayloadUnreadable(f"{self._file}: there is no payload key here; {self._need_key(name)}", key=name)
            self._ring = _KeyRing(self._file)
        return self._ring

    def _need_key(self, name: str) -> str:
        if not name:
            return _MAKE.replace("FILE", str(self._file))
        return (
            f"payloads of this ledger are encrypted with the key {name}: put its file back, or name the file that"
            " has it with the setting payload_key"
        )

    def _missing(self, name: str) -> str:
        return (
            f"the key {name}, which {self._file} does not hold; add it to that file as a line before the last, or name"
            f" the file that has it (setting payload_key); if it is lost for good, add the line 'lost {name}'"
        )

    def _bound_to(self, record: int) -> bytes:
        return f"{self._place}{record}".encode()


def key_id(key: bytes) -> str:
    """What a key is called: it says nothing about the key."""
    return hashlib.blake2b(b"interlock payload key", key=key, digest_size=_ID_BYTES).hexdigest()


def _make(file: Path) -> None:
    try:
        write_private(file, os.urandom(32).hex().encode() + b"\n")
    except OSError as error:
        raise StoreError(
            f"{file}: the key that payloads are encrypted with cannot be made there ({error.strerror}); name another"
            ' file with the setting payload_key, or write payload_key = "none"'
        ) from None


def _read_private(file: Path) -> str:
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
        if mode & 0o077:
            raise StoreError(f"{file}: others can read the payload key (mode {mode:04o}); chmod 600 it")
        return file.read_text("ascii")
    except OSError as error:
        raise PayloadUnreadable(f"{file}: the payload key cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise StoreError(f"{file}: not a file of payload keys: it holds 64 hexadecimal digits to a line") from None
