"""Hosts and addresses as an attacker spells them: which of them lead to the public internet."""

from __future__ import annotations

import ipaddress
import socket
import unicodedata
from urllib.parse import urlsplit

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_INSIDE_SUFFIXES = (".localhost", ".local", ".internal", ".intranet", ".lan", ".home.arpa", ".corp", ".home")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_NEVER = tuple(ipaddress.ip_network(text) for text in ("64:ff9b:1::/48", "3fff::/20", "fec0::/10", "5f00::/16"))
_DOTS = str.maketrans("。．｡", "...")
# Two resolvers may go to two hosts for such a name; no honest check can follow both.
_TWO_READINGS = frozenset("ßς\u200c\u200d")
"""Characters that IDNA 2003 and IDNA 2008 turn into different names."""
_COMPATIBLE = ipaddress.ip_network("::/96")


def split_url(url: str) -> tuple[str, str]:
    """Scheme and host of a URL, both in their plain form; ValueError if there is no honest reading."""
    if any(character.isspace() or ord(character) < 0x20 for character in url) or "\\" in url:
        raise ValueError("a URL has no white space, control characters or backslashes")
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL with user name or password in it is refused")
    _ = parts.port  # raises ValueError for a port that is no number
    return parts.scheme.lower(), plain_host(parts.hostname or "")


def plain_host(host: str) -> str:
    """A host name in lower-case ASCII, without trailing dots; ValueError if it has no honest reading."""
    if _TWO_READINGS.intersection(host.lower()):
        raise ValueError(f"{host!r} leads to different hosts for different readers; write its xn-- form")
    text = unicodedata.normalize("NFKC", host.translate(_DOTS)).strip("[]").lower()
    if not text.isascii():
        text = text.encode("idna").decode("ascii")
    text = text.rstrip(".")
    if not text or "%" in text:
        raise ValueError(f"{host!r} is not a host name")
    return text


def as_address(host: str) -> IpAddress | None:
    """The address that a host literal means, also in octal, hexadecimal, decimal or shortened spelling."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def is_public_address(address: IpAddress) -> bool:
    """Whether an address, and any IPv4 address wrapped in it, is on the public internet."""
    if isinstance(address, ipaddress.IPv6Address):
        if any(address in network for network in _NEVER):
            return False
        inner = _inside(address)
        if inner is not None:
            return is_public_address(inner)
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def is_public_host(host: str) -> bool:
    """Whether a host may be public: a public address, or a name that is not reserved for the inside.

    A name is only a promise; what it resolves to is checked by the transport when the connection is made.
    """
    address = as_address(host)
    if address is not None:
        return is_public_address(address)
    return ":" not in host and "." in host and not host.endswith(_INSIDE_SUFFIXES)


def host_matches(host: str, allowed: str) -> bool:
    """Whether a host is the allowed one, or below it where the allowed one starts with '*.'."""
    pattern = allowed.lower().rstrip(".")
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and len(host) > len(pattern) - 1
    return host == pattern


def _inside(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None
