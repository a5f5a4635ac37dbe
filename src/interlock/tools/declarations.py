"""How a declaration becomes what a `Tool` holds: read from a function, a pair of models or a JSON Schema, and checked.

Loaded with the first tool, not with the library: this is where Pydantic is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from pydantic import BaseModel

from interlock.errors import ContractError
from interlock.tools.bounds import Limits, RetryRule
from interlock.tools.effect_words import effect_words
from interlock.tools.effects import KeyTemplate, refuse_bad_effect
from interlock.tools.inputs import Input, ModelInput
from interlock.tools.labels import labels_of
from interlock.tools.options import check_options
from interlock.tools.redacted_fields import refuse_unknown_fields
from interlock.tools.results import Output
from interlock.tools.roles import choices_in, roles_of
from interlock.tools.schema_input import SchemaInput
from interlock.tools.signature import Body, describe, function_of, is_async, name_of, read_signature, takes_context
from interlock.values import Effect

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_OURS = "interlock."


class _Body(msgspec.Struct, frozen=True):
    """A function behind the one way it is called."""

    run: Body
    is_async: bool
    wants_context: bool = False


class Declaration(msgspec.Struct, frozen=True):
    """What a tool is, before what is said about it."""

    name: str
    description: str
    takes: Input
    gives: Output
    body: _Body


def declare_function(given: Callable[..., Any], name: str | None, around: dict[str, Any]) -> Declaration:
    """An annotated function; names in its annotations are looked up in `around`, too."""
    function = function_of(given)
    called = name_of(function) if name is None else name
    _refuse_bad_name(called)
    signature = read_signature(function, called, around)
    body = _Body(signature.body, is_async(function), signature.wants_context)
    takes, gives = ModelInput(signature.takes, ours=True), Output(signature.gives, called)
    return Declaration(called, describe(function), takes, gives, body)


def declare_schema(
    name: str, function: Callable[..., Any], takes: SchemaInput, description: str, gives: Any
) -> Declaration:
    """A function of one dict (and of the context, if it takes two), whose contract arrived as JSON Schema."""
    _refuse_bad_name(name)
    one = function_of(function)
    text = description or describe(one)
    wants_context = takes_context(one)
    if wants_context:
        body = _Body(lambda parsed, context: one(parsed.bound, context), is_async(one), wants_context=True)
    else:
        body = _Body(lambda parsed, _context: one(parsed.bound), is_async(one))
    return Declaration(name, text, takes, Output(gives, name), body)


def declare_models(name: str, function: Callable[[Any], Any], takes: type[BaseModel], gives: Any) -> Declaration:
    """A function of one instance of a model."""
    _refuse_bad_name(name)
    if not isinstance(takes, type) or not issubclass(takes, BaseModel):
        raise ContractError(f"{name}: takes= is a Pydantic model, not {takes!r}")
    one = function_of(function)
    text = describe(one) or describe(takes)
    body = _Body(lambda parsed, _context: one(parsed.bound), is_async(one))
    return Declaration(name, text, ModelInput(takes), Output(gives, name), body)


def _refuse_bad_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ContractError(f"{name!r} is not a tool name: letters, digits, '_', '.', '-', at most 128 of them")
    if name.startswith(_OURS):
        raise ContractError(f"{name!r} is not a tool name: what begins with {_OURS!r} is Interlock's own in the ledger")


def complete(made: Declaration, effect: str | Effect | None, options: dict[str, Any]) -> dict[str, Any]:
    """The fields of the `Tool`: what was declared, with the options checked and the rest filled in."""
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
    given["labels"] = labels_of(given)
    given["roles"] = roles_of(made.takes.schema, given.get("roles", {}))
    given["choices"] = choices_in(made.takes.schema)
    for option in ("free", "outsiders", "own"):
        given.pop(option, None)
    return {
        "name": name,
        "description": made.description,
        "input": made.takes,
        "output": made.gives,
        "body": made.body.run,
        "is_async": made.body.is_async,
        "wants_context": made.body.wants_context,
        # A read that returns None found nothing; a change that returns None did what it does.
        "nothing_is_ok": made.gives.nothing_is_ok and given["effect"] is not Effect.READ,
        "deadline_us": round(given["deadline_s"] * 1_000_000),
        "cost_micros": round(given["limits"].cost_usd * 1_000_000),
        **given,
    }


def refuse_bad_tool(made: Any) -> None:
    """Refuse a `Tool` whose parts do not go together."""
    _refuse_unknown_parameters(made)
    if made.egress is not None and not callable(getattr(made.egress, "check", None)):
        kind = type(made.egress).__name__
        raise ContractError(f"{made.name}: egress is an interlock.tools.egress.Egress, not {kind}")
    refuse_bad_effect(made)


def _refuse_unknown_parameters(made: Any) -> None:
    """Options that speak about arguments can only name those that there are."""
    known = made.input.schema.get("properties", {})
    for option, names in (("known_values", made.known_values), ("roles", made.roles)):
        unknown = sorted(set(names) - set(known))
        if unknown:
            raise ContractError(f"{made.name}: {option} of {', '.join(unknown)}, which are no parameters of it")
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
