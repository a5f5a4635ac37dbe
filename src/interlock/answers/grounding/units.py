"""Units as they are written in answers and in field names: a closed table, with the prefixes of the metric system.

A spelling can stand for several units (`mw` in a field's name: megawatt or milliwatt), so a unit is a set of names, and
two agree if the sets meet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from interlock.answers.grounding.claims import NO_UNIT, Units

# Words of a name; a digit belongs to one only as its power: `area_m2` has "m2", but `x2_in` has "x" and "in".
_TOKENS = re.compile(r"(?<![0-9])[A-Za-z$%€£¥°]+[23]?(?![0-9A-Za-z])|(?<![0-9A-Za-z])[A-Za-z]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LONGEST_KEPT, _MOST_KEPT = 80, 10_000
_PAIRS = ("km h", "m s")
"""Two words at the end of a name that are one unit: speed_km_h."""


class UnitTable:
    """What spellings mean: in a text (where the case of symbols matters) and in names of fields (where it does not)."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        words = table["words"]
        self._exact, self._words = _symbols(table), _words(table)
        self._also = {spelling: frozenset({unit}) for spelling, unit in table["also_spoken"].items()}
        self._folded = _in_names(table, self._exact, self._words)
        self._at_end = {spelling: frozenset({unit}) for spelling, unit in table["at_end"].items()}
        # Short symbols are words too (`in_stock`, `a_count`): they are units only where a name ends.
        self._only_at_end = {s for s in self._folded if len(s) <= 2 and s.isalpha()} | set(words["only_at_end"])
        self._statistics = frozenset(words["statistics"])
        self._shares = frozenset(words["shares"])
        self.currencies = frozenset(words["currencies"])
        self.spoken = tuple(sorted({*self._exact, *self._words} - set(words["not_spoken"]), key=len, reverse=True))
        """What may follow a figure in an answer, longest first."""
        self._labels = _labels(table, self._exact)
        self._known: dict[str, Units] = {}
        self._spelled: dict[str, Units] = {}

    def label(self, units: Units) -> str:
        """A unit as it is printed behind a figure; nothing where it may be one of several."""
        return self._labels.get(next(iter(units)), "") if len(units) == 1 else ""

    def of(self, text: str) -> Units:
        """The units that a word which follows or leads a figure can stand for."""
        known = self._spelled.get(text)
        if known is None:
            spelled = _normalise(text)
            found = self._exact.get(spelled) or self._words.get(spelled.lower(), NO_UNIT)
            known = found | self._also.get(spelled.lower(), NO_UNIT)
            if len(text) <= _LONGEST_KEPT and len(self._spelled) < _MOST_KEPT:
                self._spelled[text] = known
        return known

    def of_field(self, text: str) -> Units:
        """The units that a field's value or name can stand for, whatever its case."""
        spelled = _normalise(text)
        # As the value of a field ("unit": "C") a capital is Celsius; a small c may be anything.
        if spelled.lower() in self._at_end and spelled.isupper():
            return self._at_end[spelled.lower()]
        whole = self._exact.get(spelled) or self._folded.get(spelled.lower())
        return whole or self._folded.get(spelled.partition("/")[0].partition(" per ")[0].lower(), NO_UNIT)

    def in_name(self, name: str) -> Units:
        """The units that a field's name speaks of: `total_acres`, `costUsd`, `tmax_f`; `trees_per_mile` is per mile."""
        found = self._known.get(name)
        if found is None:
            found = self._find_in_name(name)
            if len(name) <= _LONGEST_KEPT and len(self._known) < _MOST_KEPT:
                self._known[name] = found
        return found

    def _find_in_name(self, name: str) -> Units:
        words = self._name_words(name)
        # `min` is a statistic only behind a unit (`temp_c_min`); otherwise it means minutes (`wait_min`).
        while len(words) > 1 and words[-1] in self._statistics and (words[-1] != "min" or self._is_unit(words[-2])):
            words.pop()  # temp_c_min: the unit stands before
        if "per" not in words[1:]:
            return self._plain(words)
        at = words.index("per", 1)
        after = {f"per_{unit}" for word in words[at + 1 : at + 2] for unit in self._folded.get(word, NO_UNIT)}
        rest = self._plain(["", *words[at + 2 :]])
        return frozenset(after | self._folded.get(words[at - 1], NO_UNIT) | self._plain(words[:at]) | rest)

    def _is_unit(self, word: str) -> bool:
        return word in self._folded or word in self._at_end

    def _plain(self, words: list[str]) -> Units:
        pairs = [" ".join(pair) for pair in pairwise(words)]
        if pairs and pairs[-1] in _PAIRS:
            return self._folded[pairs[-1]]
        # A name of one word names the value, not its unit: a field `m` is anything.
        last = words[-1] if len(words) > 1 else ""
        if last in self._only_at_end and len(words) > 2 and words[-2] in self._folded:
            return self._folded[words[-2]]  # read_mb_s, level_ug_l: one per the other
        inside = [word for word in words if word in self._folded and word not in self._only_at_end]
        found = NO_UNIT.union(*(self._folded[item] for item in (*inside, *(p for p in pairs if p in self._folded))))
        if last in self._only_at_end:  # height_m, took_s
            found |= self._folded.get(last, NO_UNIT)
        return found | self._at_end.get(last, NO_UNIT)

    def is_share(self, name: str) -> bool:
        """Whether a field's name speaks of a part of one."""
        return any(word in self._shares for word in self._name_words(name))

    def _name_words(self, name: str) -> list[str]:
        # A symbol is no two words: the `kWh` of `kWh_total` is not a k and watt hours.
        parts = [
            part for word in _TOKENS.findall(name) for part in ([word] if word in self._exact else _CAMEL.split(word))
        ]
        return [part.lower() for part in parts]


def _labels(table: Mapping[str, Any], symbols: Mapping[str, Units]) -> dict[str, str]:
    """The symbol of a unit that has one; of others a word, as it is said of several."""
    words = {
        name: next((one for one in spellings if one.endswith("s") and len(one) > 3), spellings[0]).replace("-", " ")
        for name, spellings in table["spellings"].items()
    }
    currencies = {name: table["spellings"][name][0] for name in table["words"]["currencies"] if name in words}
    plain = {unit: symbol for symbol, units in sorted(symbols.items(), reverse=True) for unit in units}
    signs = {name: sign.upper() for name, sign in currencies.items()} | {"percent": "%"}
    return words | plain | signs | dict(table["labels"])


def _normalise(text: str) -> str:
    return " ".join(text.replace("-", " ").split())


def _words(table: Mapping[str, Any]) -> dict[str, Units]:
    """Words whose case does not matter."""
    words: dict[str, set[str]] = {}
    for name, spellings in table["spellings"].items():
        for spelling in spellings:
            words.setdefault(spelling.replace("-", " "), set()).add(name)
    for base, (_symbol, *longer) in table["metric"].items():
        for prefix, (_short, long) in table["prefixes"].items():
            for word in longer:
                words.setdefault(long + word.replace("-", " "), set()).add(prefix + base)
    return _freeze(words)


def _symbols(table: Mapping[str, Any]) -> dict[str, Units]:
    """Symbols whose case matters."""
    bare, symbols = set(table["words"]["bare_letters"]), dict[str, set[str]]()
    for base, (symbol, *_longer) in table["metric"].items():
        for prefix, (short, _long) in table["prefixes"].items():
            spelled = {short + symbol, ("u" if prefix == "micro" else short) + symbol}
            for one in spelled | ({short + "l"} if symbol == "L" else set()):
                if one not in bare:
                    symbols.setdefault(one, set()).add(prefix + base)
    return _freeze(symbols)


def _in_names(table: Mapping[str, Any], symbols: Mapping[str, Units], words: Mapping[str, Units]) -> dict[str, Units]:
    """Both as field names write them, in lower case."""
    named, chosen = dict(words), table["in_names"]
    unusual = {f"mega{unit}" for unit in chosen["milli"]} | {f"milli{unit}" for unit in chosen["mega"]}
    for symbol, units in symbols.items():
        if not units <= unusual:
            named[symbol.lower()] = named.get(symbol.lower(), NO_UNIT) | units
    return named


def _freeze(table: dict[str, set[str]]) -> dict[str, Units]:
    return {key: frozenset(value) for key, value in table.items()}
