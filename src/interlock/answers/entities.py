"""What a question names of the things on file, so that a call about another thing does not answer it.

Names are looked up in the known values of tools: as they stand in the question, or written with capitals and understood
as the call itself would understand them. Nothing is bound by a word that anybody may use for anything.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import EnumMeta
from functools import lru_cache

from msgspec.structs import replace

from interlock.answers.requirements import NamedEntity, Need, Requirement
from interlock.embedding.wordpiece import vocabulary
from interlock.tools import Tool, names_of_values, normalize
from interlock.tools.name_index import NameIndex, kind_words
from interlock.values import Effect, Json, Value

_log = logging.getLogger("interlock")
_WORD = re.compile(r"[^\W_]+")
_ENDS = re.compile(r"[.?!:;\n]")
_IN_WHERE = re.compile(r"\bargs\.(\w{1,100})")
_LONGEST_NAME = 8
_MOST_WORDS = 2_000
_MOST_RUNS = 20
"""So many runs of capitalised words are held against the names on file."""
_MOST_FITS = 50
"""What is a part of the names of more things names none of them."""
_SHORT = 3
_NOT = frozenset({"not", "except", "without", "excluding", "nicht", "ohne", "sauf", "sin", "sem"})
_REACH = 3
"""So many words before a name are looked at for a "not"."""
_JOINING = frozenset({"and", "or", "nor", "und", "oder", "ni", "ou"})
_BUT = frozenset({"but", "sondern", "sino", "mais"})
_INSTEAD_OF, _FROM = r"instead\W+of|rather\W+than|away\W+from", r"from|out\W+of"
_ENOUGH_WORDS, _NEARLY_ALL = 4, 0.8


def pass_on(text: str) -> tuple[str, ...]:
    """The known values of a request that goes to another agent as it was said."""
    return (text,)


class _Token(Value, frozen=True):
    """One word of a question."""

    text: str
    word: str
    joined: bool
    """Nothing but space or a hyphen stands between it and the word before."""
    first: bool
    """It begins a sentence, where every word has a capital."""

    @property
    def capital(self) -> bool:
        return self.text[:1].isupper()

    @property
    def telling(self) -> bool:
        """Whether it is no word of the language: a code, an abbreviation, a name of its own."""
        return self.word not in vocabulary() or not self.word.isalpha() or (len(self.text) > 1 and self.text.isupper())


_Names = tuple[tuple[str, tuple[str, ...]], ...]
"""Values, and everything that each is called."""


class _Argument(Value, frozen=True):
    """One argument of one tool, and what its values are called."""

    tool: str
    name: str
    known: _Names
    exact: Mapping[str, tuple[str, ...]]
    """Values by their names as they are compared."""
    closed: bool
    """Its values are choices, which have ordinary words for names, and no things on file."""


class Entities:
    """The things on file that a question names, for each tool that knows them."""

    def __init__(self, question: str, tools: Iterable[Tool]) -> None:
        self._tokens = _split(question)
        self._question = question
        self._titled = _is_titled(self._tokens)
        self._arguments = [argument for tool in tools for argument in _arguments(tool, question)]
        self._kinds = frozenset[str]().union(*(kind_words(argument.name) for argument in self._arguments))
        self._every = frozenset[str]().union(*(argument.exact for argument in self._arguments))
        self._indexes: dict[tuple[str, _Names], NameIndex] = {}
        """Made for names that are looked up, and once where several tools have the same."""
        self._said = tuple(dict.fromkeys(self._names())) if self._arguments else ()

    def known_to(self, tool: str) -> tuple[NamedEntity, ...]:
        """Those that a tool knows by one of its arguments."""
        return self._bind([argument for argument in self._arguments if argument.tool == tool], elsewhere=False)

    def known_to_change(self, tool: str) -> tuple[NamedEntity, ...]:
        """Those that a change is about: "from Duo to Basic" is about the latter, if both are for one argument."""
        found = [one for one in self.known_to(tool) if not self._comes_after(_INSTEAD_OF, one.name)]
        left = [one for one in found if self._comes_after(_FROM, one.name)]
        reached = {name for one in found if one not in left for name, _ in one.values}
        return tuple(one for one in found if one not in left or reached.isdisjoint(name for name, _ in one.values))

    def _comes_after(self, words: str, name: str) -> bool:
        named = r"\W+".join(map(re.escape, name.split()))
        return re.search(rf"\b(?:{words})\W+(?:the\W+)?{named}\b", self._question, re.I) is not None

    def known_elsewhere(self, tools: Sequence[str]) -> tuple[NamedEntity, ...]:
        """Those that only others than these tools know."""
        here = {entity.name for tool in tools for entity in self.known_to(tool)}
        others = [argument for argument in self._arguments if argument.tool not in tools]
        return tuple(entity for entity in self._bind(others, elsewhere=True) if entity.name not in here)

    def _bind(self, arguments: Sequence[_Argument], *, elsewhere: bool) -> tuple[NamedEntity, ...]:
        found: dict[tuple[tuple[str, str], ...], NamedEntity] = {}
        for said in self._said:
            pairs = tuple(dict.fromkeys((one.name, value) for one in arguments for value in self._fits(one, said)))
            if pairs:  # the same thing by two names is one
                found.setdefault(pairs, NamedEntity(said, pairs, elsewhere))
        return tuple(found.values())

    def _fits(self, argument: _Argument, said: str) -> tuple[str, ...]:
        """The values that a call of the tool would take a name for; none if it is a part of too many names."""
        found = argument.exact.get(normalize(said), ())
        if found or argument.closed:
            return found
        key = (argument.name, argument.known)
        if key not in self._indexes:
            self._indexes[key] = NameIndex(dict(argument.known), kind_words(argument.name))
        found = self._indexes[key].match(said)
        return found if len(found) <= _MOST_FITS else ()

    def _names(self) -> Iterator[str]:
        """The names in a question, as they stand there."""
        taken, named = -1, set[int]()
        for start in range(len(self._tokens)):
            if start <= taken:
                continue
            for end in range(min(len(self._tokens), start + _LONGEST_NAME), start, -1):
                if self._is_name(start, end, taken):
                    yield self._text(start, end)
                    taken = end - 1
                    named.update(range(start, end))
                    break
        yield from self._capitalised_names(named)

    def _is_name(self, start: int, end: int, taken: int) -> bool:
        """Whether these words are the name of something, all of it, and meant as such."""
        words = self._tokens[start:end]
        name = " ".join(token.word for token in words)
        if name not in self._every:
            return False
        having = [one for one in self._arguments if name in one.exact]
        if self._is_denied(start):
            return False
        if words[0].capital and not self._titled and self._is_part_of_longer(start, end, taken):
            return False
        if len(words) > 1:
            return any(not one.closed for one in having) or any(token.telling for token in words)
        return self._stands_for_itself(start, having)

    def _is_denied(self, start: int) -> bool:
        """Whether what begins there comes after a "not", and does not stand against it: "not Rex, Bella"."""
        near = range(max(0, start - _REACH), start)
        place = next((n for n in reversed(near) if self._tokens[n].word in _NOT), None)
        if place is None:
            return False
        between = self._tokens[place + 2 : start]  # at least one word is denied
        instead = place + 1 < start and (not self._tokens[start].joined or any(one.word in _BUT for one in between))
        return not instead or any(one.word in _JOINING for one in self._clause(place))

    def _clause(self, start: int) -> Iterator[_Token]:
        """The words from a place on, up to the end of the sentence."""
        for n, token in enumerate(self._tokens[start:]):
            if n and token.first:
                return
            yield token

    def _stands_for_itself(self, place: int, having: Sequence[_Argument]) -> bool:
        """Whether one word is a name, and not a word of the language or a mere figure."""
        token = self._tokens[place]
        if token.word.isdigit():
            return place > 0 and self._tokens[place - 1].word in self._kinds
        if len(token.word) < _SHORT:
            spelled = {name for one in having for _, names in one.known for name in names}
            return token.text.isupper() and token.text in spelled and not (token.first and len(token.text) == 1)
        return token.telling or (token.capital and not token.first and not self._titled)

    def _is_part_of_longer(self, start: int, end: int, taken: int) -> bool:
        """Whether a name goes on beyond these words: "Old Mill Road" is not about the Mill Road."""
        before = self._tokens[start - 1] if start and self._tokens[start].joined and start - 1 != taken else None
        after = self._tokens[end] if end < len(self._tokens) and self._tokens[end].joined else None
        beside = [token for token in (before, after) if token is not None and not token.first]
        return any(one.capital and one.text[1:].islower() and one.word not in self._kinds for one in beside)

    def _capitalised_names(self, named: set[int]) -> Iterator[str]:
        """Runs of capitalised words that a call would take for something, but for those that are named already."""
        start, count = 0, 0
        while start < len(self._tokens) and count < _MOST_RUNS:
            end = start + 1
            if self._tokens[start].capital:
                while end < len(self._tokens) and self._tokens[end].joined and self._tokens[end].capital:
                    end += 1
                count += 1
                # A sentence begins with a capital: what it begins with may be no part of the name.
                begins = (start, start + 1) if self._tokens[start].first else (start,)
                found = [self._text(begin, end) for begin in begins if self._is_meant(begin, end, named)]
                yield from found[:1]
            start = end

    def _is_meant(self, start: int, end: int, named: set[int]) -> bool:
        """Whether a run of capitalised words is a name of something on file."""
        words = self._tokens[start:end]
        if (
            self._is_denied(start)
            or not named.isdisjoint(range(start, end))
            or all(len(token.word) < _SHORT for token in words)
        ):
            return False
        found = [values for one in self._arguments if (values := self._fits(one, self._text(start, end)))]
        if len(words) > 1 or words[0].telling:
            return bool(found)
        # An ordinary word is the beginning of a name, if of several: "the Lake" is none of the lakes.
        alone = all(len(values) == 1 for values in found) or self._heads(words[0].word)
        return bool(found) and not words[0].first and alone

    def _heads(self, word: str) -> bool:
        """Whether the names on file that have a word all begin with it."""
        having = [name for one in self._arguments for name in one.exact if word in name.split()]
        return all(name.split()[0] == word for name in having)

    def _text(self, start: int, end: int) -> str:
        return " ".join(token.text for token in self._tokens[start:end])


def delegates(tool: Tool) -> bool:
    """Whether a tool hands a request to another agent."""
    return any(known is pass_on for known in tool.known_values.values())


def bind(requirement: Requirement, entities: Entities, tools: Mapping[str, Tool], own: Sequence[str]) -> Requirement:
    """A requirement whose calls have to be about what the question names, as far as their tools know it.

    `own`: the tools of the agent that is asked. What only others know has to be looked up by whoever it delegates to.
    """
    if not isinstance(requirement, Need):
        return replace(requirement, parts=tuple(bind(part, entities, tools, own) for part in requirement.parts))
    tool = tools.get(requirement.tool)
    if tool is None or requirement.about:
        return requirement
    about = entities.known_to(tool.name) if tool.effect is Effect.READ else entities.known_to_change(tool.name)
    if delegates(tool):
        about += entities.known_elsewhere(own)
    # Whoever wrote a condition on an argument has said what it has to be.
    said = frozenset(_IN_WHERE.findall(requirement.where))
    kept = [replace(one, values=tuple(pair for pair in one.values if pair[0] not in said)) for one in about]
    return replace(requirement, about=tuple(entity for entity in kept if entity.values))


def _arguments(tool: Tool, question: str) -> Iterator[_Argument]:
    for name, known_values in tool.known_values.items():
        if known_values is pass_on:
            continue
        finds = callable(known_values) and not isinstance(known_values, EnumMeta)
        try:
            known = names_of_values(known_values, question)
        except Exception:  # noqa: BLE001 - a function of an application's, which may fail in any way
            _log.warning("%s: the known values of %s could not be found", tool.name, name, exc_info=True)
            continue
        if finds and question in known:
            continue  # it takes whatever is said
        items: _Names = tuple((value, tuple(names)) for value, names in known.items())
        closed = isinstance(known_values, EnumMeta) or _is_closed(tool.input.schema, name)
        yield _Argument(tool.name, name, items, _by_name(items), closed)


@lru_cache(maxsize=64)
def _by_name(items: _Names) -> dict[str, tuple[str, ...]]:
    """Values by their names; kept by the names themselves, so that what changes is read anew."""
    found: dict[str, list[str]] = {}
    for value, names in items:
        for name in dict.fromkeys(normalize(name) for name in names):
            if name:
                found.setdefault(name, []).append(value)
    return {name: tuple(values) for name, values in found.items()}


def _is_closed(schema: Mapping[str, Json], name: str) -> bool:
    """Whether an argument, or each item of a list of them, is one of an enumeration."""
    defined = schema.get("$defs", {})
    waiting, seen = [schema.get("properties", {}).get(name)], 0
    while waiting and seen < 100:  # a definition may refer to itself
        kind, seen = waiting.pop(), seen + 1
        if isinstance(kind, dict):
            if "enum" in kind:
                return True
            waiting += [
                *kind.get("anyOf", ()),
                kind.get("items"),
                defined.get(str(kind.get("$ref", "")).rpartition("/")[2]),
            ]
    return False


def _split(question: str) -> tuple[_Token, ...]:
    tokens: list[_Token] = []
    end = 0
    for found in _WORD.finditer(question):
        if len(tokens) >= _MOST_WORDS:
            break
        between = question[end : found.start()]
        first = not tokens or _ENDS.search(between) is not None
        tokens.append(_Token(found[0], normalize(found[0]), not between.strip(" \t-'’"), first))
        end = found.end()
    return tuple(tokens)


def _is_titled(tokens: Sequence[_Token]) -> bool:
    """Whether nearly every word is capitalised: then capitals tell nothing about names."""
    later = [token for token in tokens if not token.first]
    return len(later) >= _ENOUGH_WORDS and sum(token.capital for token in later) >= _NEARLY_ALL * len(later)
