"""Known values: what somebody calls a thing becomes its id, a question where several fit, or nothing on file.

A tool says which values an argument can have (`known_values={"trail_id": TRAILS}`), and one resolver does the rest, the
same for every model: exact ids and names first, then whole words, then small misspellings. Digits are never guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import EnumMeta
from typing import Any

import msgspec

from interlock.errors import ContractError
from interlock.values import Json, Rewrite

Known = Mapping[str, str | Sequence[str]]
"""Values, and the name or names each goes by."""
KnownValues = Known | Iterable[str] | EnumMeta | Callable[[str], Known | Iterable[str]]
"""Known values, or a function that finds those worth considering for a text."""

RULE = "known_values"
_SHOWN = 4
_DIGITS = re.compile(r"\d+")
# "All but Waldo" must not become Waldo.
_NOT = re.compile(r"\b(?:not|no|except|without|but|other than|none|never|all|any|anything|everything)\b", re.I)
_MINUS = re.compile(r"(?:^|\s)[-−]\d")
_TELLING_MARKS = frozenset("<>#+=!*~^&|%")


class Unclear(msgspec.Struct, frozen=True):
    """An argument that names no value, or more than one."""

    field: str
    said: str
    fits: tuple[str, ...]
    """The values that fit, if there are several."""
    names: tuple[str, ...]
    """What they are called; of the nearest, if none fits."""

    @property
    def several(self) -> bool:
        """Whether somebody has to choose."""
        return bool(self.fits)

    @property
    def message(self) -> str:
        """A question, or what is nearest."""
        if self.several:
            return f"which {self.field} is meant by {self.said!r}: {_join_choices(self.names)}?"
        nearest = f"; the nearest are {', '.join(self.names)}" if self.names else ""
        return f"there is no {self.field} {self.said!r} on file{nearest}"


def check_known_values(where: str, given: Any) -> dict[str, KnownValues]:
    """The option of a tool; a sentence for what cannot say which values an argument has."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ContractError(f"{where} is a mapping from arguments to the values they can have, not {given!r}")
    for field, known in given.items():
        if isinstance(known, str) or not (callable(known) or isinstance(known, Iterable)):
            raise ContractError(f"{where} of {field!r} are values, values with names, or a function that finds them")
    return dict(given)


def names_of_values(known_values: KnownValues, text: str) -> dict[str, tuple[str, ...]]:
    """Each value with everything it is called, itself included."""
    if isinstance(known_values, EnumMeta):
        members: Mapping[str, Any] = known_values.__members__
        return {str(member.value): (str(member.value),) for member in members.values()}
    found = known_values(text) if callable(known_values) else known_values
    if not isinstance(found, Mapping):
        return {value: (value,) for value in found}
    return {value: (value, *((names,) if isinstance(names, str) else tuple(names))) for value, names in found.items()}


def resolve(known_values: Mapping[str, KnownValues], arguments: Json) -> tuple[Json, tuple[Rewrite, ...]] | Unclear:
    """Arguments with every known value in place of what was said for it; or the first that is unclear."""
    if not isinstance(arguments, dict):
        return arguments, ()
    changed, rewrites = dict(arguments), []
    for field, known in known_values.items():
        said = arguments.get(field)
        several = isinstance(said, list)
        if not several and not isinstance(said, str):
            continue
        meant = [_resolve_one(field, item, known) for item in (said if isinstance(said, list) else [said])]
        unclear = next((item for item in meant if isinstance(item, Unclear)), None)
        if unclear is not None:
            return unclear
        changed[field] = meant if several else meant[0]
        if changed[field] != said:
            rewrites.append(Rewrite(field=field, before=said, after=changed[field], rule=RULE))
    return changed, tuple(rewrites)


def _resolve_one(field: str, said: Json, known_values: KnownValues) -> Json | Unclear:
    if not isinstance(said, str):
        return said
    known = names_of_values(known_values, said)
    # Before names are compared: an id is itself, also where another value goes by that name.
    if said in known:
        return said
    fits = match_values(said, known)
    if len(fits) == 1:
        return fits[0]
    shown = fits or nearest_values(said, known)
    names = tuple(_show_value(value, known[value]) for value in shown[:_SHOWN])
    return Unclear(field, said, fits, names)


def match_values(said: str, known: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The values that a text can mean: one, several, or none."""
    wanted = normalize(said)
    if not wanted:
        return ()
    marks = _find_signs(said)
    exact = tuple(
        v for v, names in known.items() if any(wanted == normalize(n) and _find_signs(n) == marks for n in names)
    )
    # Beyond exact names only plain words are guessed at: "not Waldo" and C# are near a name and mean another thing.
    if exact or _NOT.search(said) or marks:
        return exact
    digits = set(_DIGITS.findall(wanted))  # other digits are another thing, however alike the words are
    spelled = {
        value: [bare for name in names if digits <= set(_DIGITS.findall(bare := normalize(name)))]
        for value, names in known.items()
    }
    words = set(wanted.split())
    inside = tuple(value for value, names in spelled.items() if any(_is_within(words, set(n.split())) for n in names))
    return inside or _find_alike(wanted, spelled)


def _find_signs(text: str) -> frozenset[str]:
    """Marks that make it another thing: C and C#, 5 and -5, x < 5 and x > 5."""
    found = set(text) & _TELLING_MARKS
    return frozenset(found | ({"-"} if _MINUS.search(text) else set()))


def _is_within(said: set[str], name: set[str]) -> bool:
    """Whether every word that was said belongs to the name, or the whole name was said among other words."""
    telling = {word for word in said if len(word) > 2}
    return bool(telling) and (said <= name or (len(name) > 1 and name <= said and any(len(w) > 3 for w in name)))


def _find_alike(wanted: str, spelled: Mapping[str, list[str]]) -> tuple[str, ...]:
    """Small misspellings: each word is one of the name's but for a letter or two; those with the fewest."""
    off = {
        value: min((found for name in names if (found := _count_misspellings(wanted, name)) is not None), default=None)
        for value, names in spelled.items()
    }
    near = {value: found for value, found in off.items() if found is not None}
    return tuple(value for value in near if near[value] == min(near.values()))


def _count_misspellings(said: str, name: str) -> int | None:
    """How many letters are wrong, if every word that was said stands for one of the name's; None if one does not."""
    from rapidfuzz.distance import OSA

    if said.replace(" ", "") == name.replace(" ", ""):
        return 0
    total = 0
    for word in said.split():
        most = 0 if len(word) < 4 else 1 if len(word) < 9 else 2  # short words are one letter from too many others
        best = min((OSA.distance(word, other, score_cutoff=most) for other in name.split()), default=most + 1)
        if best > most:
            return None
        total += best
    return total


def nearest_values(said: str, known: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The values whose names look most like a text, best first."""
    from rapidfuzz import fuzz

    wanted = normalize(said)
    scored = {
        value: max(fuzz.token_set_ratio(wanted, normalize(name)) for name in names) for value, names in known.items()
    }
    return tuple(sorted(scored, key=lambda value: -scored[value])[:_SHOWN])


def normalize(text: str) -> str:
    """Lower case, no accents, words with single spaces."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return " ".join(re.sub(r"[\W_]+", " ", bare).split())


def _show_value(value: str, names: Sequence[str]) -> str:
    name = next((name for name in names if name != value), "")
    return f"{name} ({value})" if name else value


def _join_choices(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
