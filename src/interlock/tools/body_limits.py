"""How much of an answer is taken: bounded on the wire, and again after decompression, whatever it claims to be."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import msgspec

from interlock.errors import ConfigError, TooLarge, Unavailable

ACCEPTED = "gzip, deflate"
"""The codings that can be undone piece by piece; of others a small text may become a large one in a single step."""
_KNOWN = frozenset({"gzip", "x-gzip", "deflate"})
_UNBOUNDED = frozenset({"br", "zstd"})
"""Codings that httpx undoes itself where it can, as much as there is."""
_PIECE_BYTES = 65_536
_MOST_CODINGS = 3


class BodyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of one answer."""

    wire_bytes: int = 16 * 2**20
    """As it comes."""
    body_bytes: int = 64 * 2**20
    """When it is unpacked."""
    owner: str = "Egress"
    """Where they are set, for what is said of an answer that is too large; empty if they cannot be."""

    def check(self) -> BodyLimits:
        """Itself; ConfigError if a limit is none."""
        for name, value in (("wire_bytes", self.wire_bytes), ("body_bytes", self.body_bytes)):
            if type(value) is not int or value < 1:
                raise ConfigError(f"{name} of an {self.owner} is a whole number of bytes above 0, not {value!r}")
        return self


class Meter:
    """Takes an answer piece by piece and gives it decompressed; `TooLarge` as soon as there is too much of it."""

    def __init__(self, limits: BodyLimits, host: str, codings: tuple[str, ...]) -> None:
        self._limits = limits
        self._host = host
        self._layers = [_Inflate(coding, host) for coding in reversed(codings)]
        self._wire_bytes = 0
        self._body_bytes = 0

    def announce(self, content_length: str) -> None:
        """Refuse an answer that says itself that it is too large."""
        if (
            content_length.isdecimal()
            and content_length.isascii()
            and int(content_length[:20]) > self._limits.wire_bytes
        ):
            raise self._over("sends", self._limits.wire_bytes, "wire_bytes")

    def take(self, chunk: bytes) -> Iterator[bytes]:
        """What a piece from the wire becomes."""
        self._wire_bytes += len(chunk)
        if self._wire_bytes > self._limits.wire_bytes:
            raise self._over("sends", self._limits.wire_bytes, "wire_bytes")
        yield from self._through(chunk, 0)

    def finish(self) -> None:
        """The answer is over; half a compressed text is no answer."""
        for layer in self._layers:
            layer.finish()

    def _through(self, data: bytes, layer: int) -> Iterator[bytes]:
        if layer < len(self._layers):
            for piece in self._layers[layer].take(data):
                yield from self._through(piece, layer + 1)
            return
        self._body_bytes += len(data)
        if self._body_bytes > self._limits.body_bytes:
            raise self._over("unpacks to", self._limits.body_bytes, "body_bytes")
        yield data

    def _over(self, does: str, most: int, setting: str) -> TooLarge:
        return TooLarge(
            f"the answer of {self._host!r} {does} more than the {most:,} bytes allowed"
            + (f"; ask for less, or set {self._limits.owner}({setting}=...)" if self._limits.owner else "")
        )


def codings_of(header: str, host: str) -> tuple[str, ...]:
    """The codings of an answer that are undone here, in the order in which they were applied.

    Those that nobody undoes are left to whoever reads the answer: then it is as large as it was on the wire.
    """
    named = tuple(name for name in (part.strip().lower() for part in header.split(",")) if name not in ("", "identity"))
    refused, known = _UNBOUNDED.intersection(named), _KNOWN.intersection(named)
    # Of several codings httpx undoes those that it knows, as much as there is, and leaves the others.
    if refused or (known and (len(named) > _MOST_CODINGS or not _KNOWN.issuperset(named))):
        what = ", ".join(sorted(refused) or named)
        raise Unavailable(f"{host!r} answered compressed as {what}, though it was asked for {ACCEPTED}; not unpacked")
    return named if _KNOWN.issuperset(named) else ()


class _Inflate:
    """One coding undone, never more than a piece at a time."""

    def __init__(self, coding: str, host: str) -> None:
        self._host = host
        self._is_gzip = coding != "deflate"
        self._unpack = self._new(raw=False)
        self._begun = False

    def take(self, data: bytes) -> Iterator[bytes]:
        """What a piece becomes, in pieces."""
        full = False
        while data or full:  # a full piece: all may be taken in, and yet not all given out
            if self._unpack.eof:
                if not self._is_gzip:
                    return  # what follows the end of a deflated text belongs to nobody
                self._unpack = self._new(raw=False)  # a gzip file may have several members
            piece = self._inflate(data)
            full = len(piece) == _PIECE_BYTES and not self._unpack.eof
            data = self._unpack.unused_data if self._unpack.eof else self._unpack.unconsumed_tail
            if piece:
                yield piece

    def finish(self) -> None:
        """Refuse a text that has not come to its end."""
        if self._begun and not self._unpack.eof:
            raise Unavailable(f"the answer of {self._host!r} ends in the middle of its compressed text")

    def _inflate(self, data: bytes) -> bytes:
        first, self._begun = not self._begun, True
        try:
            return self._unpack.decompress(data, _PIECE_BYTES)
        except zlib.error as error:
            if first and not self._is_gzip:  # some servers leave the header of zlib out
                self._unpack = self._new(raw=True)
                return self._inflate(data)
            raise Unavailable(f"the answer of {self._host!r} cannot be unpacked: {error}") from None

    def _new(self, *, raw: bool) -> zlib._Decompress:
        return zlib.decompressobj(zlib.MAX_WBITS | 16 if self._is_gzip else -zlib.MAX_WBITS if raw else zlib.MAX_WBITS)
