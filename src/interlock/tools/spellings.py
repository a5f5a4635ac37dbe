"""Where secrets stand in a text: as they are, in other case, quoted, escaped, in hexadecimal or base64, or cut off."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from unicodedata import normalize

from interlock.canonical import encode_canonical
from interlock.tools.text_views import Span, View, normal_form, readings, views
from interlock.tools.word_search import LEAST, WordIndex
from interlock.values import clean

_QUOTED = re.compile(r"[^ -~]|[\"'\\]")
"""What is written otherwise between quotation marks."""
_LEAST_CORE = 4
"""Fewer characters of base64 than these stand in ordinary words."""


class Spellings:
    """Secrets, and every spelling of them that is looked for."""

    def __init__(self, secrets: Iterable[str]) -> None:
        plain, cores = set[str](), dict[str, int]()
        for secret in secrets:
            plain.update(form for form in map(_fold, _plain_forms(secret)) if len(form) >= LEAST)
            for core, before in _base64_cores(secret):
                cores[core] = max(before, cores.get(core, 0))
        self._plain, self._cores = WordIndex(plain), WordIndex(cores)
        self._before = cores
        """How many characters before each core hold some of the secret."""
        self._any = bool(plain)

    def find(self, text: str) -> list[Span]:
        """The parts of the text that are a secret in any spelling, in their order, none touching another."""
        if not self._any or len(text) < LEAST:
            return []
        return _merge(sorted({span for view in views(text) for span in self._in_view(view)}))

    def _in_view(self, view: View) -> Iterator[Span]:
        folded = _fold(view.text)
        for start, end in (*self._plain.find(folded), *self._plain.find_cut(folded)):
            yield view.span(start, end)
        # One alphabet of the two; no case is folded, as base64 in another case is another text.
        encoded = view.text.replace("-", "+").replace("_", "/")
        for start, end in (*self._cores.find(encoded), *self._cores.find_cut(encoded)):
            # The characters on either side hold bits of the secret, too.
            before = self._before.get(encoded[start:end], 1)
            yield view.span(max(0, start - before), min(len(encoded), end + 1))


def number_forms(secrets: Iterable[str]) -> frozenset[str]:
    """What a number would be written as that is one of the secrets."""
    return frozenset(form for text in secrets if text[-1].isdigit() for form in readings(text))


def _plain_forms(secret: str) -> Iterator[str]:
    """The secret and what it may be read as, as JSON and Python quote it, and in hexadecimal."""
    yield from readings(secret)
    if not secret.isascii():
        yield from {normal_form(one) for one in (secret, secret.upper(), secret.lower())}
    if _QUOTED.search(secret) is not None:
        # Arguments that passed no contract may hold half a character, with which sentences are not written.
        writable = clean(secret)
        yield writable
        yield encode_canonical(writable).decode()[1:-1]
        yield json.dumps(secret)[1:-1]
        yield repr(secret)[1:-1]
    yield secret.encode("utf-8", "replace").hex()


def _base64_cores(secret: str) -> Iterator[tuple[str, int]]:
    """What base64 makes of the secret alone, whatever stands beside it, and how many characters before hold some of it.

    Three bytes are four characters, so there are three ways in which a secret can lie in a longer text.
    """
    data = secret.encode("utf-8", "replace")
    for shift in range(3):
        text = b64encode(b"\0" * shift + data).decode().rstrip("=")
        first, last = -(-8 * shift // 6), 8 * (shift + len(data)) // 6
        if last - first >= _LEAST_CORE:
            yield text[first:last], 1 if shift else 0


def _fold(text: str) -> str:
    """The text without regard to case and width, in which every character keeps its place."""
    if text.isascii():
        return text.lower()
    # One by one: what a letter becomes must neither depend on those beside it (Σ) nor take more room (ß).
    return "".join([one if len(one := normalize("NFKC", letter).casefold()) == 1 else letter for letter in text])


def _merge(spans: list[Span]) -> list[Span]:
    """Spans in order, those that touch made one."""
    merged: list[Span] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
