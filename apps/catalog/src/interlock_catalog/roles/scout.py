"""The scout: what failed searches mean. The same words in another order need no judgement; everything else does."""

from __future__ import annotations

import difflib
from collections.abc import AsyncIterator, Mapping, Sequence

import msgspec

from interlock_catalog.backends import Backend, Search
from interlock_catalog.changes import PATCHABLE
from interlock_catalog.contracts import Doc, Json, live, value_at
from interlock_catalog.naming import doc_id, same_words
from interlock_catalog.planning.ops import Op
from interlock_catalog.roles.asking import told
from interlock_catalog.roles.desk import Asked, Refused, refused, split
from interlock_catalog.roles.repair import repaired
from interlock_catalog.roles.reports import ProposedAction
from interlock_catalog.vocabulary import slug

INSTRUCTIONS = (
    "You are the scout of an exercise catalog. You are given searches that found nothing, as JSON, each with the "
    "exercises that come nearest. Say with propose_actions what each search means: a hypothesis, evidence as "
    "source:detail, an action (add_alias with the exercise_id that is certainly meant; draft_exercise with "
    "family_slug and a whole draft, if it is a real exercise that a family lacks; otherwise nothing), why, how "
    "sure you are, and whether to apply it now."
)
_PAGE, _BATCH, _NEAREST = 500, 20, 3
_SAME, _LIKELY, _MARGIN = 0.999, 0.4, 0.05
LEAST = 0.8
"""From where on a model's own word is enough to act."""
SAME_WORDS = "searches:same_words"

Found = tuple[str | None, Op | None, Refused | None]


class Near(msgspec.Struct, frozen=True):
    """An exercise that a search comes near to."""

    score: float
    id: str
    name: str
    family: str


async def scouted(asked: Asked, backend: Backend) -> AsyncIterator[Found]:
    """For each failed search that can be made sense of: a family and an operation, or what was refused."""
    after = ""
    while True:
        page = await backend.searches(after=after, limit=_PAGE)
        failed = await _unanswered(backend, [search for search in page if not search.hits])
        near = await _nearest(backend, failed)
        open_ones = list[Search]()
        for search in failed:
            best = near[search.query]
            if best and best[0].score >= _SAME and (len(best) == 1 or best[1].score < best[0].score - _MARGIN):
                why = f"the search {search.query!r} ({search.count} times) has the words of {best[0].name!r}"
                sure = asked.trust.of(SAME_WORDS)
                yield best[0].family, _alias(search.query, best[0].id, best[0].family, why, (SAME_WORDS,), sure), None
            else:
                open_ones.append(search)
        async for found in _judged(asked, open_ones, near):
            yield found
        if len(page) < _PAGE:
            return
        after = page[-1].id


async def _unanswered(backend: Backend, searches: Sequence[Search]) -> list[Search]:
    """Searches for which there is no alias yet."""
    there = await backend.read_many(f"alias:{slug(search.query)}" for search in searches if slug(search.query))
    return [search for search in searches if slug(search.query) and f"alias:{slug(search.query)}" not in there]


async def _nearest(backend: Backend, searches: Sequence[Search]) -> dict[str, list[Near]]:
    """The nearest live exercises to each search, by shared words; the catalog is gone through a page at a time."""
    words = await _vocabulary(backend)
    wanted = {search.query: frozenset(_understood(search.query, words)) for search in searches}
    best: dict[str, list[Near]] = {query: [] for query in wanted}
    async for doc in _exercises(backend):
        name = frozenset(same_words(str(doc["name"])))
        for query, said in wanted.items():
            score = len(name & said) / len(name | said) if said else 0.0
            if score >= _LIKELY:
                near = Near(round(score, 3), str(doc["id"]), str(doc["name"]), str(doc["family_slug"]))
                best[query] = sorted([*best[query], near], key=lambda item: (-item.score, item.id))[:_NEAREST]
    return best


async def _vocabulary(backend: Backend) -> frozenset[str]:
    return frozenset([word async for doc in _exercises(backend) for word in same_words(str(doc["name"]))])


async def _exercises(backend: Backend) -> AsyncIterator[Doc]:
    after = ""
    while True:
        page = await backend.exercises(after=after, limit=_PAGE)
        for key, doc in page.items():
            if isinstance(doc.value, dict) and live(doc.value) and isinstance(doc.value.get("name"), str):
                yield {**doc.value, "id": key.partition(":")[2]}
        if len(page) < _PAGE:
            return
        after = next(reversed(page))


def _understood(query: str, words: frozenset[str]) -> list[str]:
    """The words of a query as names have them: equipment by its slug, a slip of the finger mended."""
    found = []
    for word in same_words(query):
        near = [word] if word in words else difflib.get_close_matches(word, sorted(words), 1, 0.84)
        found.append(near[0] if near else word)
    return found


async def _judged(asked: Asked, searches: Sequence[Search], near: Mapping[str, list[Near]]) -> AsyncIterator[Found]:
    """What a model that can be told makes of the rest, in batches."""
    if asked.model is None or not asked.model.instructable:
        return
    for batch in split(searches, _BATCH):
        content = {"searches": [_shown(search, near[search.query]) for search in batch]}
        report, why = await told(asked, "propose_actions", INSTRUCTIONS, content)
        asked.count("scout")
        if report is None:
            yield None, None, refused("propose_actions", None, why)
            continue
        mended = repaired(report.get("actions"), ProposedAction)
        for entry, reason in mended.refused:
            yield None, None, refused("propose_actions", entry, reason)
        outcome = await asked.call("propose_actions", {"actions": list(mended.entries)}, actor="scout")
        asked_for = {search.query for search in batch}
        for action in outcome.value["actions"] if outcome.ok else ():
            if str(action["query"]) not in asked_for:
                yield None, None, refused("propose_actions", action, "nobody searched for that")
            else:
                yield _acted(asked, action, near[str(action["query"])])


def _acted(asked: Asked, action: Json, near: Sequence[Near]) -> Found:
    rule, said = f"scout:{action['proposed_action']}@{asked.judge}", float(action["confidence"])
    evidence, sure = (str(action["evidence"]), rule), min(said, asked.trust.of(rule))
    if not action["apply"] or action["proposed_action"] == "nothing" or said < LEAST:
        return None, None, None
    if action["proposed_action"] == "add_alias":
        family = next((n.family for n in near if n.id == action["exercise_id"]), None)
        if family is None:
            return None, None, refused("propose_actions", action, "the exercise is not among the nearest ones")
        why = f"{action['hypothesis']}; {action['rationale']}"
        return family, _alias(action["query"], action["exercise_id"], family, why, evidence, sure), None
    draft, family = action["draft"], action["family_slug"]
    if not isinstance(draft, dict) or family is None:
        return None, None, refused("propose_actions", action, "it has no draft, or no family")
    return family, _draft(draft, family, action, evidence, sure), None


def _alias(query: str, exercise: str, family: str, why: str, evidence: tuple[str, ...], sure: float) -> Op:
    arguments = {"alias_slug": slug(query), "of_family": family, "exercise_id": exercise, "justification": why[:2000]}
    return Op(tool="upsert_alias", actor="scout", arguments=arguments, evidence=evidence, confidence=sure)


def _draft(draft: Doc, family: str, action: Json, evidence: tuple[str, ...], sure: float) -> Op:
    made = {**draft, "family_slug": family, "name_slug": slug(str(draft.get("name", "")))}
    changes = [
        {
            "field": field,
            "before": None,
            "after": value_at(made, field),
            "justification": str(action["rationale"]),
            "evidence": str(action["evidence"]),
        }
        for field in PATCHABLE
        if value_at(made, field) is not None
    ]
    arguments = {
        "exercise_id": doc_id(family, str(draft.get("name", ""))),
        "family_slug": family,
        "changes": changes,
        "justification": str(action["hypothesis"]),
    }
    return Op(tool="upsert_exercise", actor="scout", arguments=arguments, evidence=evidence, confidence=sure)


def _shown(search: Search, near: Sequence[Near]) -> Json:
    return {"query": search.query, "count": search.count, "nearest": [msgspec.to_builtins(item) for item in near]}
