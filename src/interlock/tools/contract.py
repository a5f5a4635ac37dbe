"""`Tool`: the contract between a function and everything that may call it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from interlock.errors import ContractError
from interlock.tools.bounds import Limits
from interlock.tools.labels import FieldLabels
from interlock.values import Effect, Json, Trust

if TYPE_CHECKING:  # Pydantic and the checks of a declaration are loaded with the first tool, not with the library
    from pydantic import BaseModel

    from interlock.ports import Resource
    from interlock.tools.bounds import RetryRule
    from interlock.tools.declarations import Declaration
    from interlock.tools.effects import Compensation, Invariants, KeyOf, Probe, Simulate
    from interlock.tools.inputs import Input
    from interlock.tools.known_values import KnownValues
    from interlock.tools.result_fields import ResultField
    from interlock.tools.results import Output
    from interlock.tools.roles import Role
    from interlock.tools.signature import Body


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
    labels: FieldLabels = FieldLabels()
    """What is known of the fields of its results: one's own, filled in by outsiders, free text."""
    roles: dict[str, Role] = {}
    """What its arguments are for, by their names or as it says."""
    choices: dict[str, frozenset[str]] = {}
    """The texts among which its arguments choose."""
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
    refusals: tuple[type[Exception], ...] = ()
    """Exceptions by which it refuses, with nothing done: a call fails with their words, and its key is free."""
    idempotent: bool = False
    """The other side honours the idempotency key, so that even a lost answer may be tried again."""
    recalls: frozenset[str] = frozenset()
    """Tools whose words it returns later, as a memory does: what came from nowhere good there does so here, too."""
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
        function: Callable[..., Any],
        *,
        schema: dict[str, Json],
        effect: str | Effect,
        description: str = "",
        **options: Any,
    ) -> Tool:
        """A tool whose contract arrived as JSON Schema (MCP, OpenAPI); `function` takes the arguments as one dict, and
        the context of the call if it takes two.

        References lead into the schema, or into `documents`, schemas by their addresses; nothing is fetched. With
        `formats=True`, what a schema says of the format of a text is checked.
        """
        from interlock.tools.declarations import declare_schema
        from interlock.tools.schema_input import SchemaInput

        takes = SchemaInput(schema, documents=options.pop("documents", None), formats=options.pop("formats", False))
        declared = declare_schema(name, function, takes, description, options.pop("output", Any))
        return _build(declared, effect, options)

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
        from interlock.tools.declarations import declare_models

        declared = declare_models(name, function, takes, gives)
        return _build(declared, effect, options)


def tool(
    misplaced: None = None, /, *, effect: str | Effect | None = None, name: str | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Tool]:
    """Turn an annotated function, sync or async, into a `Tool`: `@tool(effect="read")`.

    Options: timeout_s, deadline_s, retry, capabilities, trust, free, outsiders, own, roles, redact, retention, limits,
    egress, known_values, fields, refusals, recalls;
    for what changes the world also key, locks, resource, simulate, invariants, probe, compensate, review_when,
    once_per, repeatable, idempotent and says (see `Tool`).
    """
    if misplaced is not None:
        raise _explain_misplaced(misplaced)

    def decorate(given: Callable[..., Any]) -> Tool:
        if isinstance(given, Tool):
            raise ContractError(f"{given.name} is a tool already; decorate it once")
        from interlock.tools.declarations import declare_function

        # Annotations are texts in most modules; a class that is local to the caller is found in its frame alone.
        declared = declare_function(given, name, sys._getframe(1).f_locals)
        return _build(declared, effect, options)

    return decorate


def _explain_misplaced(given: object) -> ContractError:
    if isinstance(given, str):
        return ContractError(f"write @tool(effect={given!r}): its options are named")
    called = getattr(given, "__name__", "it")
    return ContractError(
        f'@tool needs to know what {called} does to the world: write @tool(effect="read") above it ("write" if it'
        ' changes what can be read back, "send" if it cannot be taken back)'
    )


def _build(declared: Declaration, effect: str | Effect | None, options: dict[str, Any]) -> Tool:
    from interlock.tools.declarations import complete, refuse_bad_tool

    built = Tool(**complete(declared, effect, options))
    refuse_bad_tool(built)
    return built
