"""`Lexicon`: the words by which clauses are read, from a table, with every verb as its stem."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from interlock.toml_text import parse_toml
from interlock.tools.verbs import VerbTable, verb_table


class Lexicon:
    """Auxiliaries, adverbs, leads of clauses, verbs that are no deeds, and phrases that say how a thing stands."""

    def __init__(self, table: Mapping[str, Any], verbs: VerbTable) -> None:
        words, clauses, completions = table["words"], table["clauses"], table["completions"]
        self.verbs = verbs
        lists = {name: frozenset(listed) for name, listed in table["lists"].items()}
        self.others, self.changing, self.plain = lists["others"], lists["changing"], lists["plain"]
        self.abbreviations, self.contracting = lists["abbreviations"], lists["contracting"]
        self.saying, self.unsaying, self.to_come = lists["saying"], lists["unsaying"], lists["to_come"]
        self.naming, self.untold, self.owed = lists["naming"], lists["untold"], lists["owed"]
        self.receipts, self.sending = self._stems(table["lists"]["receipts"]), self._stems(table["lists"]["sending"])
        self._no_adverbs, self.breakdowns = lists["no_adverbs"], lists["breakdowns"]
        self.auxiliaries: dict[str, str] = table["auxiliaries"]
        self.contractions: dict[str, tuple[str, ...]] = {k: tuple(v.split()) for k, v in table["contractions"].items()}
        self.joins, self.ends = frozenset(clauses["joins"]), frozenset(clauses["ends"])
        self.opens, self.times = frozenset(clauses["opens"]), frozenset(clauses["times"])
        self.leads = frozenset(clauses["leads"])
        self.lead_starts = frozenset(phrase.split()[0] for phrase in self.opens | self.times | self.leads)
        self.questions = frozenset(clauses["questions"])
        self.ours, self.negations, self.none = (frozenset(words[name]) for name in ("ours", "not", "none"))
        self._adverbs, self.interjections = frozenset(words["adverbs"]), frozenset(words["interjections"])
        self.determiners, self.pronouns = frozenset(words["determiners"]), frozenset(words["pronouns"])
        self.prepositions, self.institutions = frozenset(words["prepositions"]), frozenset(words["institutions"])
        self.reporting, self.statives = frozenset(words["reporting"]), frozenset(words["statives"])
        self.light, self.generic = self._stems(words["light"]), self._stems(words["generic"])
        self.benign, self.looks = self._stems(words["benign"]), self._stems(words["looks"])
        self.ambiguous, self.soft = self._stems(words["ambiguous"]), self._stems(words["soft"])
        self.info = self._stems(words["info"])
        named: dict[str, str] = table["catenatives"]
        # "going to" is the future, whatever "went to" is.
        self.catenatives = {verbs.stem(verb): how for verb, how in named.items() if verb != "going"} | named
        self.bare = frozenset(completions["bare"])
        self.phrases = {name: Phrases(completions[name]) for name in completions if name != "bare"}
        self.promise_verbs = self._stems(table["promises"]["verbs"])
        self.arrivals = frozenset(table["promises"]["arrivals"])
        self.gerunds, self.flows = self._stems(table["gerunds"]["verbs"]), self._stems(table["flows"]["verbs"])
        self.promise_things = frozenset(table["promises"]["things"])
        self.keeping = self._stems(table["keeping"]["verbs"])
        requests, stem_of = table["requests"], verbs.stem
        self.requests, self.carriers = self._stems(requests["verbs"]), self._stems(requests["carriers"])
        self.handing = self.requests | self.carriers | self._stems(requests["handing"])
        self.request_things = frozenset(requests["things"])
        self.inward = frozenset(map(stem_of, requests["inward"]))
        self.approvals = self._stems(table["approvals"]["verbs"])
        self.entries = self._stems(table["entries"]["verbs"])
        self.amendments = self._stems(table["amendments"]["verbs"])
        self.refusals = self._stems(table["refusals"]["verbs"])
        self.same = [self._stems(group) for group in table["same"]["groups"]]
        self._read_states(table["states"])
        self.means = frozenset(table["means"]["words"])
        self.media = {word: medium for medium, names in table["media"].items() for word in names}

    def _read_states(self, table: Mapping[str, Any]) -> None:
        """What tells how things are, in words that could also tell of a deed."""
        self.courses = [frozenset(group) for group in table["courses"]]
        told = {name: frozenset(listed) for name, listed in table.items() if name != "courses"}
        self.attitudes, self.contrasts, self.own_records = told["attitudes"], told["contrasts"], told["own_records"]
        self.vacancies, self.months, self.days = told["vacancies"], told["months"], told["days"]
        self.fillings, self.marks = self._stems(told["fillings"]), self._stems(told["marks"])

    def _stems(self, words: Iterable[str]) -> frozenset[str]:
        return frozenset(map(self.verbs.stem, words))

    def is_adverb(self, word: str) -> bool:
        """Whether a word may stand between an auxiliary and its verb."""
        return word in self._adverbs or (word.endswith("ly") and len(word) > 4 and word not in self._no_adverbs)


class Phrases:
    """Phrases that are looked for by their first word, so that a text is walked once however many there are."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._by_first: dict[str, list[tuple[str, ...]]] = {}
        for phrase in phrases:
            words = tuple(phrase.split())
            self._by_first.setdefault(words[0], []).append(words)

    def find(self, words: tuple[str, ...]) -> tuple[int, int] | None:
        """Where the first of them stands."""
        for at, word in enumerate(words):
            for phrase in self._by_first.get(word, ()):
                if words[at : at + len(phrase)] == phrase:
                    return at, at + len(phrase)
        return None


@cache
def lexicon() -> Lexicon:
    """The words of everyday English."""
    text = (files("interlock.answers.statements") / "tables" / "english.toml").read_text(encoding="utf-8")
    return Lexicon(parse_toml(text), verb_table())
