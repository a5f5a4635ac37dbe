"""AgentBriefingEvent 1.1.0, filled from records: nothing in it is guessed from words."""

from __future__ import annotations

import uuid
from datetime import date
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from shapely.geometry import mapping

from interlock_ranger.agents import TOOLS
from interlock_ranger.briefing.compose import Briefing, RecordedResult
from interlock_ranger.evidence import freshness

SCHEMA_VERSION = "1.1.0"
_EVENT_IDS = uuid.UUID("6f3f5a0e-5b0c-5c3e-9b8e-0d1d5f1f7a11")
"""The namespace that ids of events are derived in; any fixed one would do."""
_SUMMARY_CHARACTERS, _LABEL_CHARACTERS, _EXCERPT_CHARACTERS = 240, 60, 160
_CLOSING_MONTHS = 6
"""A salvage window that ends within so many months calls for action."""
_OUTLINE_DEG = 0.001
"""How far a simplified perimeter may be from the true one: about 100 metres, for a highlight on a map."""
AGENT_OF = {tool: agent for agent, tools in TOOLS.items() for tool in tools}


class EventPart(BaseModel):
    """No field beside those of the schema."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class EventType(StrEnum):
    ALERT = "alert"
    INSIGHT = "insight"
    ACTION_REQUIRED = "action_required"
    STATUS_UPDATE = "status_update"


class EventSeverity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class SuggestedAction(EventPart):
    """Something to do about it."""

    action_id: str
    label: str
    target_agent: str
    description: str
    rationale: str


class Content(EventPart):
    summary: str
    detail: str
    suggested_actions: tuple[SuggestedAction, ...]


class UiBinding(EventPart):
    """Where it is shown."""

    target: Literal["map_highlight", "rail_pulse", "panel_inject", "modal_interrupt"]
    geo_reference: dict[str, Any] | None


class LedgerInput(EventPart):
    """A source with what it is worth."""

    source: str
    confidence: float = Field(ge=0, le=1)
    tier: Literal[1, 2, 3]
    notes: str


class ConfidenceLedger(EventPart):
    """Where a confidence comes from."""

    inputs: tuple[LedgerInput, ...]
    analysis_confidence: float = Field(ge=0, le=1)
    recommendation_confidence: float = Field(ge=0, le=1)


class Citation(EventPart):
    """A record, rule or file."""

    source_type: Literal["record", "rule", "file"]
    id: str
    uri: str
    excerpt: str


class ProofLayer(EventPart):
    """Why it may be believed."""

    confidence: float = Field(ge=0, le=1)
    confidence_ledger: ConfidenceLedger | None
    citations: tuple[Citation, ...]
    reasoning_chain: tuple[str, ...]


class AgentBriefingEvent(EventPart):
    schema_version: Literal["1.1.0"]
    event_id: uuid.UUID
    parent_event_id: uuid.UUID | None
    correlation_id: str
    timestamp: str
    type: EventType
    source_agent: Literal["coordinator", "trail_assessor", "burn_analyst", "cruising_assistant", "nepa_advisor"]
    severity: EventSeverity
    ui_binding: UiBinding
    content: Content
    proof_layer: ProofLayer


class Grade(NamedTuple):
    type: EventType
    severity: EventSeverity


_INSIGHT = Grade(EventType.INSIGHT, EventSeverity.INFO)


def build_events(briefing: Briefing, timestamp: str) -> tuple[AgentBriefingEvent, ...]:
    """One event for each result, under one of the coordinator's."""
    head = _event_id(briefing, "briefing")
    events = [_result_event(briefing, result, head, timestamp) for result in briefing.results]
    # By their place, as texts sort otherwise: critical before info.
    worst = max((event.severity for event in events), key=list(EventSeverity).index, default=EventSeverity.INFO)
    turn, missing = briefing.turn, [gap.tool for gap in briefing.gaps]
    whole = AgentBriefingEvent(
        schema_version=SCHEMA_VERSION,
        event_id=head,
        parent_event_id=None,
        correlation_id=turn.turn,
        timestamp=timestamp,
        type=EventType.STATUS_UPDATE,
        source_agent="coordinator",
        severity=worst,
        ui_binding=UiBinding(target="panel_inject", geo_reference=None),
        content=Content(
            summary=f"Briefing on {briefing.fire.facts.name}: {len(events)} findings of four specialists"
            + (f", nothing on file for {', '.join(dict.fromkeys(missing))}" if missing else ""),
            detail=turn.answer,
            suggested_actions=(),
        ),
        proof_layer=ProofLayer(
            confidence=briefing.confidence or 0.0,
            # The whole has no sources of its own; every event below it has a ledger.
            confidence_ledger=None,
            citations=tuple(_cite_record(briefing, number) for number in turn.records),
            reasoning_chain=tuple(f"{result.tool}: record {result.record}" for result in briefing.results),
        ),
    )
    return (whole, *events)


def _event_id(briefing: Briefing, name: str) -> uuid.UUID:
    """The same event of the same turn has the same id."""
    return uuid.uuid5(_EVENT_IDS, f"{briefing.turn.turn}/{name}")


def _result_event(briefing: Briefing, result: RecordedResult, head: uuid.UUID, timestamp: str) -> AgentBriefingEvent:
    grade = grade_result(result)
    evidence = result.value["evidence"]
    agent: Any = AGENT_OF[result.tool]
    return AgentBriefingEvent(
        schema_version=SCHEMA_VERSION,
        event_id=_event_id(briefing, str(result.record)),
        parent_event_id=head,
        correlation_id=briefing.turn.turn,
        timestamp=timestamp,
        type=grade.type,
        source_agent=agent,
        severity=grade.severity,
        ui_binding=_binding(briefing, agent, grade.severity),
        content=Content(
            summary=result.summary[:_SUMMARY_CHARACTERS],
            detail=result.summary,
            suggested_actions=tuple(
                SuggestedAction(
                    action_id=f"{result.record}-{n}",
                    label=advice["text"][:_LABEL_CHARACTERS],
                    target_agent=agent,
                    description=advice["text"],
                    rationale=f"rule {advice['rule']}",
                )
                for n, advice in enumerate(evidence["recommendations"], 1)
            ),
        ),
        proof_layer=_proof(briefing, result, evidence),
    )


def grade_result(result: RecordedResult) -> Grade:
    """Type and severity, by values of the result and never by words of a text."""
    value = result.value
    match result.tool:
        case "assess_severity":
            critical = any(sector["erosion_risk"] == "critical" for sector in value["sectors"])
            return Grade(EventType.ALERT, EventSeverity.CRITICAL) if critical else _INSIGHT
        case "evaluate_closure":
            return Grade(EventType.ALERT, EventSeverity.WARNING) if value["closed_count"] else _INSIGHT
        case "validate_boundary":
            return Grade(EventType.STATUS_UPDATE, _VERDICT_SEVERITY[value["verdict"]])
        case "decide_pathway":
            open_ = value["pathway"] in ("ASK", "PROHIBITED")
            return Grade(EventType.ACTION_REQUIRED, EventSeverity.WARNING) if open_ else _INSIGHT
        case "assess_salvage":
            closing = any(map(_is_closing, value["stands"]))
            return Grade(EventType.ACTION_REQUIRED, EventSeverity.WARNING) if closing else _INSIGHT
        case _:
            return _INSIGHT


_VERDICT_SEVERITY = {
    "INVALID": EventSeverity.CRITICAL,
    "WARNING": EventSeverity.WARNING,
    "VALID": EventSeverity.INFO,
}


def _is_closing(stand: dict[str, Any]) -> bool:
    months: float = stand["window_ends_in_months"]
    # A window that has ended calls for nothing any more.
    return stand["viability"] == "VIABLE" and 0 < months <= _CLOSING_MONTHS


def _binding(briefing: Briefing, agent: str, severity: EventSeverity) -> UiBinding:
    if agent not in ("burn_analyst", "trail_assessor"):  # what the others say lies nowhere on a map
        return UiBinding(target="panel_inject", geo_reference=None)
    fire = briefing.fire
    feature = {
        "type": "Feature",
        "properties": {"fire_id": fire.id, "synthetic": fire.facts.synthetic},
        "geometry": mapping(fire.perimeter.simplify(_OUTLINE_DEG)),
    }
    target: Any = "rail_pulse" if severity is EventSeverity.INFO else "map_highlight"
    return UiBinding(target=target, geo_reference=feature)


def _proof(briefing: Briefing, result: RecordedResult, evidence: dict[str, Any]) -> ProofLayer:
    confidence, sources = evidence["confidence"], evidence["data_sources"]
    rules = dict.fromkeys(step["rule"] for step in evidence["reasoning"])
    return ProofLayer(
        confidence=confidence["score"],
        confidence_ledger=ConfidenceLedger(
            inputs=tuple(_ledger_input(briefing, source) for source in sources),
            analysis_confidence=round(confidence["completeness"] * confidence["precision"], 3),
            recommendation_confidence=confidence["score"],
        ),
        citations=(
            _cite_record(briefing, result.record),
            *(Citation(source_type="rule", id=name, uri=f"interlock:rule/{name}", excerpt="") for name in rules),
            *(
                Citation(source_type="file", id=s["file"], uri=f"sha256:{s['sha256']}", excerpt=f"of {s['dated']}")
                for s in sources
            ),
        ),
        reasoning_chain=tuple(f"{step['text']} [{step['rule']}]" for step in evidence["reasoning"]),
    )


def _ledger_input(briefing: Briefing, source: dict[str, Any]) -> LedgerInput:
    return LedgerInput(
        source=source["file"],
        confidence=freshness(briefing.day, date.fromisoformat(source["dated"])),
        tier=3 if source["synthetic"] else 2,
        notes=f"dated {source['dated']}, sha256 {source['sha256']}" + (", SYNTHETIC" * source["synthetic"]),
    )


def _cite_record(briefing: Briefing, number: int) -> Citation:
    summary = next((result.summary for result in briefing.results if result.record == number), "")
    return Citation(
        source_type="record",
        id=str(number),
        uri=f"interlock:record/{number}",
        excerpt=summary[:_EXCERPT_CHARACTERS],
    )
