"""How things in the results are, told in words that could also tell of a deed: "the pool is booked out", "8:30, done".

Such a clause claims nothing of ours where the results say the same of the very thing that it names, or where it is
said to be what somebody else writes. Who says so falsely is held by what judges deeds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from interlock.answers.statements.deeds import Deed, Doer, Form
from interlock.answers.statements.lexicon import Lexicon
from interlock.answers.statements.reports import Reported
from interlock.answers.statements.rows import objects_of
from interlock.answers.statements.verb_groups import Stance
from interlock.values import Json

_TOKEN = re.compile(r"[\w\-]+")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_LONGEST_NAME = 60
_NEW = frozenset({"been", "now", "just", "today"})
"""What is said with one of these has come about since."""


class _Row(NamedTuple):
    """One object of a result: the words of its names, the state that it is in, whether anything of it is left."""

    names: frozenset[str]
    state: tuple[str, ...]
    full: bool | None


class ToldStates:
    """What results say of their things, and what strangers' texts among them speak of."""

    def __init__(
        self, values: Iterable[Json], reported: Reported, quoted: Reported | None, words: Lexicon, *, acted: bool
    ) -> None:
        """`quoted`: with texts of strangers; None where there are none. `acted`: anything was changed, or tried."""
        self._reported, self._quoted, self._words, self._acted = reported, quoted, words, acted
        self._rows = [_row(item, words) for item in objects_of(values)]

    def tells(self, deed: Deed) -> bool:
        """Whether a clause tells how something is, and that is so; or what somebody else is said to write."""
        if deed.doer is not Doer.NOBODY or deed.stance is not Stance.DONE:
            return False
        if self._is_theirs(deed) or self._is_full(deed) or self._is_marked(deed):
            return True
        return not self._acted and (self._is_in_state(deed) or self._is_kept(deed) or self._has_flowed(deed))

    def _is_theirs(self, deed: Deed) -> bool:
        """ "She writes that the fine was cancelled": up to the next break this is hers, if her text speaks of it."""
        if self._quoted is None:
            return False
        words, said = self._words, _before(deed)
        start = 1 + max(
            (at for at, word in enumerate(said) if word in words.ends or word in words.contrasts), default=-1
        )
        verb = next((at for at in range(start, len(said)) if said[at] in words.attitudes), None)
        if verb is None or {*said[start:verb]} & (words.ours | words.own_records):
            return False
        content = {word for word in (*deed.clause, *deed.subject) if len(word) > 3} - words.attitudes
        return self._quoted.names(map(words.verbs.stem, content | {deed.word}))

    def _is_full(self, deed: Deed) -> bool:
        """ "The pool is booked out" of a row in which nothing is free."""
        sweeping = {*deed.after[:1]} & {"out", "up"} or {*deed.clause} & {"fully", "completely"}
        if deed.verb not in self._words.fillings or not sweeping or _NEW & {*deed.clause}:
            return False
        row = self._row_of([row for row in self._rows if row.full is not None], deed.sentence.words)
        return row is not None and row.full is True

    def _is_marked(self, deed: Deed) -> bool:
        """ "It is marked as authorised" of what is: how it came to be so is not said."""
        words = deed.sentence.words
        if deed.verb not in self._words.marks or deed.form is not Form.PASSIVE or _NEW & {*deed.clause}:
            return False
        at = next((n for n in range(len(words) - 2) if words[n : n + 2] == (deed.word, "as")), None)
        return at is not None and self._reported.tells(self._words.verbs.stem(words[at + 2]), strictly=False)

    def _is_in_state(self, deed: Deed) -> bool:
        """ "Ford Transit, 9:00, in progress": the state of the row that the sentence names."""
        if deed.form is not Form.PHRASE:
            return False
        row = self._row_of([row for row in self._rows if row.state], deed.sentence.words)
        if row is None:
            return False
        state = " ".join(row.state)
        same = next((group for group in self._words.courses if state in group), frozenset({state}))
        spoken = f" {' '.join(deed.clause)} "
        return any(f" {one} " in spoken for one in same)

    def _is_kept(self, deed: Deed) -> bool:
        """ "A duty of 54 is on the books": what is so much of, by the name of a field."""
        head = next((n for n, word in enumerate(deed.subject) if word in self._words.prepositions), len(deed.subject))
        nouns = {word for word in deed.subject[:head] if len(word) > 2} - self._words.determiners
        counted = any(word[:1].isdigit() for word in deed.subject)
        if deed.form is not Form.PHRASE or not counted or not nouns or nouns & self._words.promise_things:
            return False
        return all(self._reported.names((self._words.verbs.stem(noun),)) for noun in nouns)

    def _has_flowed(self, deed: Deed) -> bool:
        """ "The June payment went out", "you were paid on 2 May": money that went its way on a day."""
        words, clause = self._words, {*deed.clause, *deed.subject}
        if not {*deed.sentence.words} & words.months or _NEW & clause or not clause & {"was", "were", "went"}:
            return False
        heads = {deed.verb} if deed.verb else {words.verbs.stem(word) for word in deed.subject}
        return bool(heads & words.flows)

    def _row_of(self, rows: Sequence[_Row], said: Sequence[str]) -> _Row | None:
        """The row of which a sentence has the most names, where no other has as many."""
        spoken = frozenset(said)
        scores = [len(row.names & spoken) for row in rows]
        best = max(scores, default=0)
        return rows[scores.index(best)] if best and scores.count(best) == 1 else None


def _before(deed: Deed) -> tuple[str, ...]:
    """The words of a sentence up to the verb of a deed."""
    words, clause = deed.sentence.words, deed.clause
    start = next((at for at in range(len(words)) if words[at : at + len(clause)] == clause), 0)
    return words[: start + max(0, len(clause) - len(deed.after) - 1)]


def _row(item: Mapping[str, Json], words: Lexicon) -> _Row:
    names, state, left = set[str](), tuple[str, ...](), list[bool]()
    for key, value in item.items():
        parts = [part.lower() for part in _PART.findall(key)]
        if isinstance(value, str) and {"status", "state", "stage"} & {*parts}:
            state = tuple(part.lower() for part in _PART.findall(value))
        elif isinstance(value, str) and len(value) <= _LONGEST_NAME:
            names |= {token for token in _TOKEN.findall(value.lower()) if len(token) > 2}
        elif words.vacancies & {*parts} and isinstance(value, int | float | list):
            left.append(bool(value))
    return _Row(frozenset(names), state, not any(left) if left else None)
