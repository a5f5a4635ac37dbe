"""The scout: what failed searches mean. The same words in another order need no judgement; everything else does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

import msgspec
from rapidfuzz import fuzz

from interlock.canonical import nearest
from interlock_catalog.backends import Backend, Search, iterate_pages
from interlock_catalog.changes import PATCHABLE
from interlock_catalog.contracts import Doc, Json, is_live, value_at
from interlock_catalog.document_keys import alias_key, name_of
from interlock_catalog.evidence import Evidence
from interlock_catalog.naming import build_exercise_id, name_words
from interlock_catalog.planning.ops import Op
from interlock_catalog.roles.context import Rejection, RoleContext, build_rejection
from interlock_catalog.roles.prompting import request_report
from interlock_catalog.roles.reports import ACTIONS
from interlock_catalog.shortening import shorten
from interlock_catalog.vocabulary import slug

# The texts that a model is given are measured as they stand (calibration.toml, docs/catalog-quality.md).
INSTRUCTIONS = (
    "You are the scout of an exercise catalog. You are given searches that found nothing, as JSON, each with the "
    "exercises that come nearest. Say with propose_actions what each search means: a hypothesis, evidence as "
    "source:detail, an action (add_alias with the exercise_id that is certainly meant; draft_exercise with "
    "family_slug and a whole draft, if it is a real exercise that a family lacks; otherwise nothing), why, how "
    "sure you are, and whether to apply it now."
)
_PAGE = 500
_SEARCHES_PER_REPORT = 20
_NEAREST_SHOWN = 3
# Similarity of two names is the share of words that they have in common (Jaccard).
_SAME = 0.999  # all of them
_LIKELY = 0.4  # below this, a name is of no help to whoever judges
_MARGIN = 0.05  # a second name this close makes it ambiguous
_TYPO = 84.0
"""From this likeness on (of 100), a word that no name has is a typing error of one that a name has: a letter too many
or too few in a word of four or more, a wrong letter in one of seven or more. `nearest` alone suggests more boldly."""
MIN_CONFIDENCE = 0.8
"""From where on a model's own word is enough to act."""
SAME_WORDS = Evidence("searches", "same_words")


class SearchFinding(msgspec.Struct, frozen=True):
    """What comes of a failed search: an operation on a family, or a rejected proposal; or nothing at all."""

    family: str | None = None
    op: Op | None = None
    rejection: Rejection | None = None


class SimilarExercise(msgspec.Struct, frozen=True):
    """An exercise whose name is near to a search."""

    score: float
    id: str
    name: str
    family: str


async def scout_searches(context: RoleContext, backend: Backend) -> AsyncIterator[SearchFinding]:
    """Go through the log of searches, page by page."""
    after = ""
    while True:
        page = await backend.searches(after=after, limit=_PAGE)
        failed = await _without_alias(backend, [search for search in page if not search.hits])
        similar = await _find_similar(backend, failed)
        unclear = list[Search]()
        for search in failed:
            best = similar[search.query]
            if _is_unambiguous(best):
                yield SearchFinding(best[0].family, _alias_for_same_words(context, search, best[0]))
            else:
                unclear.append(search)
        async for finding in _judge(context, unclear, similar):
            yield finding
        if len(page) < _PAGE:
            return
        after = page[-1].id


def _is_unambiguous(best: Sequence[SimilarExercise]) -> bool:
    return bool(best) and best[0].score >= _SAME and (len(best) == 1 or best[1].score < best[0].score - _MARGIN)


async def _without_alias(backend: Backend, searches: Sequence[Search]) -> list[Search]:
    """Searches for which there is no alias yet."""
    there = await backend.read_many(alias_key(slug(search.query)) for search in searches if slug(search.query))
    return [search for search in searches if slug(search.query) and alias_key(slug(search.query)) not in there]


async def _find_similar(backend: Backend, searches: Sequence[Search]) -> dict[str, list[SimilarExercise]]:
    """The live exercises most similar to each search; the catalog is gone through a page at a time."""
    # Twice through the catalog: what is a typing error can be told only when the words of all names are known.
    words = frozenset([word async for doc in _exercises(backend) for word in name_words(str(doc["name"]))])
    wanted = {search.query: frozenset(_correct_typos(search.query, words)) for search in searches}
    best: dict[str, list[SimilarExercise]] = {query: [] for query in wanted}
    async for doc in _exercises(backend):
        name = frozenset(name_words(str(doc["name"])))
        for query, said in wanted.items():
            score = len(name & said) / len(name | said) if said else 0.0
            if score >= _LIKELY:
                found = SimilarExercise(round(score, 3), str(doc["id"]), str(doc["name"]), str(doc["family_slug"]))
                # Cut at once, so that memory does not grow with the catalog.
                best[query] = sorted([*best[query], found], key=lambda item: (-item.score, item.id))[:_NEAREST_SHOWN]
    return best


async def _exercises(backend: Backend) -> AsyncIterator[Doc]:
    async for page in iterate_pages(backend.exercises):
        for key, doc in page.items():
            if isinstance(doc.value, dict) and is_live(doc.value) and isinstance(doc.value.get("name"), str):
                yield {**doc.value, "id": name_of(key)}


def _correct_typos(query: str, words: frozenset[str]) -> list[str]:
    """The words of a query as names have them: equipment by its slug, typing errors corrected."""
    found = []
    for word in name_words(query):
        # Sorted, as a set of texts has another order in every process, and a plan must not.
        near = () if word in words else nearest(word, sorted(words), 1)
        found.append(near[0] if near and fuzz.ratio(word, near[0]) >= _TYPO else word)
    return found


async def _judge(
    context: RoleContext, searches: Sequence[Search], similar: Mapping[str, list[SimilarExercise]]
) -> AsyncIterator[SearchFinding]:
    """What an instructable model makes of the rest, in batches."""
    if context.model is None or not context.model.instructable:
        return
    for start in range(0, len(searches), _SEARCHES_PER_REPORT):
        batch = searches[start : start + _SEARCHES_PER_REPORT]
        content = {"searches": [_visible_search(search, similar[search.query]) for search in batch]}
        report = await request_report(context, "scout", ACTIONS, INSTRUCTIONS, content)
        for rejection in report.rejections:
            yield SearchFinding(rejection=rejection)
        if report.entries is None:
            continue
        outcome = await context.call("propose_actions", {"actions": list(report.entries)}, actor="scout")
        queries = {search.query for search in batch}
        for action in outcome.value["actions"] if outcome.ok else ():
            # Or a model could make a search up, and have an alias added for it.
            if str(action["query"]) not in queries:
                yield _reject(action, "nobody searched for that")
            else:
                yield _act(context, action, similar[str(action["query"])])


def _reject(payload: Json, reason: str) -> SearchFinding:
    return SearchFinding(rejection=build_rejection("propose_actions", payload, reason))


def _act(context: RoleContext, action: Json, similar: Sequence[SimilarExercise]) -> SearchFinding:
    """The operation that a proposed action stands for."""
    stated = float(action["confidence"])
    if not action["apply"] or action["proposed_action"] == "nothing" or stated < MIN_CONFIDENCE:
        return SearchFinding()
    rule = Evidence("scout", str(action["proposed_action"]), context.judge)
    evidence = (Evidence.parse(str(action["evidence"])), rule)
    confidence = min(stated, context.calibration.confidence_of(rule))
    if action["proposed_action"] == "add_alias":
        # Only what it was shown can be meant; an id from elsewhere is rejected.
        family = next((item.family for item in similar if item.id == action["exercise_id"]), None)
        if family is None:
            return _reject(action, "the exercise is not among the nearest ones")
        arguments = _alias_arguments(
            str(action["query"]), str(action["exercise_id"]), family, f"{action['hypothesis']}; {action['rationale']}"
        )
        op = Op(tool="upsert_alias", actor="scout", arguments=arguments, evidence=evidence, confidence=confidence)
        return SearchFinding(family, op)
    draft, family = action["draft"], action["family_slug"]
    if not isinstance(draft, dict) or family is None:
        return _reject(action, "it has no draft, or no family")
    arguments = _draft_arguments(draft, family, action)
    op = Op(tool="upsert_exercise", actor="scout", arguments=arguments, evidence=evidence, confidence=confidence)
    return SearchFinding(family, op)


def _alias_for_same_words(context: RoleContext, search: Search, meant: SimilarExercise) -> Op:
    reason = f"the search {search.query!r} ({search.count} times) has the words of {meant.name!r}"
    return Op(
        tool="upsert_alias",
        actor="scout",
        arguments=_alias_arguments(search.query, meant.id, meant.family, reason),
        evidence=(SAME_WORDS,),
        confidence=context.calibration.confidence_of(SAME_WORDS),
    )


def _alias_arguments(query: str, exercise: str, family: str, reason: str) -> dict[str, Json]:
    return {
        "alias_slug": slug(query),
        "of_family": family,
        "exercise_id": exercise,
        "justification": shorten(reason, 2000),
    }


def _draft_arguments(draft: Doc, family: str, action: Json) -> dict[str, Json]:
    made = {**draft, "family_slug": family, "name_slug": slug(str(draft.get("name", "")))}
    changes = [
        {
            "field": field,
            # It has to be new: where something has that id after all, this does not hold and the change is refused.
            "before": None,
            "after": value_at(made, field),
            "justification": str(action["rationale"]),
            "evidence": str(action["evidence"]),
        }
        for field in PATCHABLE
        if value_at(made, field) is not None
    ]
    return {
        "exercise_id": build_exercise_id(family, str(draft.get("name", ""))),
        "family_slug": family,
        "changes": changes,
        "justification": str(action["hypothesis"]),
    }


def _visible_search(search: Search, similar: Sequence[SimilarExercise]) -> Json:
    return {"query": search.query, "count": search.count, "nearest": [msgspec.to_builtins(item) for item in similar]}
