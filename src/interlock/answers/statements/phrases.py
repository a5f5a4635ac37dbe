"""Phrases that say how a deed stands without a verb for it: "all set", "waiting for approval", "went through"."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.answers.statements.clauses import Clause
from interlock.answers.statements.deeds import Deed, Doer, Form
from interlock.answers.statements.lexicon import Lexicon
from interlock.answers.statements.verb_groups import Stance
from interlock.answers.statements.wording import Sentence


class PhraseReader:
    """Finds the phrase of one clause."""

    def __init__(self, clause: Clause, sentence: Sentence, words: Lexicon, start: int) -> None:
        self._clause, self._sentence, self._words, self._start = clause, sentence, words, start
        self._tokens = clause.words

    def find(self) -> Deed | None:
        """What the clause says by a phrase."""
        tokens, words = self._tokens, self._words
        doer = Doer.SPEAKER if "i" in tokens else Doer.HOUSE if "we" in tokens else Doer.NOBODY
        for name, stance in _PHRASES:
            place = words.phrases[name].find(tokens)
            if place is None:
                continue
            before = tokens[: place[0]]
            if is_quantity(tokens, place[1] - 1, words):
                continue
            if place[1] - place[0] == 1 and stance is not Stance.PLANNED and not self._is_predicate(place[0]):
                continue
            unsaid = bool({*before} & (words.negations | words.none)) or self._clause.lead_word == "nor"
            negated = unsaid and stance is Stance.DONE
            said = Stance.NOT_DONE if negated else stance
            return Deed("", "", doer, said, self._with_row(), self._sentence, before, Form.PHRASE, tokens[place[1] :])
        if tokens[-1] in words.bare and (len(tokens) == self._start + 1 or self._is_headline()):
            return Deed("", "", doer, Stance.DONE, self._with_row(), self._sentence, (), Form.PHRASE)
        return None

    def _with_row(self) -> tuple[str, ...]:
        """The clause; of a cell of a table, its row, which says what it is about."""
        return self._sentence.words if "|" in self._sentence.words else self._tokens

    def _is_headline(self) -> bool:
        """Whether a deed as a thing stands without a verb: "Cancellation complete"."""
        words = self._words
        stems = {words.verbs.stem(token) for token in self._tokens[:-1]}
        return not {*self._tokens} & words.auxiliaries.keys() and bool(stems & words.verbs.deed_stems)

    def confirmations(self) -> Iterator[Deed]:
        """ "I am pleased to confirm the cancellation of your order": what is confirmed has been done."""
        tokens, words = self._tokens, self._words
        at = next((n for n, token in enumerate(tokens) if token in _CONFIRMING), None)
        if at is None or not {*tokens[:at]} & {"i", "we", "this", "to", "can"} or {*tokens} & {"you", "please", "not"}:
            return
        nouns = tokens[at + 1 : at + 6]
        found = next((noun for noun in nouns if words.verbs.stem(noun) in words.verbs.deed_stems - words.soft), None)
        if found is not None and not {*nouns} & words.auxiliaries.keys():
            yield Deed("", "", Doer.NOBODY, Stance.DONE, tokens, self._sentence, form=Form.PHRASE)

    def _is_predicate(self, at: int) -> bool:
        """Whether a single word says how something went, and does not describe it: "the failed payment"."""
        tokens, words = self._tokens, self._words
        after = tokens[at + 1 : at + 2]
        ends = not after or after[0] in words.prepositions or words.is_adverb(after[0])
        return ends and not (at and tokens[at - 1] in words.determiners - words.pronouns)


def is_quantity(tokens: tuple[str, ...], at: int, words: Lexicon) -> bool:
    """Whether "it's done" goes on with how much: "it's done about 128 thousand kilometres"."""
    after = tokens[at + 1 : at + 5]
    much = any(word[0].isdigit() for word in after[:2])
    return tokens[at] == "done" and much and not {*after} & words.months


def is_same(deed: Deed, phrase: Deed, words: Lexicon) -> bool:
    """Whether a verb says what a phrase says better: "was refused" is no deed, "was sent for approval" waits."""
    said = phrase.clause[len(phrase.subject) : len(phrase.clause) - len(phrase.after)]
    waits = phrase.stance is Stance.WAITING and deed.stance is Stance.DONE and deed.verb in words.handing
    waits = waits or (deed.form is Form.STATE and phrase.stance is not Stance.DONE)
    return deed.word in said or waits


_CONFIRMING = frozenset({"confirm", "confirms", "confirming"})
_PHRASES = (
    ("unsure", Stance.UNSURE),
    ("waiting", Stance.WAITING),
    ("refused", Stance.REFUSED),
    ("failed", Stance.FAILED),
    ("planned", Stance.PLANNED),
    ("done", Stance.DONE),
)
