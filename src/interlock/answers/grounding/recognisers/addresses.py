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
        for match in self._PATTERN.finditer(text) if "://" in text else ():
            yield Claim("url", match[0], match.start(), match.end())


class Mails:
    """name@example.org"""

    # Bounded as addresses are (64 and 63 characters), and begun only at the start of a word: so it stays linear.
    _PATTERN = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")

    def find(self, text: str) -> Iterator[Claim]:
        for match in self._PATTERN.finditer(text) if "@" in text else ():
            yield Claim("mail", match[0], match.start(), match.end())


class Domains:
    """example.org, without a scheme: letters, and an ending that is one of the web's."""

    # No digits and no capitals inside, so that "v1.2" and "Nov.At" are none; the endings are those that people write.
    _PATTERN = re.compile(
        r"(?<![\w.@/-])(?:www\.)?[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})(?:\.[A-Za-z0-9-]{1,63}){0,4}"
        r"\.(?:com|org|net|gov|edu|info|biz|dev|app|shop|bank|online|site|health|travel|io|co|ai|uk|de|fr|es|it|nl|eu|us|ca|au|ch|at|be|pt|ru|cn|jp|in|br|ie|nz|se|no|dk|fi|pl|mil|int|example|test)"
        r"(?:/[^\s<>\"')\]]{0,200}[^\s<>\"')\].,;:!?]|/)?(?![\w-])"
    )

    _ENDING = re.compile(r"\.[a-z][a-z]")

    def find(self, text: str) -> Iterator[Claim]:
        for match in self._PATTERN.finditer(text) if self._ENDING.search(text) else ():
            yield Claim("url", match[0], match.start(), match.end())


class Phones:
    """+1 541 555 0199, (541) 555-0199, 555-0199, extension 12."""

    _PATTERN = re.compile(
        r"(?=[+(\d])(?:(?<![\w.,$€£])\+\d{1,3}[\s.-]?(?:\(?\d{1,5}\)?[\s./-]?){1,6}\d(?!\w)"
        r"|(?<![\w.,$€£-])\(\d{2,5}\)[\s.-]?\d{2,5}(?:[\s.-]\d{2,5}){0,3}(?!\w)"
        r"|(?<![\w.,$€£-])\d{3}[\s.-]\d{3}[\s.-]\d{4}(?!\w)|(?<![\w.,$€£/-])\d{3}-\d{4}(?![\w-])"
        r"|(?<![\w.,$€£-])0\d{2,4}[\s-]\d{3,8}(?:[\s-]\d{2,4})?(?!\w)|(?<![\w.,$€£-])1-8\d\d-[A-Z0-9-]{5,10})"
    )

    def find(self, text: str) -> Iterator[Claim]:
        for match in self._PATTERN.finditer(text):
            yield Claim("phone", match[0], match.start(), match.end())


class References:
    """record 12"""

    _PATTERN = re.compile(r"\brecords? #?(?P<n>\d+)\b", re.I)

    def find(self, text: str) -> Iterator[Claim]:
        for match in self._PATTERN.finditer(text) if "record" in text.lower() else ():
            yield Claim("reference", f"record {match['n']}", match.start(), match.end())
