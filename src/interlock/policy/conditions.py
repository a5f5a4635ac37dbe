"""Conditions: compiled CEL over a snapshot of facts, evaluated alone or many at a time.

The CEL library itself is loaded by `vocabulary`, when a policy is compiled.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from interlock.policy.provenance import Trace
from interlock.values import Call, Grant, Json, Plan, TurnView

_UNREADABLE = (KeyError, TypeError, ValueError, OverflowError, AttributeError)
_MOST_KEPT = 512
"""Answers that one joint condition remembers; a process that lives long with ever new values must not grow."""
_ON_THE_CALL = ("turn.id", "turn.asked")
_LONGEST_KEPT = 512
"""Characters of text up to which an answer is remembered: long texts seldom come twice, and would be kept for it."""


class ConditionError(Exception):
    """A condition that cannot be compiled, or that failed while it was evaluated (of this rule, where it is known)."""

    def __init__(self, message: str, rule: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.rule = rule
        self.line = line
        """How many lines of the condition stand before what is wrong in it."""


class Facts(msgspec.Struct, frozen=True, gc=False):
    """A snapshot: everything that a decision may depend on."""

    call: Call
    arguments: dict[str, Json]
    grant: Grant
    turn: TurnView = TurnView()
    plan: Plan | None = None
    trace: Trace | None = None
    """Where the values of the arguments came from, if a rule asks."""


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """A name in conditions: its type when checked, its type when run, how to read it, and its few values if few."""

    name: str
    check: Any
    run: Any
    read: Callable[[Facts], Any]
    domain: tuple[Json, ...] | None = None
    nullable: bool = False
    is_exact: bool = False
    """Whether equal values are the same value: 1, 1.0 and true are equal in Python and differ in CEL."""
    is_decimal: bool = False
    """Whether it is a decimal number, which is shown as text so that no digit is lost."""
    lists_decimals: bool = False
    has_default: bool = False
    """Whether it is filled in where it is left out, and so never null."""
    traces: bool = False
    """Whether what its turn has seen has to be read for it."""
    watches: str = ""
    """The tool whose calls it is."""
    where: str = ""
    """The attribute of the facts that it is; or the argument, if it starts with '@'; or empty: only `read` knows."""


class Program(Protocol):
    """An expression that CEL has compiled."""

    def run(self, data: dict[str, Any]) -> Any:
        """Its value for these values of its variables; ConditionError if CEL cannot say."""
        ...


class Condition:
    """One compiled condition and the variables it names."""

    def __init__(self, text: str, program: Program, variables: tuple[Variable, ...], *, looks_outside: bool) -> None:
        self.text = text
        self.variables = variables
        self.looks_outside = looks_outside
        """Whether its answer can change while the call stays the same."""
        names = [variable.name for variable in variables]
        self.needs_plan = any(name.startswith("plan.") for name in names)
        # The id stands on the call (and of a read nothing is asked); all else about a turn is read from the ledger.
        self.needs_turn = any(
            variable.name.startswith("turn.") and not variable.traces and variable.name not in _ON_THE_CALL
            for variable in variables
        )
        self.needs_origins = any(variable.traces for variable in variables)
        self._program = program

    def evaluate(self, facts: Facts) -> Any:
        """Its value; ConditionError if CEL cannot say."""
        try:
            data = {variable.name: _as_given(variable.read(facts)) for variable in self.variables}
        except _UNREADABLE as error:
            raise ConditionError(f"{type(error).__name__}: {error}") from None
        return self.evaluate_on(data)

    def evaluate_on(self, data: dict[str, Any]) -> Any:
        """Its value for these values of its variables."""
        _refuse_nul(data)
        return self._program.run(data)

    def constant(self) -> bool | None:
        """True or False if the condition is that whatever the call; None if it depends."""
        if self.looks_outside:
            return None
        try:
            # Without any values: `true || args.x` has an answer all the same, anything that depends on one has not.
            value = self.evaluate_on({})
        except ConditionError:
            return None
        return value if isinstance(value, bool) else None


class JointCondition:
    """Several conditions in one program that answers with a bit for each.

    Conditions are pure: where all they name are texts, whole numbers and truths, and they call nothing that looks
    outside, the answers for the values seen lately are kept.
    """

    def __init__(self, program: Program, conditions: tuple[Condition, ...]) -> None:
        self._run = program.run
        self.conditions = conditions
        named = {variable.name: variable for condition in conditions for variable in condition.variables}
        self._names, self._values = _build_reader(tuple(named.values()))
        looks_outside = any(condition.looks_outside for condition in conditions)
        exact = all(variable.is_exact for variable in named.values())
        self._kept: dict[tuple[Any, ...], int] | None = {} if exact and not looks_outside else None

    def mask(self, facts: Facts) -> int:
        """Which conditions hold; ConditionError if any cannot be said."""
        kept, read = self._kept, self._values
        try:
            values = read(facts)
            mask = None if kept is None else kept.get(values)
        except _UNREADABLE as error:
            raise ConditionError(f"{type(error).__name__}: {error}") from None
        if mask is not None:
            return mask
        data = dict(zip(self._names, map(_as_given, values), strict=True))
        _refuse_nul(data)
        mask = self._run(data)
        # An error of CEL comes as a value, its text, and `_Mask` does not look at types.
        if type(mask) is not int:
            raise ConditionError(str(mask))
        if kept is not None:
            # All at once: there is no order of use, which every hit would have to pay for.
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            if sum([_length(value) for value in values]) <= _LONGEST_KEPT:
                kept[values] = mask
        return mask


def _build_reader(variables: tuple[Variable, ...]) -> tuple[tuple[str, ...], Callable[[Facts], tuple[Any, ...]]]:
    """Names, and a function that reads their values: attributes and arguments in one step each, others one by one."""
    arguments = [variable for variable in variables if variable.where.startswith("@")]
    attributes = [variable for variable in variables if variable.where and variable not in arguments]
    # With one name itemgetter and attrgetter give the value itself instead of a tuple.
    if len(arguments) < 2 or len(attributes) < 2:
        reads = [variable.read for variable in variables]
        return tuple(variable.name for variable in variables), lambda facts: tuple([read(facts) for read in reads])
    others = [variable for variable in variables if not variable.where]
    rest = [variable.read for variable in others]
    items = operator.itemgetter(*(variable.where[1:] for variable in arguments))
    facts_of = operator.attrgetter(*(variable.where for variable in attributes))
    names = tuple(variable.name for variable in (*arguments, *attributes, *others))
    if not rest:
        return names, lambda facts: items(facts.arguments) + facts_of(facts)
    return names, lambda facts: (*items(facts.arguments), *facts_of(facts), *[read(facts) for read in rest])


def _as_given(value: Any) -> Any:
    """A value as CEL takes it: texts are read as tuples, so that answers can be kept by them."""
    return list(value) if type(value) is tuple else value


def _length(value: Any) -> int:
    if type(value) is tuple:
        return sum(map(len, value))
    return len(value) if type(value) is str else 0


def _refuse_nul(value: Any) -> None:
    """The CEL library ends a text at NUL: it would judge another text than the tool gets."""
    if isinstance(value, str):
        if "\0" in value:
            raise ConditionError("a text that a rule looks at contains a NUL character")
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_nul(key)
            _refuse_nul(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_nul(item)
