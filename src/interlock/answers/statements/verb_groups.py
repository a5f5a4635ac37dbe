"""Verb groups: auxiliaries, negation and the verb they belong to, and what together they say of a deed."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from interlock.answers.statements.lexicon import Lexicon


class Stance(StrEnum):
    """What a clause says of a deed: a closed set."""

    DONE = "done"
    NOT_DONE = "not done"
    FAILED = "could not be done"
    COMING = "will be done"
    WAITING = "waits"
    REFUSED = "was refused"
    UNSURE = "is not known to be done"
    TRIED = "was tried"
    REQUESTED = "was asked for"
    PLANNED = "was only previewed"
    LOOKED = "was looked at"
    OPEN = "is open"
    """Offered, possible, wished, asked: nothing is said to be so."""


class Voice(StrEnum):
    """Whether the subject did it, or it was done to the subject."""

    ACTIVE = "active"
    PASSIVE = "passive"


class VerbGroup(NamedTuple):
    """A verb with what stands before it."""

    chain: tuple[str, ...]
    """Its auxiliaries, as the table names them."""
    negated: bool
    modes: tuple[str, ...]
    """What verbs before "to" say of it: keep, fail, try, open …"""
    at: int
    """The place of the verb; the end of the clause if it has none."""


def read_group(tokens: tuple[str, ...], at: int, words: Lexicon, *, negated: bool = False) -> VerbGroup:
    """The group that begins at a place: auxiliaries, adverbs and negations up to the first other word."""
    chain: list[str] = []
    modes: list[str] = []
    while at < len(tokens):
        word = tokens[at]
        if word in words.negations:
            negated ^= tokens[at + 1 : at + 2] not in (("only",), ("just",), ("merely",), ("simply",))
        elif (step := _catenative(tokens, at, words)) is not None:
            modes.append(step[0])
            chain += ["did"] if words.verbs.is_past(word) else []  # "managed to": its tense is the deed's
            at = step[1]
            continue
        elif word in words.auxiliaries and not _is_main_verb(tokens, at, chain, words):
            chain.append(words.auxiliaries[word])
        elif not words.is_adverb(word):
            break
        at += 1
    return VerbGroup(tuple(chain), negated, tuple(modes), at)


def _is_main_verb(tokens: tuple[str, ...], at: int, chain: list[str], words: Lexicon) -> bool:
    """Whether a word that may be an auxiliary is the verb itself: "I did it", "we have your order", "as we do"."""
    word, kind = tokens[at], words.auxiliaries[tokens[at]]
    if kind not in ("have", "had", "do", "did"):
        return False
    if chain and kind in ("do", "did"):
        return True
    after = next((t for t in tokens[at + 1 :] if not words.is_adverb(t) and t not in words.negations), "")
    if kind in ("have", "had") and after == "to":
        return False
    return not after or after in words.determiners or (word in ("did", "done") and after in words.pronouns)


def _catenative(tokens: tuple[str, ...], at: int, words: Lexicon) -> tuple[str, int] | None:
    """A verb that has another one behind its "to": what it says of that, and where that stands."""
    word = tokens[at]
    how = words.catenatives.get(word) or words.catenatives.get(words.verbs.stem(word))
    if how is None:
        return None
    how = "keep" if word == "had" else how  # what had to be done was done
    after = at + 1
    while after < len(tokens) and words.is_adverb(tokens[after]):
        after += 1
    if word.startswith("help") and words.verbs.stem("".join(tokens[after : after + 1])) in words.verbs.deed_stems:
        return how, after
    if after + 1 >= len(tokens) or tokens[after] != "to":
        return None
    verb = tokens[after + 1]
    return None if verb in words.determiners or not verb.isalpha() else (how, after + 1)  # "was set to 40"


def voice_of(group: VerbGroup, verb: str, words: Lexicon) -> Voice:
    """Passive where a form of "be" stands before a participle."""
    last = group.chain[-1] if group.chain else ""
    is_passive = last in ("be", "was", "been", "being", "get") and words.verbs.is_past(verb)
    return Voice.PASSIVE if is_passive else Voice.ACTIVE


def stance_of(group: VerbGroup, verb: str, words: Lexicon) -> Stance:
    """What auxiliaries, negation and form of the verb say of the deed."""
    found = _plain_stance(group, verb, words)
    for mode in group.modes:
        found = _MODES[mode](found, group.negated)
    return found


def _plain_stance(group: VerbGroup, verb: str, words: Lexicon) -> Stance:
    chain = group.chain
    modal = next((aux for aux in chain if aux in _MODALS), None)
    if modal is not None:
        return _modal_stance(modal, chain, group.negated)
    if not _is_complete(chain, verb, words) and not group.modes:
        progressive = bool(chain) and verb.endswith("ing")
        return Stance.NOT_DONE if group.negated and progressive else Stance.COMING if progressive else Stance.OPEN
    if group.modes and not (_PAST & {*chain}) and not words.verbs.is_past(verb) and "have" not in chain:
        return Stance.OPEN if "fail" not in group.modes else Stance.DONE
    return Stance.NOT_DONE if group.negated else Stance.DONE


_MODALS = frozenset({"will", "would", "can", "could", "may", "should"})
_PAST = frozenset({"was", "had", "did", "been", "having"})


def _is_complete(chain: tuple[str, ...], verb: str, words: Lexicon) -> bool:
    """Whether it is said to be so by now: perfect, past, or a passive that stands."""
    if "did" in chain:
        return True
    if not words.verbs.is_past(verb):
        return False
    if "do" in chain:
        return False
    return bool(chain) or not words.verbs.is_unchanged(verb) or words.verbs.stem(verb) in words.verbs.deed_stems


def _modal_stance(modal: str, chain: tuple[str, ...], negated: bool) -> Stance:
    done = "have" in chain
    if modal == "will":
        return Stance.OPEN if negated else Stance.DONE if done and "been" in chain else Stance.COMING
    if modal == "could" and negated:
        return Stance.FAILED
    if modal in ("may", "could") and done:
        return Stance.UNSURE
    if modal == "should" and done:
        return Stance.NOT_DONE if negated else Stance.COMING
    return Stance.OPEN


def _keep(found: Stance, _negated: bool) -> Stance:
    return Stance.FAILED if found is Stance.NOT_DONE else found


def _fail(_found: Stance, negated: bool) -> Stance:
    return Stance.DONE if negated else Stance.FAILED


_MODES: dict[str, Callable[[Stance, bool], Stance]] = {
    "keep": _keep,
    "fail": _fail,
    "never": lambda found, negated: Stance.DONE if negated else Stance.NOT_DONE,
    "try": lambda found, negated: Stance.NOT_DONE if negated else Stance.TRIED if found is Stance.DONE else Stance.OPEN,
    "open": lambda found, negated: Stance.OPEN,
    "permit": lambda found, negated: Stance.REFUSED if negated else Stance.OPEN,
    "will": lambda found, negated: Stance.NOT_DONE if negated else Stance.COMING,
}
