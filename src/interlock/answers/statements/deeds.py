"""`Deed`: one thing that a text says of something done, by whom, and whether it was."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from interlock.answers.statements.lexicon import Lexicon
from interlock.answers.statements.verb_groups import Stance
from interlock.answers.statements.wording import Sentence
from interlock.values import Value


class Doer(StrEnum):
    """Who is said to have done it."""

    SPEAKER = "speaker"
    """I: whoever answers."""
    HOUSE = "house"
    """We, our team, the system: those for whom he answers."""
    NOBODY = "nobody"
    """It was done, and nobody is named."""
    USER = "user"
    OTHER = "other"


class Form(StrEnum):
    """By what a clause says it."""

    ACTIVE = "active"
    PASSIVE = "passive"
    BARE = "bare"
    """A participle without an auxiliary: "Refund issued"."""
    LABEL = "label"
    """The same before a colon, as in a list of values."""
    PHRASE = "phrase"
    """Without a verb for the deed: "you are all set"."""
    STATE = "state"
    """By how a thing is now: "the credit is on your bill now"."""
    PROMISE = "promise"
    """By what will come of it: "you will receive a confirmation"."""


class Deed(NamedTuple):
    """One thing that a text says of something done."""

    verb: str
    """The stem of its verb; empty where a phrase says it without one."""
    word: str
    doer: Doer
    stance: Stance
    clause: tuple[str, ...]
    sentence: Sentence
    subject: tuple[str, ...] = ()
    """The words before the verb group, where somebody or something else than the speaker is its subject."""
    form: Form = Form.ACTIVE
    after: tuple[str, ...] = ()
    """The words behind the verb."""

    @property
    def governing_words(self) -> tuple[str, ...]:
        """The words of its sentence, without what a new clause leaves behind: "she asks for one, and it was sent"."""
        said, clause = self.sentence.words, self.clause
        start = next((at for at in range(len(said)) if said[at : at + len(clause)] == clause), 0)
        return said[start:] if said[max(0, start - 2) : start] == (",", "and") else said

    @property
    def is_taken_away(self) -> bool:
        """ "£32 has been taken from the account": more than that something was done."""
        return self.word == "taken" and "been" in self.clause and bool({*self.after} & {"from", "off"})


def predicate_of(deed: Deed, words: Lexicon) -> tuple[str, ...]:
    """What is said of a thing, up to the next preposition: for how long it is on a list says nothing of the list."""
    said = deed.clause[len(deed.subject) :]
    plain = words.plain | words.determiners | words.prepositions | words.auxiliaries.keys()
    first = next((at for at, word in enumerate(said) if word not in plain), len(said))
    end = next((at for at in range(first, len(said)) if said[at] in words.prepositions), len(said))
    return said[:end]


class EffectStatement(Value, frozen=True):
    """One thing that an answer says of a deed, and whether the records agree."""

    text: str
    """The sentence."""
    stance: Stance
    agrees: bool
    why: str = ""
    """What the records say instead."""
