"""`Tool`: the contract between a function and everything that may call it."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

import msgspec
from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from interlock.errors import ContractError
from interlock.ports import Resource
from interlock.tools.effects import (
    Compensation,
    Invariants,
    KeyOf,
    Probe,
    Simulate,
    key_of,
    refuse_bad_effect,
    simulate_of,
)
from interlock.tools.inputs import Input, ModelInput, Parsed, SchemaInput
from interlock.tools.known_values import KnownValues, check_known_values
from interlock.tools.results import Output
from interlock.values import Context, Effect, Json, Trust

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")

Body = Callable[[Parsed, Context | None], Any]


class RetryRule(msgspec.Struct, frozen=True, kw_only=True):
    """How often a failed attempt is repeated, and how long to wait: exponential, full jitter."""

    max_attempts: int = 3
    base_s: float = 0.2
    factor: float = 2.0
    cap_s: float = 10.0


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one tool: size of its result, calls at once, price, and when to stop trying it at all."""

    max_bytes: int = 262_144
    concurrency: int | None = None
    cost_usd: float = 0.0
    breaker_failures: int = 5
    breaker_reset_s: float = 30.0


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
    limits: Limits = Limits()
    egress: object | None = None
    known_values: dict[str, KnownValues] = {}
    """The known values of arguments: what somebody calls them becomes their id."""
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
        _refuse_generators(function, name)
        return _build(
            name,
            description or inspect.getdoc(function) or "",
            SchemaInput(schema),
            Output(options.pop("output", Any), name),
            _Bound(lambda parsed, _context: function(parsed.bound), _is_async(function)),
            {"effect": effect, **options},
        )

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
        _refuse_generators(function, name)
        return _build(
            name,
            inspect.getdoc(function) or inspect.getdoc(takes) or "",
            ModelInput(takes),
            Output(gives, name),
            _Bound(lambda parsed, _context: function(parsed.bound), _is_async(function)),
            {"effect": effect, **options},
        )


class _Bound(msgspec.Struct, frozen=True):
    """A function behind the one way it is called."""

    run: Body
    is_async: bool
    wants_context: bool = False


def tool(*, effect: str | Effect, name: str | None = None, **options: Any) -> Callable[[Callable[..., Any]], Tool]:
    """Turn an annotated function, sync or async, into a `Tool`.

    Options: timeout_s, deadline_s, retry, capabilities, trust, redact, limits, egress, candidates; for what changes the
    world also key, locks, resource, simulate, invariants, probe, compensate, review_when, once_per, repeatable and
    idempotent (see `Tool`).
    """

    def decorate(function: Callable[..., Any]) -> Tool:
        called = name or function.__name__
        _refuse_generators(function, called)
        hints, defaults, context_name = _signature(function, called, sys._getframe(1).f_locals)
        model, aliases = _model(called, hints, defaults)
        return _build(
            called,
            inspect.getdoc(function) or "",
            ModelInput(model, ours=True),
            Output(hints["return"], called),
            _Bound(_bind(function, aliases, context_name), _is_async(function), context_name is not None),
            {"effect": effect, **options},
        )

    return decorate


def _build(name: str, text: str, takes: Input, gives: Output, body: _Bound, options: dict[str, Any]) -> Tool:
    if not _NAME.fullmatch(name):
        raise ContractError(f"{name!r} is not a tool name: letters, digits, '_', '.', '-', at most 64, no digit first")
    try:
        options["effect"] = Effect(options["effect"])
        options["trust"] = Trust(options.get("trust", Trust.TRUSTED))
    except ValueError as error:
        raise ContractError(f"{name}: {error}; effects are {', '.join(Effect)}, trust is {', '.join(Trust)}") from None
    for option in ("capabilities", "redact"):
        given = options.get(option, ())
        if isinstance(given, str):
            raise ContractError(f"{name}: {option} is a set of names; write {{{given!r}}}")
        options[option] = frozenset(given)
    try:
        given = {"timeout_s": 30.0, "retry": RetryRule(), **options, "key": key_of(options.get("key"))}
        given["locks"] = key_of(options.get("locks"))
        given["simulate"] = simulate_of(options.get("simulate"))
        given["known_values"] = check_known_values(name, options.get("known_values"))
        given["deadline_s"] = options.get("deadline_s") or _longest_s(given["timeout_s"], given["retry"])
        made = Tool(
            name=name,
            description=text,
            input=takes,
            output=gives,
            body=body.run,
            is_async=body.is_async,
            wants_context=body.wants_context,
            nothing_is_ok=gives.nothing_is_ok and options["effect"] is not Effect.READ,
            deadline_us=round(given["deadline_s"] * 1_000_000),
            cost_micros=round(given.get("limits", Limits()).cost_usd * 1_000_000),
            **given,
        )
    except TypeError as error:
        known = ", ".join(sorted(set(Tool.__struct_fields__) - {"name", "description", "input", "output", "body"}))
        raise ContractError(f"{name}: {error}; a tool's options are {known}") from None
    if made.timeout_s <= 0 or made.retry.max_attempts < 1:
        raise ContractError(f"{name}: timeout_s must be above 0 and retry.max_attempts at least 1")
    unknown = set(made.known_values) - set(takes.schema.get("properties", {}))
    if unknown:
        raise ContractError(f"{name}: candidates for {', '.join(sorted(unknown))}, which are no parameters of it")
    if made.egress is not None and not callable(getattr(made.egress, "check", None)):
        raise ContractError(f"{name}: egress is an interlock.tools.egress.Egress, not {type(made.egress).__name__}")
    refuse_bad_effect(made)
    return made


def _longest_s(timeout_s: float, rule: RetryRule) -> float:
    """The bound on one call with all its attempts and waits, unless the tool sets another."""
    waits = sum(min(rule.cap_s, rule.base_s * rule.factor**n) for n in range(rule.max_attempts - 1))
    return timeout_s * rule.max_attempts + waits


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _refuse_generators(function: Callable[..., Any], name: str) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ContractError(f"{name}: generator tools are refused; return one whole value")


def _signature(
    function: Callable[..., Any], name: str, around: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """Annotations, defaults, and the parameter that takes the context; names are looked up where it is decorated."""
    try:
        hints = get_type_hints(function, localns=around, include_extras=True)
    except NameError as error:
        raise ContractError(f"{name}: an annotation cannot be resolved: {error}") from None
    defaults: dict[str, Any] = {}
    context_name = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ContractError(f"{name}: parameter {parameter} has no name a caller can use; spell it out")
        if parameter.name not in hints:
            raise ContractError(f"{name}: parameter {parameter.name!r} has no annotation; a contract needs its type")
        if hints[parameter.name] is Context:
            context_name = parameter.name
            continue
        defaults[parameter.name] = ... if parameter.default is parameter.empty else parameter.default
    if "return" not in hints:
        raise ContractError(f"{name}: the return type has no annotation; a contract needs it (Any is allowed)")
    return hints, defaults, context_name


def _model(name: str, hints: dict[str, Any], defaults: dict[str, Any]) -> tuple[type[BaseModel], dict[str, str]]:
    """A strict model of the parameters; names that Pydantic keeps for itself are carried as aliases."""
    aliases: dict[str, str] = {}
    fields: dict[str, Any] = {}
    for parameter, default in defaults.items():
        clash = parameter.startswith(("_", "model_")) or hasattr(BaseModel, parameter)
        attribute = f"arg_{parameter.strip('_')}" if clash else parameter
        aliases[attribute] = parameter
        fields[attribute] = (hints[parameter], Field(default, alias=parameter) if clash else default)
    try:
        config = ConfigDict(strict=True, extra="forbid", populate_by_name=False)
        return create_model(name.replace(".", "_"), __config__=config, **fields), aliases
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise ContractError(f"{name}: a parameter's type cannot be described: {error}") from None


def _bind(function: Callable[..., Any], aliases: dict[str, str], context_name: str | None) -> Body:
    """How validated fields become the function's keyword arguments."""
    plain = all(attribute == parameter for attribute, parameter in aliases.items())

    def call(parsed: Parsed, context: Context | None) -> Awaitable[Any] | Any:
        given = parsed.bound
        if not plain:
            given = {parameter: given[attribute] for attribute, parameter in aliases.items()}
        if context_name is not None:
            given = {**given, context_name: context}
        return function(**given)

    if plain and context_name is None:
        return lambda parsed, _context: function(**parsed.bound)
    return call
