"""What results say was done in the world: a status, a flag that is true, a date under a deed's name, a sentence.

An answer may repeat that; it is no claim of ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from interlock.answers.statements.lexicon import Lexicon
from interlock.values import Json

_WORD = re.compile(r"[A-Z]?[a-z']+|[A-Z]+")
_LONGEST_STATUS = 8
"""A text of so many words is a status or a name; a longer one is read as a sentence."""
_ACCORDING_TO = re.compile(r"\W{0,3}according to [^:\n]{1,60}:\s", re.I)
_LETTERS = re.compile(r"[^\W_]+")
_SHORTEST_QUOTE = 12
_MOST_QUOTES = 200
"""So many sentences of a draft are looked for in the results word for word: each is a walk through all of them."""
_MOST_CHARS = 400_000
_BEFORE = 4


class Reported:
    """The deeds that results tell of, as the stems of their words."""

    def __init__(self, values: Iterable[Json], words: Lexicon) -> None:
        self._words, self._verbs, self._same = words, words.verbs, words.same
        self.done: set[str] = set()
        """Told by a participle: "cancelled" as a status, `shipped_at` with a date, "was paid" in a sentence."""
        self.undone: set[str] = set()
        """Told not to be so: `refunded: false`, "not shipped"."""
        self.named: set[str] = set()
        """Spoken of in any form: `delivery_date`, "refund"."""
        self.coming: set[str] = set()
        """Said to be still to come: "pending", `awaiting_approval`."""
        self._flags: set[str] = set()
        self._statuses: dict[str, set[str]] = {}
        self._texts: list[str] = []
        self._quoted = 0
        self._left = _MOST_CHARS
        waiting: list[Json] = list(values)
        while waiting and self._left > 0:
            item = waiting.pop()
            self._left -= 8
            if isinstance(item, dict):
                for key, value in item.items():
                    self._key(str(key), value)
                    waiting.append(value)
            elif isinstance(item, list | tuple):
                waiting += item
            elif isinstance(item, str):
                if len(item) >= _SHORTEST_QUOTE:
                    self._texts.append(" ".join(_LETTERS.findall(item[: self._left].lower())))
                self._text(item[: self._left])

    def _key(self, key: str, value: Json) -> None:
        parts = [part.lower() for part in _WORD.findall(key.replace("_", " "))]
        self._left -= len(key)
        if isinstance(value, bool):
            self._flags |= {self._verbs.stem(part) for part in parts if len(part) > 3}
        if isinstance(value, str | bool):
            # Of a flag, its name is what is so or is not: `paid: false`.
            said = value[:40].lower() if isinstance(value, str) else parts[-1] if value and parts else ""
            self._statuses.setdefault(key, set()).add(said)
        if self._words.to_come & {*_without_minutes(parts, self._verbs.is_past)}:
            self.coming |= {self._verbs.stem(part) for part in parts} if value else set()
            return
        empty = value is None or value is False or value in (0, "", "no", "none") or value in ([], {})
        if parts and parts[-1] in self._words.naming:
            return  # `order_id` tells of no order that was placed
        for part in parts:
            stem = self._verbs.stem(part)
            if empty:
                if self._verbs.is_past(part):
                    self.undone.add(stem)
                continue
            self.named.add(stem)
            if self._verbs.is_past(part):
                self.done.add(stem)

    def _text(self, text: str) -> None:
        parts = [part.lower() for part in _WORD.findall(text.replace("_", " "))]
        self._left -= len(text)
        is_status = len(parts) <= _LONGEST_STATUS
        unsaid = is_status and bool(self._words.to_come & {*parts})
        self.coming |= {self._verbs.stem(part) for part in parts if unsaid or part in self._words.to_come}
        for at, part in enumerate(parts):
            stem = self._verbs.stem(part)
            before = parts[max(0, at - _BEFORE) : at]
            said = (
                (is_status and not unsaid)
                or (at == 0 and not unsaid)
                or (bool(self._words.saying & {*before}) and not self._words.unsaying & {*before})
            )
            if not unsaid:
                self.named.add(stem)
            if self._verbs.is_past(part):
                (self.done if said else self.undone).add(stem)

    def says_whose(self, text: str) -> bool:
        """Whether a result says of itself whose words these are, and all of that is repeated: its "we" is not us."""
        return _ACCORDING_TO.match(text) is not None and self.quotes(text)

    def quotes(self, sentence: str) -> bool:
        """Whether a sentence stands in a result word for word: it is the tool's own, as a summary of its result is."""
        said = " ".join(_LETTERS.findall(sentence.lower()))
        if len(said) < _SHORTEST_QUOTE or self._quoted >= _MOST_QUOTES:
            return False
        self._quoted += 1
        return any(said in text for text in self._texts)

    def has_clause(self, subject: Sequence[str], verb: str, after: Sequence[str]) -> bool:
        """Whether a text has the last word of a subject, its verb and the word behind: the server refused the …"""
        if not subject or not after:
            return False
        said = f" {subject[-1]} {verb} {after[0]} "
        return any(said in f" {text} ".replace(" s ", " ") for text in self._texts)

    def tells(self, stem: str, *, strictly: bool, of_all: bool = False) -> bool:
        """Whether results tell of the deed; `strictly`: as done, where a tool of the turn could have done it.

        `of_all`: of everything that there is; where one row is paid and another is open, they do not.
        """
        stems = {stem}.union(*(group for group in self._same if stem in group))
        if of_all and any(len(values) > 1 and self._has(values, stems) for values in self._statuses.values()):
            return False
        return bool(stems & self.done) or (not strictly and stem in self.named and stem not in self.undone)

    def _has(self, values: Iterable[str], stems: set[str]) -> bool:
        return any(self._verbs.stem(value.rpartition("_")[2]) in stems for value in values)

    def names(self, stems: Iterable[str]) -> bool:
        """Whether results speak of one of these things at all."""
        return not self.named.isdisjoint(stems)

    def has_flag(self, stems: Iterable[str]) -> bool:
        """Whether results say of one of these things that it is or is not so."""
        return not self._flags.isdisjoint(stems)


def _without_minutes(parts: Sequence[str], is_past: Callable[[str], bool]) -> Sequence[str]:
    """The words of a field's name without a unit at its end: `delay_min` is in minutes, `paid_min` may be the least."""
    return parts[:-1] if parts[-1:] == ["min"] and not any(map(is_past, parts)) else parts
