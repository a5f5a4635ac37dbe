"""Codes that an answer repeats letter by letter: 6S9, 16CR44019, 13/31, W-07. No recogniser need know their kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.fact_kinds import places_of

_TOKEN = re.compile(r"[\w./:#+<>=~-]{0,80}\d[\w./:#+<>=~-]{0,80}")
_NEXT_WORD = re.compile(r"\s+([^\W\d_]{2,30})\b")
_MOST_ORDINALS = 20
_A_FIGURE = re.compile(r"[\W\d]*|[+-]?\d[\d.,]*-?[^\W\d_]+")
"""12.4, 10:30, 12-month, 5ft: what stands for a quantity is held against quantities."""


class Codes:
    """The codes of an answer that stand in a text of a result."""

    def __init__(self, text: str, said: Sequence[Claim], facts: Sequence[Fact]) -> None:
        self._spans: dict[str, list[tuple[int, int]]] = {}
        for match in _TOKEN.finditer(text) if said else ():
            code = match[0].rstrip(".:-").removeprefix("#")
            if _is_code(code):
                self._spans.setdefault(code.lower(), []).append((match.start(), match.end()))
                if code.endswith("s") and _is_code(code[:-1]):  # three AL-440s
                    self._spans.setdefault(code[:-1].lower(), []).append((match.start(), match.end()))
        self._known: dict[int, Fact] = {}
        """By the place where a code begins: what it stands in."""
        known = once(facts, _places_of_codes) if self._spans else {}
        # In the order of the facts: where two spellings are known, the one that was returned first is named.
        for at, code in sorted((known[code], code) for code in self._spans if code in known):
            for start, end in self._spans[code]:
                for place in range(start, end):
                    self._known.setdefault(place, facts[at])

    def find(self, claim: Claim) -> Fact | None:
        """The text that has the code which a claim is, or is a part of."""
        found = self._known.get(claim.start)
        return found if found is not None and claim.end - 1 in self._known else None


class OrdinalPhrases:
    """Ordinals of an answer that a text of a result has before the same word ("a second count"), or are a field."""

    def __init__(self, text: str, said: Iterable[Claim], facts: Iterable[Fact]) -> None:
        self._phrases: dict[int, str] = {}
        for claim in said:
            behind = _NEXT_WORD.match(text, claim.end) if claim.kind == "ordinal" else None
            if behind is not None and len(self._phrases) < _MOST_ORDINALS:
                self._phrases[claim.start] = f"{claim.text} {behind[1]}".lower()
        wanted = set(self._phrases.values())
        self._found: dict[str, Fact] = {}
        self._keys: dict[str, Fact] = {}
        """Fields that are called by an ordinal alone: `first`, `second`."""
        ordinals = {phrase.partition(" ")[0] for phrase in wanted}
        for fact in facts if wanted else ():
            if fact.text and fact.trusted and not (fact.asked or fact.echo or fact.stale):
                lower = fact.text.lower()
                if fact.is_key and lower in ordinals:
                    self._keys.setdefault(lower, fact)
                for phrase in wanted - self._found.keys():
                    if phrase in lower:
                        self._found[phrase] = fact

    def find(self, claim: Claim) -> Fact | None:
        """The text that has the ordinal with the word behind it."""
        return self._found.get(self._phrases.get(claim.start, "")) or self._keys.get(claim.text.lower())


def _places_of_codes(facts: Sequence[Fact]) -> dict[str, int]:
    """By what may be a code: the place of the first fact with a text that has it."""
    found: dict[str, int] = {}
    read: set[str] = set()
    for place in places_of(facts, "text"):
        fact = facts[place]
        text = fact.text
        if fact.trusted and text not in read and not (fact.asked or fact.echo or fact.stale):
            read.add(text)
            for match in _TOKEN.finditer(text):
                found.setdefault(match[0].rstrip(".:-").removeprefix("#").lower(), place)
    return found


def _is_code(token: str) -> bool:
    letters = any(char.isalpha() for char in token)
    return (letters or "/" in token) and (not letters or _A_FIGURE.fullmatch(token) is None)
