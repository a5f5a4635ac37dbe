"""What the verb of a clause is: a deed, a look at data, anything at all, or nothing that a record could tell."""

from __future__ import annotations

from enum import StrEnum

from interlock.answers.statements.deeds import Deed, Doer
from interlock.answers.statements.lexicon import Lexicon


class Kind(StrEnum):
    """What a verb is, where it is said of the one who answers."""

    DEED = "deed"
    LOOK = "look"
    ANYTHING = "anything"
    """ "I did it": whatever there was to do."""
    NO_DEED = "no deed"


_KEPT_IN = frozenset({"file", "account", "profile", "record", "records", "system", "notes", "calendar"})
_NEAR = 6
"""So many words may stand between a verb and its particle, with that."""
_OPENING = frozenset({"for", "on", "at", "to", "and", "from"})
_PEOPLE = frozenset({"you", "that"})
_ASKING = frozenset({"you", "your", "that", "this", "it", "both", "all", "above", "below"})
_ASKED = frozenset({"question", "part", "rest"})
""" "I have answered your question", and not "answered Mr Dressler"."""


def kind_of(deed: Deed, words: Lexicon) -> Kind:
    """What the verb of a deed is; of what is said in the passive, a deed."""
    if deed.doer not in (Doer.SPEAKER, Doer.HOUSE):
        return Kind.DEED
    if deed.verb in words.looks:
        # "I checked with your bank" says that somebody was spoken to.
        return Kind.DEED if deed.after[:1] == ("with",) or _is_checked_in(deed, words) else Kind.LOOK
    if deed.verb in words.ambiguous:
        return _ambiguous_kind(deed, words)
    return Kind.NO_DEED if deed.verb in words.benign else Kind.DEED


def _is_checked_in(deed: Deed, words: Lexicon) -> bool:
    """ "I checked Ana in", "checked them out today": an "in" with nothing behind it that something could be in."""
    if not deed.word.startswith("check"):
        return False
    for at, word in enumerate(deed.after[:_NEAR]):
        behind = deed.after[at + 1 : at + 2]
        if word in ("in", "out") and (not behind or words.is_adverb(behind[0]) or behind[0] in _OPENING):
            return True
    return False


def _ambiguous_kind(deed: Deed, words: Lexicon) -> Kind:
    after = deed.after
    stems = {words.verbs.stem(word) for word in after[:6]}
    if deed.word in ("did", "done", "do") and (not after or after[0] in words.pronouns):
        return Kind.ANYTHING
    if deed.word in ("told", "tell", "let", "ask", "asked") and (not after or after[0] in _PEOPLE):
        return Kind.NO_DEED
    if deed.word.startswith("answer") and (not after or after[0] in _ASKING or stems & _ASKED):
        return Kind.NO_DEED
    if deed.word.startswith("not") and not {*after} & _KEPT_IN:
        return Kind.NO_DEED
    if deed.word.startswith("confirm"):
        clause_follows = not after or after[0] == "that" or bool({*after} & words.auxiliaries.keys())
        return Kind.LOOK if clause_follows else Kind.DEED
    if deed.word == "put" and not {*after} & {"together", "below", "above"}:
        return Kind.DEED
    other = {*after} & _KEPT_IN or stems & (words.verbs.deed_stems - words.soft - words.info)
    return Kind.NO_DEED if stems & words.info and not other else Kind.DEED


def resolve_light(deed: Deed, words: Lexicon) -> Deed:
    """The deed behind a verb that says little: "the refund was issued" is a refund, "I made the booking" a booking."""
    if deed.verb not in words.light:
        return deed
    verbs = words.verbs
    nouns = [*deed.after, *reversed(deed.subject)]
    deeds = [verbs.stem(word) for word in nouns if not verbs.is_past(word)]
    found = next((stem for stem in deeds if stem in verbs.deed_stems - words.soft - words.light), None)
    return deed if found is None or found == deed.verb else deed._replace(verb=found)
