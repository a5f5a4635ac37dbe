"""Links, mail addresses and references to records."""

from __future__ import annotations

import re
from collections.abc import Iterator

from interlock.answers.grounding.claims import Claim


class Urls:
    """https://example.org/path, without the punctuation that ends a sentence."""

    # The last character is none that ends a sentence or a bracket: "(see https://a.example/b)." is the link alone.
    _PATTERN = re.compile(r"https?://[^\s<>\"')\]]+[^\s<>\"')\].,;:!?]", re.I)

    def find(self, text: str) -> Iterator[Claim]:
        for match in self._PATTERN.finditer(text):
            yield Claim("url", match[0], match.start(), match.end())


class Mails:
    """name@example.org"""

    # Bounded as addresses are (64 and 63 characters), and begun only at the start of a word: so it stays linear.
    _PATTERN = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")

    def find(self, text: str) -> Iterator[Claim]:
        for match in self._PATTERN.finditer(text):
            yield Claim("mail", match[0], match.start(), match.end())


class References:
    """record 12"""

    _PATTERN = re.compile(r"\brecords? #?(?P<n>\d+)\b", re.I)

    def find(self, text: str) -> Iterator[Claim]:
        for match in self._PATTERN.finditer(text):
            yield Claim("reference", f"record {match['n']}", match.start(), match.end())
