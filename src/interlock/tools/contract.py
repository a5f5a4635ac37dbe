"""`Tool`: the contract between a function and everything that may call it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from interlock.errors import ContractError
from interlock.ports import Resource
from interlock.tools.effect_words import effect_words
from interlock.tools.effects import Compensation, Invariants, KeyOf, KeyTemplate, Probe, Simulate, refuse_bad_effect
from interlock.tools.inputs import Input, ModelInput, SchemaInput
from interlock.tools.known_values import KnownValues
from interlock.tools.options import Limits, RetryRule, check_options
from interlock.tools.redacted_fields import refuse_unknown_fields
from interlock.tools.result_fields import ResultField
from interlock.tools.results import Output
from interlock.tools.signature import Body, describe, function_of, is_async, name_of, read_signature
from interlock.values import Effect, Json, Trust

if TYPE_CHECKING:
    from pydantic import BaseModel

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_OURS = "interlock."


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A contract: what the tool takes, gives, does to the world, needs and may cost."""

    name: str
    description: str
    effect: Effect
    input: Input
    output: Output
    body: Body
    is_async: bool
    wants_context: bool
    nothing_is_ok: bool
    deadline_us: int
    cost_micros: int
    key: KeyOf | None = None
    timeout_s: float
    deadline_s: float
    retry: RetryRule
    capabilities: frozenset[str] = frozenset()
    trust: Trust = Trust.TRUSTED
    redact: frozenset[str] = frozenset()
    retention: timedelta | None = None
    """How long what lies beside its records is kept, where `audit purge` is run; None: as long as nobody says."""
    limits: Limits = Limits()
    egress: object | None = None
    known_values: dict[str, KnownValues] = {}
    """The known values of arguments: what somebody calls them becomes their id."""
    fields: dict[str, ResultField] = {}
    """What the fields of its result are: an answer is held against their units and meanings."""
    locks: KeyOf | None = None
    """What is held while it changes anything: keys that are leased, not changed."""
    resource: Resource | None = None
    simulate: Simulate | None = None
    invariants: Invariants | None = None
    probe: Probe | None = None
    compensate: Compensation | None = None
    review_when: str | None = None
    """A condition under which a person decides, whatever the policy allows."""
    operator: bool = False
    """Made by operations alone: a model is not shown it, and a call that takes nothing back is refused."""
    once_per: str = "turn"
    repeatable: bool = False
    idempotent: bool = False
    """The other side honours the idempotency key, so that even a lost answer may be tried again."""
    says: tuple[str, ...] = ()
    """The words for its effect: answers that use them are held against the records of its calls."""

    def __call__(self, *_arguments: Any, **_named: Any) -> NoReturn:
        """A tool is not called like a function: that call would be ungoverned. The sentence says how instead."""
        raise TypeError(
            f"{self.name} is a tool, so its calls are governed: await Runtime.call({self.name!r}, {{...}}, actor=...);"
            f" in a unit test, call it without that by interlock.testing.call_ungoverned({self.name}, ...)"
        )

    def __hash__(self) -> int:
        return hash(self.name)  # a frozen Struct would hash its fields, and dicts among them have no hash

    def manifest(self) -> dict[str, Json]:
        """What a model is shown: name, description, parameters."""
        return {"name": self.name, "description": self.description, "parameters": self.input.schema}

    @classmethod
    def from_schema(
        cls,
        name: str,
        function: Callable[[dict[str, Json]], Any],
        *,
        schema: dict[str, Json],
        effect: str | Effect,
        description: str = "",
        **options: Any,
    ) -> Tool:
        """A tool whose contract arrived as JSON Schema (MCP, OpenAPI); `function` takes the arguments as one dict."""
        _refuse_bad_name(name)
        gives = options.pop("output", Any)
        one = function_of(function)
        text = description or describe(one)
        body = _Body(lambda parsed, _context: one(parsed.bound), is_async(one))
        return _build(_Declaration(name, text, SchemaInput(schema), Output(gives, name), body), effect, options)

    @classmethod
    def from_models(
        cls,
        name: str,
        function: Callable[[Any], Any],
        *,
        takes: type[BaseModel],
        gives: Any,
        effect: str | Effect,
        **options: Any,
    ) -> Tool:
        """A tool whose contract is a pair of models; `function` takes one instance of `takes` and returns `gives`."""
        from pydantic import BaseModel

        _refuse_bad_name(name)
        if not isinstance(takes, type) or not issubclass(takes, BaseModel):
            raise ContractError(f"{name}: takes= is a Pydantic model, not {takes!r}")
        one = function_of(function)
        text = describe(one) or describe(takes)
        body = _Body(lambda parsed, _context: one(parsed.bound), is_async(one))
        return _build(_Declaration(name, text, ModelInput(takes), Output(gives, name), body), effect, options)


class _Body(msgspec.Struct, frozen=True):
    """A function behind the one way it is called."""

    run: Body
    is_async: bool
    wants_context: bool = False


class _Declaration(msgspec.Struct, frozen=True):
    """What a tool is, before what is said about it."""

    name: str
    description: str
    takes: Input
    gives: Output
    body: _Body


def tool(
    misplaced: None = None, /, *, effect: str | Effect | None = None, name: str | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Tool]:
    """Turn an annotated function, sync or async, into a `Tool`: `@tool(effect="read")`.

    Options: timeout_s, deadline_s, retry, capabilities, trust, redact, retention, limits, egress, known_values, fields;
    for what changes the world also key, locks, resource, simulate, invariants, probe, compensate, review_when,
    once_per, repeatable, idempotent and says (see `Tool`).
    """
    if misplaced is not None:
        raise _explain_misplaced(misplaced)

    def decorate(given: Callable[..., Any]) -> Tool:
        if isinstance(given, Tool):
            raise ContractError(f"{given.name} is a tool already; decorate it once")
        function = function_of(given)
        called = name_of(function) if name is None else name
        _refuse_bad_name(called)
        # Annotations are texts in most modules; a class that is local to the caller is found in its frame alone.
        signature = read_signature(function, called, sys._getframe(1).f_locals)
        body = _Body(signature.body, is_async(function), signature.wants_context)
        takes, gives = ModelInput(signature.takes, ours=True), Output(signature.gives, called)
        return _build(_Declaration(called, describe(function), takes, gives, body), effect, options)

    return decorate


def _explain_misplaced(given: object) -> ContractError:
    if isinstance(given, str):
        return ContractError(f"write @tool(effect={given!r}): its options are named")
    called = getattr(given, "__name__", "it")
    return ContractError(
        f'@tool needs to know what {called} does to the world: write @tool(effect="read") above it ("write" if it'
        ' changes what can be read back, "send" if it cannot be taken back)'
    )


def _refuse_bad_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ContractError(f"{name!r} is not a tool name: letters, digits, '_', '.', '-', at most 64, no digit first")
    if name.startswith(_OURS):
        raise ContractError(f"{name!r} is not a tool name: what begins with {_OURS!r} is Interlock's own in the ledger")


def _build(made: _Declaration, effect: str | Effect | None, options: dict[str, Any]) -> Tool:
    name = made.name
    given = {
        "timeout_s": 30.0,
        "retry": RetryRule(),
        "limits": Limits(),
        **check_options(name, {"effect": effect, **options}),
    }
    given["deadline_s"] = given.get("deadline_s") or _longest_s(given["timeout_s"], given["retry"])
    if given["effect"] is not Effect.READ:
        given["says"] = effect_words(name, made.description, given.get("says", ()))
    built = Tool(
        name=name,
        description=made.description,
        input=made.takes,
        output=made.gives,
        body=made.body.run,
        is_async=made.body.is_async,
        wants_context=made.body.wants_context,
        # A read that returns None found nothing; a change that returns None did what it does.
        nothing_is_ok=made.gives.nothing_is_ok and given["effect"] is not Effect.READ,
        deadline_us=round(given["deadline_s"] * 1_000_000),
        cost_micros=round(given["limits"].cost_usd * 1_000_000),
        **given,
    )
    _refuse_unknown_parameters(built)
    if built.egress is not None and not callable(getattr(built.egress, "check", None)):
        raise ContractError(f"{name}: egress is an interlock.tools.egress.Egress, not {type(built.egress).__name__}")
    refuse_bad_effect(built)
    return built


def _refuse_unknown_parameters(made: Tool) -> None:
    """Options that speak about arguments can only name those that there are."""
    known = made.input.schema.get("properties", {})
    unknown = sorted(set(made.known_values) - set(known))
    if unknown:
        raise ContractError(f"{made.name}: known_values of {', '.join(unknown)}, which are no parameters of it")
    if made.input.schema.get("additionalProperties") is False:  # others may take arguments that they do not name
        for key in (made.key, made.locks):
            if isinstance(key, KeyTemplate):
                key.refuse_unknown(known)
    if made.redact and not made.operator:  # what operators use is made of other tools' contracts
        is_open = made.resource is not None or made.output.has_metadata
        refuse_unknown_fields(made.name, made.redact, (made.input.schema, *made.output.schemas()), is_open=is_open)


def _longest_s(timeout_s: float, rule: RetryRule) -> float:
    """The bound on one call with all its attempts and waits, unless the tool sets another."""
    # Without jitter: the longest that it can be.
    waits = sum(min(rule.cap_s, rule.base_s * rule.factor**n) for n in range(rule.max_attempts - 1))
    return timeout_s * rule.max_attempts + waits
