"""AgentBriefingEvent 1.1.0, filled from records: nothing in it is guessed from words."""

from __future__ import annotations

import uuid
from datetime import date
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from shapely.geometry import mapping

from interlock_ranger.briefing.compose import Briefing, Found
from interlock_ranger.evidence import freshness

SCHEMA = "1.1.0"
_SPACE = uuid.UUID("6f3f5a0e-5b0c-5c3e-9b8e-0d1d5f1f7a11")
AGENT_OF = {
    "assess_severity": "burn_analyst",
    "classify_mtbs": "burn_analyst",
    "validate_boundary": "burn_analyst",
    "classify_damage": "trail_assessor",
    "evaluate_closure": "trail_assessor",
    "estimate_volume": "cruising_assistant",
    "assess_salvage": "cruising_assistant",
    "decide_pathway": "nepa_advisor",
}


class Strict(BaseModel):
    """No field beside those of the schema."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Kind(StrEnum):
    """What an event is."""

    ALERT = "alert"
    INSIGHT = "insight"
    ACTION_REQUIRED = "action_required"
    STATUS_UPDATE = "status_update"


class Weight(StrEnum):
    """How grave it is."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class SuggestedAction(Strict):
    """Something to do about it."""

    action_id: str
    label: str
    target_agent: str
    description: str
    rationale: str


class Content(Strict):
    """What is said."""

    summary: str
    detail: str
    suggested_actions: tuple[SuggestedAction, ...]


class UiBinding(Strict):
    """Where it is shown."""

    target: Literal["map_highlight", "rail_pulse", "panel_inject", "modal_interrupt"]
    geo_reference: dict[str, Any] | None


class LedgerInput(Strict):
    """A source with what it is worth."""

    source: str
    confidence: float = Field(ge=0, le=1)
    tier: Literal[1, 2, 3]
    notes: str


class ConfidenceLedger(Strict):
    """Where a confidence comes from."""

    inputs: tuple[LedgerInput, ...]
    analysis_confidence: float = Field(ge=0, le=1)
    recommendation_confidence: float = Field(ge=0, le=1)


class Citation(Strict):
    """A record, rule or file."""

    source_type: Literal["record", "rule", "file"]
    id: str
    uri: str
    excerpt: str


class ProofLayer(Strict):
    """Why it may be believed."""

    confidence: float = Field(ge=0, le=1)
    confidence_ledger: ConfidenceLedger | None
    citations: tuple[Citation, ...]
    reasoning_chain: tuple[str, ...]


class AgentBriefingEvent(Strict):
    """One event."""

    schema_version: Literal["1.1.0"]
    event_id: uuid.UUID
    parent_event_id: uuid.UUID | None
    correlation_id: str
    timestamp: str
    type: Kind
    source_agent: Literal["coordinator", "trail_assessor", "burn_analyst", "cruising_assistant", "nepa_advisor"]
    severity: Weight
    ui_binding: UiBinding
    content: Content
    proof_layer: ProofLayer


def events(briefing: Briefing, timestamp: str) -> tuple[AgentBriefingEvent, ...]:
    """One event for each result, under one of the coordinator's."""
    head = _identity(briefing, "briefing")
    made = [_event(briefing, item, head, timestamp) for item in briefing.found]
    worst = max((event.severity for event in made), key=list(Weight).index, default=Weight.INFO)
    found = briefing.result
    lowest = briefing.confidence or 0.0
    whole = AgentBriefingEvent(
        schema_version=SCHEMA,
        event_id=head,
        parent_event_id=None,
        correlation_id=found.turn,
        timestamp=timestamp,
        type=Kind.STATUS_UPDATE,
        source_agent="coordinator",
        severity=worst,
        ui_binding=UiBinding(target="panel_inject", geo_reference=None),
        content=Content(
            summary=f"Briefing on {briefing.fire.facts.name}: {len(made)} findings of four specialists",
            detail=found.answer,
            suggested_actions=(),
        ),
        proof_layer=ProofLayer(
            confidence=lowest,
            confidence_ledger=None,
            citations=tuple(_record(briefing, number) for number in found.records),
            reasoning_chain=tuple(f"{item.tool}: record {item.record}" for item in briefing.found),
        ),
    )
    return (whole, *made)


def _identity(briefing: Briefing, name: str) -> uuid.UUID:
    """The same event of the same turn has the same id."""
    return uuid.uuid5(_SPACE, f"{briefing.result.turn}/{name}")


def _event(briefing: Briefing, item: Found, head: uuid.UUID, timestamp: str) -> AgentBriefingEvent:
    kind, weight = graded(item)
    evidence = item.value["evidence"]
    agent: Any = AGENT_OF[item.tool]
    return AgentBriefingEvent(
        schema_version=SCHEMA,
        event_id=_identity(briefing, str(item.record)),
        parent_event_id=head,
        correlation_id=briefing.result.turn,
        timestamp=timestamp,
        type=kind,
        source_agent=agent,
        severity=weight,
        ui_binding=_binding(briefing, item, weight),
        content=Content(
            summary=item.said[:240],
            detail=item.said,
            suggested_actions=tuple(
                SuggestedAction(
                    action_id=f"{item.record}-{n}",
                    label=advice["text"][:60],
                    target_agent=agent,
                    description=advice["text"],
                    rationale=f"rule {advice['rule']}",
                )
                for n, advice in enumerate(evidence["recommendations"], 1)
            ),
        ),
        proof_layer=_proof(briefing, item, evidence),
    )


def graded(item: Found) -> tuple[Kind, Weight]:
    """Type and severity, by values of the result and never by words of a text."""
    value = item.value
    match item.tool:
        case "assess_severity":
            critical = any(sector["erosion_risk"] == "critical" for sector in value["sectors"])
            return (Kind.ALERT, Weight.CRITICAL) if critical else (Kind.INSIGHT, Weight.INFO)
        case "evaluate_closure":
            return (Kind.ALERT, Weight.WARNING) if value["closed_count"] else (Kind.INSIGHT, Weight.INFO)
        case "validate_boundary":
            grave = {"INVALID": Weight.CRITICAL, "WARNING": Weight.WARNING, "VALID": Weight.INFO}[value["verdict"]]
            return Kind.STATUS_UPDATE, grave
        case "decide_pathway":
            asks = value["pathway"] in ("ASK", "PROHIBITED")
            return (Kind.ACTION_REQUIRED, Weight.WARNING) if asks else (Kind.INSIGHT, Weight.INFO)
        case "assess_salvage":
            closing = any(0 < s["window_ends_in_months"] <= 6 and s["viability"] == "VIABLE" for s in value["stands"])
            return (Kind.ACTION_REQUIRED, Weight.WARNING) if closing else (Kind.INSIGHT, Weight.INFO)
        case _:
            return Kind.INSIGHT, Weight.INFO


def _binding(briefing: Briefing, item: Found, weight: Weight) -> UiBinding:
    if AGENT_OF[item.tool] not in ("burn_analyst", "trail_assessor"):
        return UiBinding(target="panel_inject", geo_reference=None)
    fire = briefing.fire
    feature = {
        "type": "Feature",
        "properties": {"fire_id": fire.id, "synthetic": fire.facts.synthetic},
        "geometry": mapping(fire.perimeter.simplify(0.001)),
    }
    return UiBinding(target="map_highlight" if weight is not Weight.INFO else "rail_pulse", geo_reference=feature)


def _proof(briefing: Briefing, item: Found, evidence: dict[str, Any]) -> ProofLayer:
    trust = evidence["confidence"]
    inputs = tuple(
        LedgerInput(
            source=source["file"],
            confidence=freshness(briefing.day, date.fromisoformat(source["dated"])),
            tier=3 if source["synthetic"] else 2,
            notes=f"dated {source['dated']}, sha256 {source['sha256']}" + (", SYNTHETIC" * source["synthetic"]),
        )
        for source in evidence["data_sources"]
    )
    rules = dict.fromkeys(step["rule"] for step in evidence["reasoning"])
    return ProofLayer(
        confidence=trust["score"],
        confidence_ledger=ConfidenceLedger(
            inputs=inputs, analysis_confidence=trust["completeness"], recommendation_confidence=trust["score"]
        ),
        citations=(
            _record(briefing, item.record),
            *(Citation(source_type="rule", id=name, uri=f"interlock:rule/{name}", excerpt="") for name in rules),
            *(
                Citation(source_type="file", id=s["file"], uri=f"sha256:{s['sha256']}", excerpt=f"of {s['dated']}")
                for s in evidence["data_sources"]
            ),
        ),
        reasoning_chain=tuple(f"{step['said']} [{step['rule']}]" for step in evidence["reasoning"]),
    )


def _record(briefing: Briefing, number: int) -> Citation:
    said = next((item.said for item in briefing.found if item.record == number), "")
    return Citation(source_type="record", id=str(number), uri=f"interlock:record/{number}", excerpt=said[:160])
