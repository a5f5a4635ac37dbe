"""How sure each claim of an answer is: reckoned from the distinct sources that say it, never written by a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from interlock.answers.grounding import Grounded, Source, Support
from interlock.answers.work.sites import is_one_of
from interlock.answers.workflows import SourceRead, SourceRule, Workflow, distinct

_USUAL = 0.5
_AUTHORITATIVE = 0.75
"""How much one source is worth by itself: another one halves, or quarters, the doubt that is left."""
_NOTHING = ("unsupported", "echo")

Trace = Callable[[Sequence[Source]], Grounded]


def rule_of(workflow: Workflow) -> SourceRule:
    """What counts as authoritative in it: by the last phase that says so."""
    rules = [phase.done.rule for phase in workflow.phases if phase.done.rule.authoritative]
    return rules[-1] if rules else SourceRule()


def cross_check(
    claims: Iterable[Support], read: Sequence[SourceRead], evidence: Sequence[Source], rule: SourceRule, trace: Trace
) -> tuple[Support, ...]:
    """The claims, each with the distinct sources that say it and how sure that makes it.

    `trace` holds the answer against some evidence: each source is asked alone whether it says the claim.
    """
    by_record = {source.id: source for source in evidence}
    saying: dict[tuple[int, int], list[SourceRead]] = {}
    for one in read:
        source = by_record.get(f"record {one.record}")
        if source is None:
            continue
        for claim in trace([source]).claims:
            if claim.how not in _NOTHING:
                saying.setdefault((claim.start, claim.end), []).append(one)
    return tuple(_with_sources(claim, saying.get((claim.start, claim.end), ()), rule) for claim in claims)


def _with_sources(claim: Support, saying: Sequence[SourceRead], rule: SourceRule) -> Support:
    if claim.how in _NOTHING or not saying:
        return claim
    sites = dict.fromkeys(one.site for one in saying)
    worth = sorted((_worth(site, saying, rule) for site in sites), reverse=True)
    doubt = 1.0
    for one in worth[: distinct(saying)]:  # two that say the same in the same words are one
        doubt *= 1.0 - one
    return replace(claim, sites=tuple(sites), confidence=round(1.0 - doubt, 4))


def _worth(site: str, saying: Sequence[SourceRead], rule: SourceRule) -> float:
    best = any(is_one_of(one.name, rule.authoritative) for one in saying if one.site == site)
    return _AUTHORITATIVE if best else _USUAL
