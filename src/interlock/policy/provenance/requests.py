"""Whether the user has asked for what a tool does: the words of the question against those of the tool."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

from interlock.policy.provenance.normal_forms import plain
from interlock.policy.provenance.request_tables import read_requests
from interlock.policy.provenance.wishes import is_passive, wish_in
from interlock.tools.effect_words import effect_words, name_parts
from interlock.tools.verbs import verb_table

_SHOWN = 6
_MESSAGE, _ONLY_MONEY = "message", frozenset(("money",))
_CLAUSES = re.compile(r"[.,;:?!()\n](?!\w)|\s[-–—]\s|\band\b|\bthen\b")
_LEAD_IN = re.compile(
    r"^\s*(?:(?:hi|hey|hello|ok|okay|please|pls|plz|kindly|just|also|now|so|can|could|would|will|you|u|i|we|ll|d|want|need"
    r"|like|to|to have|go ahead|let's|lets)\b[' ]*)+"
)
_FULL_STOP = re.compile(r"[.?!:](?=\s|$)")
_FILE_NAME = re.compile(r"\b[\w-]{1,80}\.[a-z]{2,5}\b")
_CLAUSE = re.compile(r"[.,;:?!()]|\s[-–—]\s")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_WORD_OR_NUMBER = re.compile(rf"{_WORD.pattern}|\d[\d.,]*")


def is_asked_for(name: str, description: str, says: Iterable[str], question: str, *, named: bool = False) -> bool:
    """Whether a question asks for what a tool of this name does, or hands over to a text that may say so.

    `named`: it names the thing that this is done to, or where that goes.
    """
    return _is_asked_for(name, description, tuple(says), question, named)


@lru_cache(maxsize=512)
def _is_asked_for(name: str, description: str, said: tuple[str, ...], question: str, named: bool) -> bool:
    if _asks_to_follow(question) or _is_said_by(said, question):
        return True
    parts, words = _parts_of(name), _words_in(question)
    done_to, asked = _kinds(parts), _kinds(words)
    asked_for = _words_for(name, description, said) & _stems(question)
    if _has_phrase(parts, question) or (done_to & asked and _is_general(question)):
        return True
    if parts and parts[0] in read_requests()["does"]["verbs"]:
        asked_for |= (
            _stems(question).intersection(*(_verbs_of_kind(kind) for kind in done_to)) if done_to else frozenset()
        )
    if not asked_for:
        return False
    if named or any(asked_for & _verbs_of_kind(kind) for kind in done_to):
        return True
    if not asked_for & _stems(question, strict=True) and not done_to & asked:
        return False
    # A message may be about anything; only who speaks of money alone means to send that.
    if _MESSAGE in done_to and asked and not asked <= _ONLY_MONEY:
        return True
    if done_to and asked:
        return bool(done_to & asked)
    # "Set", "add" and "create" may be of anything: what is meant is the thing that the tool is for.
    return (
        parts[0] not in read_requests()["wide"]["verbs"]
        or not _things_of(parts)
        or bool(_things_of(parts) & _all_stems(words))
    )


@lru_cache(maxsize=256)
def asks_for_more(question: str) -> bool:
    """Whether a question wishes for something in words that are in no table: not only to be told something."""
    known = _known_beginnings()
    for clause in _CLAUSES.split(wish_in(question)):
        words = _WORD.findall(_LEAD_IN.sub("", clause))
        if words and words[0] not in known and not _common(words[0]) and len(words) > 1:
            return True
    return False


@cache
def _known_beginnings() -> frozenset[str]:
    tables, table = read_requests(), verb_table()
    return frozenset((*(word for words in tables["asks"].values() for word in words), *tables["asks"], *table.deeds,
                      *tables["reading"]["words"]))  # fmt: skip


def _common(word: str) -> bool:
    return word in read_requests()["common"]["words"]


def words_for(name: str) -> list[str]:
    """Some of the words by which people ask for what a tool of this name does."""
    asks = read_requests()["asks"]
    verbs = [part for part in _parts_of(name) if part in asks or part in verb_table().deeds][:1]
    return list(dict.fromkeys([*verbs, *(word for verb in verbs for word in asks.get(verb, ()))]))[:_SHOWN]


@lru_cache(maxsize=1024)
def is_left_to(name: str, description: str, question: str, asked: str) -> bool:
    """Whether a wish for what a tool does names in one breath the source that was asked: "order what is on
    shopping.txt"."""
    words = [word for word in _WORD.findall(plain(asked)) if len(word) > 2 and not _common(word)]
    wanted = _words_for(name, description, ())
    clauses = _CLAUSES.split(_FULL_STOP.sub(",", wish_in(question)))
    return any(any(word in clause for word in words) and wanted & _stems(clause) for clause in clauses)


@lru_cache(maxsize=256)
def names_by_relation(question: str) -> bool:
    """Whether a user says which is meant by what it is to another: named rows are not all then."""
    return not set(_words_in(question)).isdisjoint(read_requests()["relations"]["words"])


@lru_cache(maxsize=256)
def is_worked_out(question: str) -> bool:
    """Whether a user has something reckoned."""
    return "%" in question or not set(_words_in(question)).isdisjoint(read_requests()["reckoned"]["words"])


@lru_cache(maxsize=1024)
def is_written_down(name: str, argument: str) -> bool:
    """Whether a tool writes down what an argument says (`update_profile(street)`), and does not choose by it."""
    parts, words = _parts_of(name), frozenset(name_parts(argument))
    table = read_requests()["rewrites"]
    if not parts or not words.isdisjoint(table["choosing"]):
        return False
    is_detail = parts[0] in table["creates"] and not words.isdisjoint(table["details"])
    return is_detail or (parts[0] in table["verbs"] and words.isdisjoint(parts))


@lru_cache(maxsize=1024)
def _is_said_by(says: tuple[str, ...], question: str) -> bool:
    """Whether the words that a tool declares of itself stand in a question: one by its stem, several as they are."""
    text = f" {' '.join(_words_in(question))} "
    stems = {verb_table().stem(word.lower()) for word in says if " " not in word}
    return bool(stems & _stems(question)) or any(f" {plain(word)} " in text for word in says if " " in word)


@lru_cache(maxsize=1024)
def _has_phrase(parts: tuple[str, ...], question: str) -> bool:
    """Whether a question asks by a phrase for what one of the verbs in a name does."""
    text, phrases = wish_in(question), read_requests()["phrases"]
    return any(phrase in text for part in parts for phrase in phrases.get(part, ()))


@lru_cache(maxsize=256)
def _is_general(question: str) -> bool:
    """Whether a question asks for whatever is to be done with a thing."""
    text = wish_in(question)
    return any(phrase in text for phrase in read_requests()["general"]["phrases"])


@cache
def _verbs_of_kind(kind: str) -> frozenset[str]:
    return frozenset(map(verb_table().stem, read_requests()["implied"].get(kind, ())))


@lru_cache(maxsize=1024)
def _parts_of(name: str) -> tuple[str, ...]:
    return tuple(name_parts(name))


@lru_cache(maxsize=256)
def _words_in(question: str) -> tuple[str, ...]:
    # The name of a file names no thing of a kind: a summary of note.txt is no note.
    return tuple(_WORD.findall(_FILE_NAME.sub(" ", plain(question))))


@lru_cache(maxsize=256)
def hands_over(question: str) -> bool:
    """Whether a user leaves it to a text what is to be done."""
    text, tables = plain(question), read_requests()
    return any(phrase in text for name in ("hands_over", "left_to_a_text") for phrase in tables[name]["phrases"])


@lru_cache(maxsize=256)
def _asks_to_follow(question: str) -> bool:
    """Whether a user points at a text and says that what stands there is to be done: not that others do it."""
    text = plain(question)
    return any(
        re.search(rf"(?:^|[.,;:!?]\s*|\b(?:please|pls|and|then|just|to|you|do|s)\s+){re.escape(phrase)}", text)
        for phrase in read_requests()["hands_over"]["phrases"]
        if phrase in text
    )


@lru_cache(maxsize=1024)
def _words_for(name: str, description: str, says: tuple[str, ...]) -> frozenset[str]:
    table, asks = verb_table(), read_requests()["asks"]
    verbs = [part for part in name_parts(name) if part in asks or part in table.deeds]
    words = {*says, *effect_words(name, description)}
    for verb in verbs[:1]:
        is_money = verb == "send" and "money" in _kinds(tuple(name_parts(name)))
        words |= {verb, *asks.get("pay" if is_money else verb, ())}
    for noun in name_parts(name):
        words.update(read_requests()["nouns"].get(noun, ()))
    found = {table.stem(word.lower()) for word in words if " " not in word}
    # What is alike in an answer is more than people say for it; that is for verbs of which the table knows nothing.
    return frozenset(found).union(*(table.alike(table.stem(verb)) for verb in verbs[:1] if verb not in asks))


@lru_cache(maxsize=1024)
def _kinds(words: tuple[str, ...]) -> frozenset[str]:
    """The kinds of things that words name."""
    table = verb_table()
    stems = {table.stem(word) for word in words}
    return frozenset(kind for kind, names in _things().items() if names & stems)


@cache
def _things() -> dict[str, frozenset[str]]:
    table = verb_table()
    return {kind: frozenset(map(table.stem, names)) for kind, names in read_requests()["things"].items()}


def _things_of(parts: tuple[str, ...]) -> frozenset[str]:
    """The things that a tool is for, by its name."""
    return _all_stems(parts[1:])


@lru_cache(maxsize=1024)
def _all_stems(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(verb_table().stem, words))


@lru_cache(maxsize=256)
def _stems(question: str, *, strict: bool = False) -> frozenset[str]:
    """What may be wished for: "who was invited" asks for no invitation."""
    table, passive = verb_table(), is_passive(question)
    deeds = _deeds(wish_in(question), strict=strict)
    words = [word for word in deeds if passive or not table.is_past(word) or table.is_unchanged(word)]
    return frozenset(map(table.stem, words))


def _deeds(text: str, *, strict: bool) -> Iterator[str]:
    """The words of a text, without those that stand there for a thing: "my mail" is none that is to be sent. With
    `strict`, without verbs that ask for nothing by themselves, too."""
    either, light = read_requests()["either"], read_requests()["light"]
    for clause in _CLAUSE.split(text):
        words = _WORD_OR_NUMBER.findall(clause)
        for at, word in enumerate(words):
            begins = at == 0 or words[at - 1] in either["before"]
            following = words[at + 1] if at + 1 < len(words) else ""
            goes_on = following in either["after"]
            if strict and word in light["verbs"] and following in light["before"]:
                continue
            if word not in either["words"] or (begins and not goes_on):
                yield word
