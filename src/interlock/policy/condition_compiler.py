"""What conditions for one tool may say: CEL, compiled once and type-checked against the tool's schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from cel_expr_python import cel

from interlock.canonical import nearest
from interlock.policy.conditions import Condition, ConditionError, JointCondition, Variable
from interlock.policy.functions import FUNCTIONS, LOOK_OUTSIDE, declare_functions, extensions

_UNDECLARED = re.compile(r"undeclared reference to '([^']+)'")
_FIRST_LINE = re.compile(r"ERROR: <input>:\d+:(\d+): (.*)")
# listed('name', …) with the name written out; a computed name is looked up when the rule is asked, and may deny.
_LISTED = re.compile(r"listed\(\s*(['\"])(.*?)\1")
_MOST_JOINED = 24
"""CEL's parser bounds the depth and size of one expression; more than this does not get faster."""


class ConditionCompiler:
    """Compiles the conditions for one tool: what they may name, and what each compiles to."""

    def __init__(
        self, variables: dict[str, Variable], listed: Callable[[str, str], bool], lists: Sequence[str]
    ) -> None:
        self.variables = variables
        self._lists = lists
        shared = {"extensions": extensions(), "functions": declare_functions(listed)}
        # Two environments: nullable arguments are wrapper types for the type checker; when it runs, the library takes
        # neither None nor a plain value for a wrapper, so that there they are dyn.
        self._check = cel.NewEnv(variables={v.name: v.check for v in variables.values()}, **shared)
        self._run = cel.NewEnv(variables={v.name: v.run for v in variables.values()}, **shared)

    def condition(self, text: str) -> Condition:
        """A condition that is true or false; ConditionError says what is wrong and what may have been meant."""
        kind = self._type_of(text)
        if kind != cel.Type.BOOL:
            raise ConditionError(f"must be true or false, but is {kind.name().lower()}; compare it with something")
        self._refuse_unknown_lists(text)
        return self._compile(text)

    def expression(self, text: str, field: str) -> Condition:
        """An expression whose value fits an argument."""
        self._type_of(text)
        if f"args.{field}" not in self.variables:
            raise ConditionError(self._explain_unknown(f"args.{field}"))
        try:
            self._check.compile(f"args.{field} == ({text})")  # CEL's own rules say whether the types can be compared
        except RuntimeError:
            raise ConditionError(f"{text} has another type than the argument {field!r}") from None
        return self._compile(text)

    def join(self, conditions: Sequence[Condition]) -> tuple[JointCondition, ...]:
        """Conditions evaluated together, one call into CEL for a group of them."""
        if not conditions:
            return ()
        if len(conditions) <= _MOST_JOINED:
            terms = [f"(({condition.text}) ? {1 << bit} : 0)" for bit, condition in enumerate(conditions)]
            try:
                program = self._run.compile(_add_up(terms))
            except RuntimeError:  # together too deep for CEL's parser: fall through and halve
                if len(conditions) == 1:
                    program = self._run.compile(f"({conditions[0].text}) ? 1 : 0")  # one level of brackets less
                    return (JointCondition(_Mask(program), tuple(conditions)),)
            else:
                return (JointCondition(_Mask(program), tuple(conditions)),)
        half = len(conditions) // 2
        return self.join(conditions[:half]) + self.join(conditions[half:])

    def _compile(self, text: str) -> Condition:
        # Also where the word only stands in a text: then an answer is not kept that could have been.
        looks_outside = any(word in text for word in LOOK_OUTSIDE)
        program = _Expression(self._run.compile(text))
        return Condition(text, program, self._find_variables(text), looks_outside=looks_outside)

    def _type_of(self, text: str) -> Any:
        try:
            return self._check.compile(text).return_type()
        except RuntimeError as error:
            raise ConditionError(self._explain(str(error))) from None

    def _explain(self, message: str) -> str:
        missing = _UNDECLARED.search(message)
        if missing is not None:
            return self._explain_unknown(missing[1])
        found = _FIRST_LINE.search(message)
        return f"{found[2]} (column {found[1]})" if found else message.removesuffix("[INVALID_ARGUMENT]").strip()

    def _explain_unknown(self, name: str) -> str:
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

    def _refuse_unknown_lists(self, text: str) -> None:
        for _quote, name in _LISTED.findall(text):
            if name not in self._lists:
                known = f"lists are {', '.join(self._lists)}" if self._lists else "the policy has no [lists]"
                raise ConditionError(f"there is no list {name!r}; {known}")

    def _find_variables(self, text: str) -> tuple[Variable, ...]:
        # A name inside a quoted text counts too: at worst the rule waits for a plan that it does not need.
        flat = re.sub(r"\s*\.\s*", ".", text)
        return tuple(
            variable
            for name, variable in self.variables.items()
            if re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", flat)
        )


class _Expression:
    """A compiled expression whose value may be of any type."""

    def __init__(self, compiled: Any) -> None:
        self._eval = compiled.eval

    def run(self, data: dict[str, Any]) -> Any:
        try:
            value = self._eval(data=data)
        except RuntimeError as error:
            raise ConditionError(str(error)) from None
        if value.type() == cel.Type.ERROR:  # errors of evaluation are values; only errors of the library are raised
            raise ConditionError(str(value.value()))
        return value.plain_value()


class _Mask:
    """A compiled sum of bits: on the path of every call, so its value is taken without looking at its type first."""

    def __init__(self, compiled: Any) -> None:
        self._eval = compiled.eval

    def run(self, data: dict[str, Any]) -> Any:
        try:
            return self._eval(data=data).value()
        except RuntimeError as error:
            raise ConditionError(str(error)) from None


def _add_up(terms: list[str]) -> str:
    """A sum as a shallow tree: CEL's parser bounds the depth of an expression."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({_add_up(terms[:half])} + {_add_up(terms[half:])})"
