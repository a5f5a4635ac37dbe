"""Table-driven cases that people write for their own rules, run by `interlock policy test`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from interlock.canonical import Refusal
from interlock.errors import ConfigError
from interlock.policy.compile import Ruleset
from interlock.policy.conditions import Facts
from interlock.policy.decide import judge, missing_grant
from interlock.policy.provenance import GivenValues, Occurrence, Origin, Trace, TurnHistory
from interlock.toml_text import parse_toml
from interlock.tools import Tool
from interlock.tools.labels import Label, usual_labels
from interlock.values import Call, Effect, Json, Mode, Plan, TurnView, Value

StatedOrigin = Literal["user", "constant", "own", "plain", "outsiders", "free", "model", "nowhere"]


class CallBefore(Value, frozen=True, kw_only=True):
    """A call that was made earlier in the turn, and what it returned."""

    tool: str
    arguments: dict[str, Json] = {}
    value: Json = None


class ProposedCall(Value, frozen=True, kw_only=True):
    """A call that somebody wants to know the verdict on, without making it."""

    tool: str
    arguments: dict[str, Json] = {}
    actor: str = "anyone"
    principal: str = "anyone"
    mode: Mode = Mode.APPLY
    evidence: tuple[str, ...] = ()
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    turn: TurnView = TurnView()
    plan: Plan | None = None
    question: str = ""
    """What the user has said,"""
    intents: tuple[str, ...] = ()
    """what that was taken to ask for,"""
    history: tuple[CallBefore, ...] = ()
    """what was called since,"""
    origins: dict[str, StatedOrigin] = {}
    """and of arguments of which that is to be said, where they come from."""

    def facts(self, arguments: dict[str, Json], ruleset: Ruleset, tools: Mapping[str, Tool]) -> Facts:
        """The snapshot that rules would be asked about."""
        call = Call(
            call_id="proposal",
            tool=self.tool,
            arguments=self.arguments,
            actor=self.actor,
            principal=self.principal,
            mode=self.mode,
            evidence=self.evidence,
            confidence=self.confidence,
        )
        traces = ruleset.rules(self.tool).needs_origins
        given = GivenValues({field: _origin_by_name(label) for field, label in self.origins.items()})
        trace = Trace(self._history_of(tools, ruleset.watched), tools[self.tool], given) if traces else None
        return Facts(call, arguments, ruleset.grant(self.actor), self.turn, self.plan, trace)

    def _history_of(self, tools: Mapping[str, Tool], watched: frozenset[str]) -> TurnHistory:
        seen = TurnHistory(watched)
        seen.say(self.question)
        seen.intents = self.intents
        for number, call in enumerate(self.history, 1):
            labels = tools[call.tool].labels if call.tool in tools else usual_labels()
            seen.note_call(call.tool, call.arguments, call.value)
            reads = call.tool not in tools or tools[call.tool].effect is Effect.READ
            source = seen.index.source(number, call.tool, call.arguments, labels, call.arguments, reads=reads)
            seen.index.take_in(seen.index.take_apart(source, call.value))
        return seen


def _origin_by_name(label: StatedOrigin) -> Origin:
    if label == "nowhere":
        return Origin()
    is_whole = label not in ("free", "model")
    return Origin((Occurrence(0, "", f"what the case calls {label}", Label(label), whole=is_whole),))


class Case(ProposedCall, frozen=True, kw_only=True):
    """One proposal and what must be decided about it."""

    name: str
    expect: str
    rule: str | None = None
    reason: str | None = None
    becomes: dict[str, Json] = {}


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a case gave."""

    case: Case
    verdict: str
    rule: str
    differences: tuple[str, ...]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    case: list[Case]


def load_cases(path: str | Path) -> tuple[Case, ...]:
    """The cases in a TOML file; ConfigError if there is none, or if it holds something else."""
    try:
        raw = parse_toml(Path(path).read_text(encoding="utf-8"))
        return tuple(msgspec.convert(raw, _File).case)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # no TOML, no text, or none of cases: msgspec's error is one as well
        raise ConfigError(
            f"{path}: {error}; a case has name, tool, arguments, expect and more: see docs/policy.md"
        ) from None


def run_case(case: Case, ruleset: Ruleset, tools: Mapping[str, Tool]) -> CaseResult:
    """Decide one case and compare."""
    tool = tools.get(case.tool)
    if tool is None:
        return _compare(case, "deny", "registry", {}, "there is no such tool")
    try:
        parsed = tool.input.parse(case.arguments)
    except Refusal as refusal:
        return _compare(case, "deny", "contract", {}, str(refusal))
    rules = ruleset.rules(tool.name)
    facts = case.facts(parsed.arguments, ruleset, tools)
    refused = missing_grant(tool, facts.grant, case.mode)
    if refused is not None:
        return _compare(case, "deny", "grant", parsed.arguments, refused)
    verdict, after = judge(rules, tool, parsed, facts)
    return _compare(case, verdict.decision.value, verdict.rule, after.arguments, verdict.reason)


def _compare(case: Case, verdict: str, rule: str, arguments: dict[str, Json], reason: str) -> CaseResult:
    differences = []
    expected: list[tuple[str, Any, Any]] = [("verdict", case.expect, verdict)]
    if case.rule is not None:
        expected.append(("rule", case.rule, rule))
    if case.reason is not None and case.reason not in reason:
        differences.append(f"reason should contain {case.reason!r}, is {reason!r}")
    expected.extend((f"arguments.{name}", value, arguments.get(name)) for name, value in case.becomes.items())
    differences.extend(
        f"{what} should be {want!r}, is {got!r} ({reason})" for what, want, got in expected if want != got
    )
    return CaseResult(case=case, verdict=verdict, rule=rule, differences=tuple(differences))
