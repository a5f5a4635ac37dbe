"""Conditions: CEL, compiled once, type-checked against the tool's schema, evaluated many at a time."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

from cel_expr_python import cel

from interlock.canonical import nearest
from interlock.policy.functions import FUNCTIONS, LOOK_OUTSIDE, declarations, extensions
from interlock.policy.variables import Facts, Variable

_UNDECLARED = re.compile(r"undeclared reference to '([^']+)'")
_FIRST_LINE = re.compile(r"ERROR: <input>:\d+:(\d+): (.*)")
_LISTED = re.compile(r"listed\(\s*(['\"])(.*?)\1")
_JOIN = 24
_UNREADABLE = (KeyError, TypeError, ValueError, OverflowError, AttributeError)
_MOST_KEPT = 512
_LONGEST_KEPT = 512
_EXACT = (cel.Type.STRING, cel.Type.INT, cel.Type.BOOL)


class ConditionError(Exception):
    """A condition that cannot be compiled, or that failed while it was evaluated (of this rule, where it is known)."""

    def __init__(self, message: str, rule: str = "") -> None:
        super().__init__(message)
        self.rule = rule


class Vocabulary:
    """What conditions for one tool may say."""

    def __init__(
        self, variables: dict[str, Variable], listed: Callable[[str, str], bool], lists: Sequence[str]
    ) -> None:
        self.variables = variables
        self._lists = lists
        shared = {"extensions": extensions(), "functions": declarations(listed)}
        self._check = cel.NewEnv(variables={v.name: v.check for v in variables.values()}, **shared)
        self._run = cel.NewEnv(variables={v.name: v.run for v in variables.values()}, **shared)

    def condition(self, text: str) -> Condition:
        """A condition that is true or false; ConditionError says what is wrong and what may have been meant."""
        kind = self._checked(text)
        if kind != cel.Type.BOOL:
            raise ConditionError(f"must be true or false, but is {kind.name().lower()}; compare it with something")
        self._check_lists(text)
        return Condition(text, self._run.compile(text), self._named(text))

    def expression(self, text: str, field: str) -> Condition:
        """An expression whose value fits an argument."""
        self._checked(text)
        if f"args.{field}" not in self.variables:
            raise ConditionError(self._unknown(f"args.{field}"))
        try:
            self._check.compile(f"args.{field} == ({text})")
        except RuntimeError:
            raise ConditionError(f"{text} has another type than the argument {field!r}") from None
        return Condition(text, self._run.compile(text), self._named(text))

    def join(self, conditions: Sequence[Condition]) -> tuple[Joined, ...]:
        """Conditions evaluated together, one call into CEL for a group of them."""
        if not conditions:
            return ()
        if len(conditions) <= _JOIN:
            terms = [f"(({condition.text}) ? {1 << bit} : 0)" for bit, condition in enumerate(conditions)]
            try:
                program = self._run.compile(_balanced(terms))
            except RuntimeError:  # together too deep for CEL's parser: fall through and halve
                if len(conditions) == 1:
                    program = self._run.compile(f"({conditions[0].text}) ? 1 : 0")
                    return (Joined(program, tuple(conditions)),)
            else:
                return (Joined(program, tuple(conditions)),)
        half = len(conditions) // 2
        return self.join(conditions[:half]) + self.join(conditions[half:])

    def _checked(self, text: str) -> Any:
        try:
            return self._check.compile(text).return_type()
        except RuntimeError as error:
            raise ConditionError(self._explain(str(error))) from None

    def _explain(self, message: str) -> str:
        missing = _UNDECLARED.search(message)
        if missing is not None:
            return self._unknown(missing[1])
        found = _FIRST_LINE.search(message)
        return f"{found[2]} (column {found[1]})" if found else message.removesuffix("[INVALID_ARGUMENT]").strip()

    def _unknown(self, name: str) -> str:
        if name.startswith("args."):
            fields = [key.removeprefix("args.") for key in self.variables if key.startswith("args.")]
            wrong = name.removeprefix("args.")
            close = nearest(wrong, fields, 1)
            way_out = (
                f"did you mean 'args.{close[0]}'?" if close else f"its parameters are {', '.join(fields) or '(none)'}"
            )
            return f"the tool has no parameter {wrong!r}; {way_out}"
        close = nearest(name, [*self.variables, *FUNCTIONS], 1)
        return f"unknown name {name!r}; " + (f"did you mean {close[0]!r}?" if close else "see docs/policy.md")

    def _check_lists(self, text: str) -> None:
        for _quote, name in _LISTED.findall(text):
            if name not in self._lists:
                known = f"lists are {', '.join(self._lists)}" if self._lists else "the policy has no [lists]"
                raise ConditionError(f"there is no list {name!r}; {known}")

    def _named(self, text: str) -> tuple[Variable, ...]:
        flat = re.sub(r"\s*\.\s*", ".", text)
        return tuple(
            variable
            for name, variable in self.variables.items()
            if re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", flat)
        )


class Condition:
    """One compiled condition and the variables it names."""

    def __init__(self, text: str, program: Any, variables: tuple[Variable, ...]) -> None:
        self.text = text
        self.variables = variables
        self._program = program

    def evaluate(self, facts: Facts) -> Any:
        """Its value; ConditionError if CEL cannot say."""
        try:
            data = {variable.name: variable.read(facts) for variable in self.variables}
        except _UNREADABLE as error:
            raise ConditionError(f"{type(error).__name__}: {error}") from None
        return self.on(data)

    def on(self, data: dict[str, Any]) -> Any:
        """Its value for these values of its variables."""
        _refuse_nul(data)
        try:
            value = self._program.eval(data=data)
        except RuntimeError as error:
            raise ConditionError(str(error)) from None
        if value.type() == cel.Type.ERROR:
            raise ConditionError(str(value.value()))
        return value.plain_value()

    def looks_outside(self) -> bool:
        """Whether its answer can change while the call stays the same."""
        return any(word in self.text for word in LOOK_OUTSIDE)

    def constant(self) -> bool | None:
        """True or False if the condition is that whatever the call; None if it depends."""
        if self.looks_outside():
            return None
        try:
            value = self.on({})
        except ConditionError:
            return None
        return value if isinstance(value, bool) else None

    def needs_plan(self) -> bool:
        """Whether it can be decided only when the plan is known."""
        return any(variable.name.startswith("plan.") for variable in self.variables)

    def needs_turn(self) -> bool:
        """Whether it asks for the turn's history."""
        return any(variable.name.startswith("turn.") and variable.name != "turn.id" for variable in self.variables)


class Joined:
    """Up to 24 conditions in one program that answers with a bit for each.

    Conditions are pure: where all they name are texts, whole numbers and truths, and they call nothing that looks
    outside, the answers for the values seen lately are kept.
    """

    def __init__(self, program: Any, conditions: tuple[Condition, ...]) -> None:
        self._eval = program.eval
        self.conditions = conditions
        named = {variable.name: variable for condition in conditions for variable in condition.variables}
        self._names, self._values = _reader(tuple(named.values()))
        looks_outside = any(condition.looks_outside() for condition in conditions)
        exact = all(variable.run in _EXACT for variable in named.values())
        self._kept: dict[tuple[Any, ...], int] | None = {} if exact and not looks_outside else None

    def mask(self, facts: Facts) -> int:
        """Which conditions hold; ConditionError if any cannot be said."""
        kept = self._kept
        try:
            values = self._values(facts)
            mask = None if kept is None else kept.get(values)
        except _UNREADABLE as error:
            raise ConditionError(f"{type(error).__name__}: {error}") from None
        if mask is not None:
            return mask
        data = dict(zip(self._names, values, strict=True))
        _refuse_nul(data)
        try:
            mask = self._eval(data=data).value()
        except RuntimeError as error:
            raise ConditionError(str(error)) from None
        if type(mask) is not int:
            raise ConditionError(str(mask))
        if kept is not None:
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            if sum([len(value) for value in values if type(value) is str]) <= _LONGEST_KEPT:
                kept[values] = mask
        return mask


def _reader(variables: tuple[Variable, ...]) -> tuple[tuple[str, ...], Callable[[Facts], tuple[Any, ...]]]:
    """Names, and a function that reads their values: attributes and arguments in one step each, others one by one."""
    arguments = [variable for variable in variables if variable.where.startswith("@")]
    attributes = [variable for variable in variables if variable.where and variable not in arguments]
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


def _balanced(terms: list[str]) -> str:
    """A sum as a shallow tree: CEL's parser bounds the depth of an expression."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({_balanced(terms[:half])} + {_balanced(terms[half:])})"
