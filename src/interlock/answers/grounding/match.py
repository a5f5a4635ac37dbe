"""Whether what an answer claims stands in the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from interlock.answers.grounding.evidence import Source
from interlock.answers.grounding.kept_evidence import KeptEvidence
from interlock.answers.grounding.meaning import ToolMeaning
from interlock.answers.grounding.normal_text import normalise
from interlock.answers.grounding.support import Grounded, Support
from interlock.answers.grounding.tracing import Tracer
from interlock.answers.grounding.vocabulary import Vocabulary, default_vocabulary
from interlock.config import TextLimits

_NO_MEANINGS: Mapping[str, ToolMeaning] = MappingProxyType({})


def ground(
    answer: str,
    sources: Sequence[Source],
    vocabulary: Vocabulary | None = None,
    limits: TextLimits | None = None,
    meanings: Mapping[str, ToolMeaning] | None = None,
    kept: KeptEvidence | None = None,
) -> Grounded:
    """Trace every claim of an answer to where it comes from.

    The work has a bound that follows from the limits: an answer with more in it is not checked, and so not supported.
    `kept`: what was read in the sources for an earlier answer, and is not read again.
    """
    words, limits = vocabulary or default_vocabulary(), limits or TextLimits()
    if len(answer) > limits.max_draft_chars:
        return Grounded(unchecked=_over(len(answer), "characters", limits.max_draft_chars, "max_draft_chars"))
    normal = normalise(answer)
    said = words.claims(normal.text)
    if len(said) > limits.max_claims:
        return Grounded(unchecked=_over(len(said), "figures, names and dates", limits.max_claims, "max_claims"))
    evidence = (kept or KeptEvidence()).read(sources, words, limits.max_evidence_chars, meanings)
    found = Tracer(normal.text, said, evidence, words, _NO_MEANINGS if meanings is None else meanings).run()
    grounded = Grounded(
        tuple(_as_written(support, answer, normal.locate(support.start, support.end)) for support in found)
    )
    # Where everything is supported by what was read, it does not matter that there was more.
    if evidence.cut and not grounded.is_supported:
        why = f"only the first {limits.max_evidence_chars:,} characters of the results are read (max_evidence_chars)"
        return Grounded(grounded.claims, why)
    return grounded


def _over(count: int, what: str, limit: int, setting: str) -> str:
    return f"an answer of {count:,} {what} is not checked: at most {limit:,} are ({setting})"


def _as_written(support: Support, answer: str, span: tuple[int, int]) -> Support:
    """A claim at its place in the answer, in the letters of the answer."""
    same = answer.startswith(support.text, span[0]) or support.text in answer  # the first costs nothing
    text = support.text if same else answer[span[0] : span[1]]
    return replace(support, text=text, start=span[0], end=span[1])


def ground_safely(
    answer: str,
    sources: Sequence[Source],
    vocabulary: Vocabulary | None = None,
    limits: TextLimits | None = None,
    meanings: Mapping[str, ToolMeaning] | None = None,
    kept: KeptEvidence | None = None,
) -> Grounded:
    """The same for a text that may hold anything: what cannot be read is supported by nothing."""
    try:
        return ground(answer, sources, vocabulary, limits, meanings, kept)
    except Exception as error:  # noqa: BLE001 - a fault in a check must hold the answer back, not let it out
        text = f"(a text that cannot be checked: {type(error).__name__})"
        return Grounded((Support(text, "number", 0, len(answer)),))
