"""Things that only a call that came to nothing would have put together, said to be together: "TR-2 goes with Milo".

No word of such a sentence tells of a deed. That it names two things which a call was given, that the call was not done,
and that no result has both of them, says that it tells the call's effect as how things are.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlock.answers.grounding.rows import plain_name
from interlock.answers.grounding.superseded import is_code
from interlock.answers.statements.clauses import Clause, Lead, split_clauses
from interlock.answers.statements.effect_calls import EffectCall
from interlock.answers.statements.effects import EffectState
from interlock.answers.statements.lexicon import Lexicon
from interlock.answers.statements.touched import DATE, MONTHS, Objects
from interlock.answers.statements.wording import Sentence

_CAME_TO_NOTHING = frozenset({EffectState.FAILED, EffectState.REFUSED, EffectState.UNKNOWN, EffectState.UNDONE})
_OPEN = frozenset({"would", "can", "could", "may", "should"})
_SHORTEST, _MOST_NAMES = 3, 100
_PHRASES = ("unsure", "waiting", "refused", "failed", "planned")


class Links:
    """What calls that came to nothing would have put together."""

    def __init__(self, calls: Sequence[EffectCall], objects: Objects, words: Lexicon) -> None:
        self._words, self._objects = words, objects
        self._calls = [(call, self._names(call)) for call in calls if call.effect.state in _CAME_TO_NOTHING]
        self._done = [{plain_name(str(v)) for v in call.arguments.values()} for call in calls if call.is_done]

    def _names(self, call: EffectCall) -> dict[str, set[str]]:
        """By the value of an argument: what goes by it, by tools and by the rows that have it."""
        found: dict[str, set[str]] = {}
        for value in call.arguments.values():
            if not isinstance(value, str):
                continue
            name = plain_name(value)
            if len(name) >= _SHORTEST and len(name.split()) <= 5:
                known = self._objects.names_of(name)
                if is_code(name):
                    rows = (thing for thing in self._objects.all if name in thing.names.values())
                    known = known | {text for thing in rows for text in thing.names.values() if not is_code(text)}
                day = DATE.match(value)
                if day is not None:
                    month = MONTHS[(int(day[1]) - 1) % 12]
                    known = known | {f"{int(day[2])} {month}", f"{month} {int(day[2])}"}
                found[name] = {one for one in sorted(known)[:_MOST_NAMES] if len(one) >= _SHORTEST}
        return found

    def find(self, sentence: Sentence) -> EffectCall | None:
        """The call whose effect a sentence tells as how things are."""
        if sentence.asks or not self._calls:
            return None
        clauses = list(split_clauses(sentence, self._words))
        if any(clause.lead in (Lead.SUPPOSED, Lead.TIMED) for clause in clauses):
            return None
        for clause in filter(self._states, clauses):
            said = f" {plain_name(' '.join(clause.words))} "
            for call, names in self._calls:
                named = [value for value, same in names.items() if any(f" {one} " in said for one in same)]
                if len(named) > 1 and not self._are_together(named):
                    return call
        return None

    def _states(self, clause: Clause) -> bool:
        """Whether a clause says that something is so: nothing denied, wished, offered, tried or refused."""
        words, said = self._words, {*clause.words}
        if said & (words.negations | words.none | words.untold) or said & words.ours:
            return False
        kinds = {words.auxiliaries[word] for word in said & words.auxiliaries.keys()}
        has_verb = bool(kinds) or any(len(word) > _SHORTEST and word.endswith(("s", "ed")) for word in said)
        return has_verb and not kinds & _OPEN and not any(words.phrases[one].find(clause.words) for one in _PHRASES)

    def _are_together(self, values: Sequence[str]) -> bool:
        """Whether a result, or a call that was done, has two of the things itself."""
        if any(len(done.intersection(values)) > 1 for done in self._done):
            return True
        names = [self._objects.names_of(value) for value in values]
        for thing in self._objects.all:
            here = {name for one in self._objects.around(thing) for name in one.names.values()}
            if sum(not here.isdisjoint(same) for same in names) > 1:
                return True
        return False
