"""Reads the deeds of a sentence: clause by clause, its verb groups and phrases, each going on with the one before."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from interlock.answers.statements.clauses import Clause, Lead, split_clauses
from interlock.answers.statements.deeds import Deed, Doer, Form
from interlock.answers.statements.lexicon import Lexicon
from interlock.answers.statements.phrases import PhraseReader, is_quantity, is_same
from interlock.answers.statements.verb_groups import Stance, VerbGroup, Voice, read_group, stance_of, voice_of
from interlock.answers.statements.wording import Sentence


class _Carry(NamedTuple):
    """What a clause without a subject goes on with: who, and how."""

    doer: Doer
    group: VerbGroup
    subject: tuple[str, ...]


def find_deeds(sentence: Sentence, words: Lexicon) -> Iterator[Deed]:
    """The deeds of a sentence, clause by clause."""
    carry: _Carry | None = None
    clauses = list(split_clauses(sentence, words))
    supposes = any((c.lead is Lead.SUPPOSED or _is_awaited(c)) and not _is_time(c, words) for c in clauses)
    for clause in clauses:
        reader = _ClauseReader(clause, sentence, words, carry)
        for deed in reader.deeds():
            # What is to come under a condition is an offer.
            if not (deed.stance is Stance.COMING and supposes):
                yield deed
        carry = reader.carry
    if clauses and carry is not None and _is_ellipsis(carry, clauses[-1]):  # "you asked me to, and I have"
        yield Deed("", "", carry.doer, Stance.DONE, clauses[-1].words, sentence, form=Form.PHRASE)
    if words.phrases["unsure"].find(sentence.words) is not None:  # "I do not know whether it was sent"
        yield Deed("", "", Doer.NOBODY, Stance.UNSURE, sentence.words, sentence, form=Form.PHRASE)


class _ClauseReader:
    """Reads one clause; what the next one may go on with is left in `carry`."""

    def __init__(self, clause: Clause, sentence: Sentence, words: Lexicon, carry: _Carry | None) -> None:
        self._clause, self._sentence, self._words = clause, sentence, words
        self._tokens = clause.words
        self.carry = carry

    def deeds(self) -> list[Deed]:
        """What the clause says, by verb groups and by phrases."""
        if self._clause.lead is Lead.SUPPOSED or self._is_question() or self._is_compared():
            self.carry = None
            return []
        phrases = PhraseReader(self._clause, self._sentence, self._words, self._start())
        found, phrase = [*self._by_verbs(), *phrases.confirmations()], phrases.find()
        if phrase is not None and phrase.stance is Stance.DONE:
            # "It may have gone through": its auxiliaries say whether.
            modal = any(self._words.auxiliaries.get(token) in _BASE_FORMS for token in self._tokens)
            unsaid = (deed.stance for deed in found if deed.stance in _UNSAID or (modal and deed.stance is Stance.OPEN))
            phrase = phrase._replace(stance=next(unsaid, Stance.DONE))
        if phrase is not None:
            found = [*(deed for deed in found if not is_same(deed, phrase, self._words)), phrase]
        timed = self._clause.lead is Lead.TIMED
        return [deed for deed in found if deed.stance is not Stance.OPEN and not (timed and not self._is_past(deed))]

    def _is_question(self) -> bool:
        """Whether the clause asks: its auxiliary stands before its subject, or a question word does."""
        if not self._sentence.asks:
            return False
        first = self._tokens[self._start()]
        asks = first in self._words.auxiliaries or first in self._words.questions
        return asks or not any(token in self._words.ours or token in self._words.auxiliaries for token in self._tokens)

    def _is_compared(self) -> bool:
        """Whether something is only compared with: "dearer than she was told"."""
        return self._clause.lead_word == "than" and not {*self._tokens} & self._words.ours

    def _is_past(self, deed: Deed) -> bool:
        """After "when" and "once" only what was is said to be so: "once it has been sent" is still to come."""
        return bool({"was", "were"} & {*self._tokens}) or (deed.doer is Doer.SPEAKER and "have" not in self._tokens)

    def _start(self) -> int:
        tokens, words, at = self._tokens, self._words, 0
        while at < len(tokens) - 1 and (tokens[at] in words.interjections or words.is_adverb(tokens[at])):
            at += 1
        return at

    def _by_verbs(self) -> Iterator[Deed]:
        tokens, words = self._tokens, self._words
        ours = [at for at, token in enumerate(tokens) if token in words.ours]
        if ours:
            for at in ours:
                yield from self._first_person(at)
            return
        auxiliary = next((at for at, token in enumerate(tokens) if token in words.auxiliaries or token in _GET), None)
        yield from self._bare() if auxiliary is None else self._third_person(auxiliary)

    def _first_person(self, at: int) -> Iterator[Deed]:
        tokens, words = self._tokens, self._words
        inverted = at > 0 and tokens[at - 1] in words.auxiliaries
        if inverted and self._sentence.asks:
            return
        group = read_group(tokens, at + 1, words, negated="never" in tokens[:at])
        if inverted:
            group = group._replace(chain=(words.auxiliaries[tokens[at - 1]], *group.chain))
        doer = Doer.SPEAKER if tokens[at] == "i" else Doer.HOUSE
        self.carry = _Carry(doer, group, ())
        yield from self._of_group(self.carry)

    def _third_person(self, at: int) -> Iterator[Deed]:
        tokens, words = self._tokens, self._words
        subject = tokens[:at]
        if subject == ("to",) and tokens[at] == "be":  # "€40, to be paid on arrival"
            return
        negated = bool({*subject} & words.none) or "not" in subject or self._clause.lead_word == "nor"
        if tokens[at] in _GET:
            group = read_group(tokens, at + 1, words, negated=negated)
            group = group._replace(chain=("get", *group.chain))
        else:
            group = read_group(tokens, at, words, negated=negated)
        if not subject and self.carry is not None and self._clause.lead is Lead.MAIN:
            self.carry = _Carry(self.carry.doer, group, self.carry.subject)
        else:
            self.carry = _Carry(self._doer(subject, group), group, subject)
        if not subject and tokens[at] in _GET:  # "Got your table booked"
            yield from self._causative(Doer.HOUSE, group._replace(at=at), ())
        yield from self._of_group(self.carry)
        yield from self._state(group, subject)
        yield from self._receipt(at, group, subject)

    def _receipt(self, at: int, group: VerbGroup, subject: tuple[str, ...]) -> Iterator[Deed]:
        """ "She has the confirmation", "Ana got a text": it must have come to her."""
        tokens, words = self._tokens, self._words
        things = tokens[at + 1 : at + 2] and tokens[at + 1] in words.determiners and {*tokens[at + 2 : at + 4]}
        if tokens[at] not in _HOLDING or not subject or subject[-1] == "you" or group.negated or not things:
            return
        if things & words.promise_things:
            receive = words.verbs.stem("receive")
            yield Deed(receive, tokens[at], Doer.OTHER, Stance.DONE, tokens, self._sentence, subject)

    def _state(self, group: VerbGroup, subject: tuple[str, ...]) -> Iterator[Deed]:
        """How a thing is now says what was done to it: "the credit is on your bill now", "you are back on Basic"."""
        tokens = self._tokens
        plain = group.chain in (("be",), ("have",)) and not group.negated and not group.modes
        if ("right", "now") in pairwise(tokens) and not {*tokens} & {"you", "your"}:
            return  # "two are on the shelf right now": at present, whatever was before
        if plain and {"now", "back"} & {*tokens} and not {"still", "no"} & {*tokens}:
            yield Deed("", "", Doer.NOBODY, Stance.DONE, tokens, self._sentence, subject, Form.STATE)

    def _doer(self, subject: tuple[str, ...], group: VerbGroup) -> Doer:
        verb = self._tokens[group.at] if group.at < len(self._tokens) else ""
        if voice_of(group, verb, self._words) is Voice.PASSIVE:
            return self._agent(self._tokens[group.at + 1 :])
        if subject[-1:] == ("you",):
            return Doer.USER
        return Doer.HOUSE if {*subject[-3:]} & self._words.institutions else Doer.OTHER

    def _agent(self, after: tuple[str, ...]) -> Doer:
        """Who did what is said in the passive: somebody behind "by", or nobody is named."""
        words = self._words
        agent = after[after.index("by") + 1 :][:4] if "by" in after else ()
        is_means = not agent or agent[0] in words.means or agent[0][0].isdigit() or agent[0].endswith("ing")
        if is_means or {*agent} & (words.institutions | {"me", "us"}):
            return Doer.NOBODY
        return Doer.OTHER

    def _bare(self) -> Iterator[Deed]:
        """A clause with neither a subject of ours nor an auxiliary: it goes on, or leaves its subject out."""
        tokens, words, start = self._tokens, self._words, self._start()
        if self._clause.lead is Lead.BOUND and self._clause.lead_word in _COMPARING:
            return
        inner = read_group(tokens, start, words)
        verb = tokens[inner.at] if inner.at < len(tokens) else tokens[-1]
        carried = self.carry if self._clause.lead is Lead.MAIN else None
        if carried is not None and self._goes_on(carried, verb, inner):
            chain, negated = carried.group.chain + inner.chain, carried.group.negated or inner.negated
            group = VerbGroup(chain, negated, carried.group.modes + inner.modes, inner.at)
            yield from self._of_group(_Carry(carried.doer, group, carried.subject))
            return
        at = inner.at if words.verbs.is_past(verb) or inner.modes else self._late_participle(start)
        if at is None or at >= len(tokens):
            if self._has_active_verb(start):  # "the stork flew 9,846 km and reached …"
                self.carry = _Carry(Doer.OTHER, VerbGroup((), False, (), len(tokens)), tokens[:1])
            return
        subject = () if at == inner.at else tokens[:at]
        doer = self._bare_doer(subject, at)
        self.carry = _Carry(doer, VerbGroup((), False, (), at), subject) if doer is Doer.OTHER else None
        unsaid = bool({*tokens} & words.none) or bool({*tokens} & words.negations)
        group = inner._replace(negated=unsaid, at=at)
        stance = stance_of(group, tokens[at], words) if inner.modes else Stance.NOT_DONE if unsaid else Stance.DONE
        form = Form.BARE if self._is_telling(at, subject) else Form.LABEL
        yield self._make_deed(at, doer, stance, subject, form)

    def _has_active_verb(self, start: int) -> bool:
        """Whether somebody else does something to something: a past form with an object behind it."""
        tokens, words = self._tokens, self._words
        return any(
            words.verbs.is_past(tokens[at]) and (tokens[at + 1] in words.determiners or tokens[at + 1][0].isdigit())
            for at in range(start + 1, len(tokens) - 1)
        )

    def _is_telling(self, at: int, subject: tuple[str, ...]) -> bool:
        """Whether a bare participle tells something: not "Credited: $3", "planned work", or ", taken on Monday"."""
        words, after = self._words, self._tokens[at + 1 : at + 2]
        if self._clause.end == ":" or not (self._clause.first or subject or self._clause.lead_word not in _APPOSED):
            return False
        known = words.prepositions | words.determiners
        return not after or bool(subject) or after[0] in known or words.is_adverb(after[0]) or after[0][0].isdigit()

    def _goes_on(self, carried: _Carry, verb: str, inner: VerbGroup) -> bool:
        verbs, chain = self._words.verbs, {*carried.group.chain}
        if verbs.is_past(verb) or (inner.modes and "did" in inner.chain):
            return not (chain & _BASE_FORMS) or "be" in chain
        takes_base = bool(chain & {*_BASE_FORMS, "did"}) or bool(carried.group.modes)
        return takes_base and verbs.stem(verb) in verbs.deed_stems and not verb.endswith("s")

    def _late_participle(self, start: int) -> int | None:
        """ "Refund issued", "Order 12 cancelled today", "the team refunded it": a participle behind a noun."""
        tokens, words = self._tokens, self._words
        if tokens[start] in words.prepositions:  # "of the $40 billed in June"
            return None
        for at in range(start + 1, len(tokens)):
            if not words.verbs.is_past(tokens[at]) or words.verbs.stem(tokens[at]) not in words.verbs.deed_stems:
                continue
            if tokens[at - 1] in words.determiners and tokens[at - 1] not in words.pronouns:
                continue  # "the cancelled order"
            after = tokens[at + 1] if at + 1 < len(tokens) else ""
            named = {*tokens[:at]} & words.institutions
            known = after in words.prepositions or after in words.determiners
            if not after or named or known or words.is_adverb(after) or after[:1].isdigit():
                return at
        return None

    def _bare_doer(self, subject: tuple[str, ...], at: int) -> Doer:
        if subject[-1:] == ("you",):
            return Doer.USER
        if {*subject} & self._words.institutions:
            return Doer.HOUSE
        if self._clause.lead_word == "who" and self._is_of_stranger():
            return Doer.OTHER  # "the guest who wrote in"
        after, verb = self._tokens[at + 1 :], self._tokens[at]
        # "The insurance paid all of it", "they wrote to you": a verb with its subject, not a participle.
        if subject and ({*after[:1]} & self._words.determiners or subject[-1] in _SOMEBODY):
            return Doer.OTHER
        stems = {self._words.verbs.stem(word) for word in subject}
        if subject and after and after[0][0].isdigit() and not stems & self._words.verbs.deed_stems:
            return Doer.OTHER  # "the station recorded 1.87 inches"; "payment sent 3 May" is a participle
        return Doer.OTHER if subject and self._words.verbs.is_plain_past(verb) else self._agent(after)

    def _is_of_stranger(self) -> bool:
        """Whether "who" stands behind somebody that is none of ours."""
        at = self._sentence.words.index("who")
        before = {*self._sentence.words[max(0, at - 3) : at]}
        return bool(before) and before.isdisjoint(self._words.institutions | _OURSELVES)

    def _of_group(self, carry: _Carry) -> Iterator[Deed]:
        tokens, words = self._tokens, self._words
        doer, group, subject = carry
        if group.at >= len(tokens) or (subject and is_quantity(tokens, group.at, words)):
            return
        verb = tokens[group.at]
        if words.verbs.stem(verb) in words.promise_verbs and doer is Doer.USER:
            yield from self._promise(group, subject)
            return
        if doer is Doer.OTHER and {*subject} & words.arrivals and {*group.chain} & {"will", "should"}:
            doer, form = Doer.NOBODY, Form.PROMISE  # "your refund will arrive on Friday"
            yield self._make_deed(group.at, doer, Stance.NOT_DONE if group.negated else Stance.COMING, subject, form)
            return
        nothing = tokens[group.at + 1 : group.at + 2] in (("nothing",), ("none",), ("neither",), ("no",))
        group = group._replace(negated=group.negated != nothing)
        voice = voice_of(group, verb, words)
        if doer in (Doer.SPEAKER, Doer.HOUSE) and voice is Voice.PASSIVE and not subject:
            doer = Doer.OTHER  # "I was told": done to us
        stance, at = stance_of(group, verb, words), group.at
        if words.verbs.stem(verb) in words.gerunds and stance is Stance.DONE:
            at = next((n for n in range(at, min(at + 6, len(tokens))) if tokens[n].endswith("ing")), at)
            doer = carry.doer if at != group.at else doer  # "I am done refunding it"
        deed = self._make_deed(at, doer, stance, subject, Form(voice.value))
        if verb == "let" and "know" in tokens[at + 2 : at + 7]:  # "I let Ana know": she was told
            stance = stance_of(group, "informed", words)
            deed = deed._replace(verb=words.verbs.stem("inform"), word="informed", stance=stance)
        yield deed
        yield from self._causative(doer, group, subject)

    def _causative(self, doer: Doer, group: VerbGroup, subject: tuple[str, ...]) -> Iterator[Deed]:
        """ "I had it cancelled", "I got your fee waived": the deed is the participle behind."""
        tokens, verbs = self._tokens, self._words.verbs
        if doer not in (Doer.SPEAKER, Doer.HOUSE) or verbs.stem(tokens[group.at]) not in _CAUSING:
            return
        if {*group.chain} & _BASE_FORMS:
            return
        for at in range(group.at + 2, min(group.at + 8, len(tokens))):
            if verbs.is_past(tokens[at]) and (verbs.stem(tokens[at]) in verbs.deed_stems or self._is_caused(at, group)):
                yield self._make_deed(at, doer, Stance.NOT_DONE if group.negated else Stance.DONE, subject, Form.ACTIVE)
                return

    def _is_caused(self, at: int, group: VerbGroup) -> bool:
        """Whether "I had her bags brought up" tells of a deed, whatever it is: a thing stands before the participle."""
        tokens, words = self._tokens, self._words
        told = words.verbs.stem(tokens[at]) in words.benign | words.looks or tokens[at] in words.statives
        thing = tokens[group.at + 1] in words.determiners and at > group.at + 2
        return tokens[group.at] in ("had", "got") and thing and not told and tokens[at] not in words.auxiliaries

    def _promise(self, group: VerbGroup, subject: tuple[str, ...]) -> Iterator[Deed]:
        """ "You will receive a confirmation": somebody must have done something for that."""
        things = {*self._tokens[group.at :]} & self._words.promise_things
        things = things or ({"from"} & {*self._tokens[group.at :]} if self._tokens[group.at] == "hear" else set())
        if things and {*group.chain} & {"will", "should", "have"} and not group.negated:
            yield self._make_deed(group.at, Doer.NOBODY, Stance.COMING, subject, Form.PROMISE)

    def _make_deed(self, at: int, doer: Doer, stance: Stance, subject: tuple[str, ...], form: Form) -> Deed:
        word, after = self._tokens[at], self._tokens[at + 1 :]
        stem = self._words.verbs.stem(word)
        if stance is Stance.DONE and self._is_request(stem, after):
            stance = Stance.REQUESTED
        if stance is Stance.DONE and stem in self._words.refusals:
            stance = Stance.REFUSED
        if stance is Stance.DONE and subject and {*after[:1]} & self._words.breakdowns:
            stem, stance = "", Stance.UNSURE  # "the booking system stopped answering"
        if stance is Stance.DONE and stem == "hold" and {*after[:3]} & {"back", "off"}:
            stem, stance = "", Stance.NOT_DONE  # "I have held it back"
        return Deed(stem, word, doer, stance, self._tokens, self._sentence, subject, form, after)

    def _is_request(self, stem: str, after: tuple[str, ...]) -> bool:
        """Whether something was asked for rather than done: "I put the request in", "it was submitted"."""
        words = self._words
        if stem in words.requests or (stem in words.inward and "in" in after[:6]):
            return True
        return stem in words.carriers and bool({*self._tokens} & words.request_things)


def _is_awaited(clause: Clause) -> bool:
    """Whether a clause says when something will come about; what lasts until then, or comes before it, is so anyway."""
    return clause.lead is Lead.TIMED and clause.lead_word not in _LASTING


def _is_time(clause: Clause, words: Lexicon) -> bool:
    """Whether it only says when, and supposes nothing: "until tonight", "before 6 pm on Friday"."""
    known = words.days | words.months | words.determiners | words.prepositions | _WHEN
    return all(word in known or word[0].isdigit() or words.is_adverb(word) for word in clause.words)


def _is_ellipsis(carry: _Carry, last: Clause) -> bool:
    """Whether a sentence ends with the auxiliary of what was asked for before: "and I did"."""
    ends = last.words[-1] in ("have", "did", "had") and bool({"i", "we"} & {*last.words}) and len(last.words) <= _SHORT
    return ends and carry.doer in (Doer.SPEAKER, Doer.HOUSE) and not carry.group.negated


_GET = frozenset({"gets", "got", "getting"})
_UNSAID = frozenset({Stance.UNSURE, Stance.COMING, Stance.NOT_DONE, Stance.FAILED})
_HOLDING = frozenset({"has", "got"})
_SHORT = 4
_LASTING = frozenset({"until", "till", "before"})
_WHEN = frozenset(
    {"tomorrow", "noon", "midnight", "am", "pm", "morning", "afternoon", "evening", "night", "next", "week"}
)
_OURSELVES = frozenset({"i", "me", "we", "us", "our"})
_APPOSED = frozenset({",", "(", ")"})
_SOMEBODY = frozenset({"they", "he", "she", "who", "you"})
_CAUSING = frozenset({"hav", "get", "had"})
_COMPARING = frozenset({"as", "than", "though", "although"})
_BASE_FORMS = frozenset({"will", "would", "can", "could", "may", "should", "do"})
