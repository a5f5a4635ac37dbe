"""What conditions for one tool may say: CEL, compiled once and type-checked against the tool's schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from cel_expr_python import cel

from interlock.canonical import did_you_mean, nearest
from interlock.policy.conditions import Condition, ConditionError, JointCondition, Variable
from interlock.policy.functions import FUNCTIONS, LOOK_OUTSIDE, declare_functions, extensions

_UNDECLARED = re.compile(r"undeclared reference to '([^']+)'")
_FIRST_LINE = re.compile(r"ERROR: <input>:(?P<line>\d+):(?P<column>\d+): (?P<what>.*)")
# listed('name', …) with the name written out; a computed name is looked up when the rule is asked, and may deny.
_LISTED = re.compile(r"listed\(\s*(['\"])(.*?)\1")
_CALLS_OF = re.compile(
    r"""\bturn\s*\.\s*calls_of\s*\((?:\s*(?P<quote>['"])(?P<tool>[^'"]*)(?P=quote)\s*\))?"""
    r"""|(?P<literal>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|//[^\n]*)"""
)
_OVERLOAD = re.compile(r"found no matching overload for '[^']+' applied to '(?P<sides>[^']*)'")
_KINDS = re.compile(r"\b(?:string|int|double|null_type)\b")
_BESIDE_NULL = re.compile(r"(?<![\w.(])(?P<name>args(?:\s*\.\s*\w+)+)\s*[!=]=\s*null\b")
_WHOLE = re.compile(r"(?<![\w.'\"])-?\d+(?![\w.'\"])")
_MOST_JOINED = 24
"""CEL's parser bounds the depth and size of one expression; more than this does not get faster."""


class _Mismatch(msgspec.Struct, frozen=True):
    """Two kinds side by side that do not go together."""

    place: int
    kinds: frozenset[str]


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
        text = self._spell_plainly(self._name_calls(text))
        kind = self._type_of(text)
        self._refuse_order_of_text(text)
        if kind != cel.Type.BOOL:
            raise ConditionError(f"must be true or false, but is {kind.name().lower()}; compare it with something")
        self._refuse_unknown_lists(text)
        return self._compile(text)

    def expression(self, text: str, field: str) -> Condition:
        """An expression whose value fits an argument."""
        text = self._spell_plainly(self._name_calls(text))
        kind = self._type_of(text)
        named = self.variables.get(f"args.{field}")
        if named is None:
            raise ConditionError(self._explain_unknown(f"args.{field}"))
        if not self._fits(text, kind, named):
            raise ConditionError(f"{text} has another type than the argument {field!r}")
        return self._compile(text)

    def _fits(self, text: str, kind: Any, named: Variable) -> bool:
        """Whether a value can be set; a whole number can where one with a fraction can, as the contract takes it."""
        if named.is_decimal and kind in (cel.Type.INT, cel.Type.DOUBLE):
            return True
        for spelled in (f"({text})", f"double({text})") if kind == cel.Type.INT else (f"({text})",):
            try:
                self._check.compile(f"{named.name} == {spelled}")  # CEL's own rules say what can be compared
            except RuntimeError:
                continue
            return True
        return False

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
            found = _FIRST_LINE.search(str(error))
            line = 0 if found is None else int(found["line"]) - 1
            raise ConditionError(self._explain(str(error), text), line=line) from None

    def _name_calls(self, text: str) -> str:
        """`turn.calls_of("tool")` as the variable that it stands for: which tools are looked at is known beforehand."""
        watched = {variable.watches: variable.name for variable in self.variables.values() if variable.watches}

        def variable_of(found: re.Match[str]) -> str:
            if found["literal"] is not None:  # what stands in a text is a text
                return found[0]
            if found["tool"] is None:
                raise ConditionError('turn.calls_of takes the name of a tool, written out: turn.calls_of("send_mail")')
            if found["tool"] not in watched:
                raise ConditionError(f"there is no tool {found['tool']!r}{did_you_mean(found['tool'], watched)}")
            return watched[found["tool"]]

        return _CALLS_OF.sub(variable_of, text)

    def _spell_plainly(self, text: str) -> str:
        """What is plainly meant and CEL does not take: a whole number beside one with a fraction, and a look whether
        something is null that has a default."""
        failed = self._find_mismatch(text)
        while failed is not None:
            for better in self._respell(text, failed):
                after = self._find_mismatch(better)
                if after is None or after.place > failed.place:
                    text, failed = better, after
                    break
            else:
                return text  # it is wrong in another way, which is said where it is compiled
        return text

    def _find_mismatch(self, text: str) -> _Mismatch | None:
        """The first place at which two kinds stand side by side that do not go together."""
        try:
            self._check.compile(text)
        except RuntimeError as error:
            found = _FIRST_LINE.search(str(error))
            kinds = None if found is None else _OVERLOAD.search(found["what"])
            if found is None or kinds is None:
                return None
            starts = [0, *(match.end() for match in re.finditer("\n", text))]
            place = starts[int(found["line"]) - 1] + int(found["column"]) - 1
            return _Mismatch(place, frozenset(_KINDS.findall(kinds["sides"])))
        return None

    def _respell(self, text: str, failed: _Mismatch) -> Iterator[str]:
        """What may have been meant, the nearest to the place first."""
        if failed.kinds == {"int", "double"}:
            for number in _nearest(_WHOLE, text, failed.place):
                yield f"{text[: number.end()]}.0{text[number.end() :]}"
        elif "null_type" in failed.kinds:
            for named in _nearest(_BESIDE_NULL, text, failed.place):
                variable = self.variables.get(named["name"])
                if variable is not None and variable.has_default:
                    yield f"{text[: named.start()]}dyn({named['name']}){text[named.end('name') :]}"

    def _explain(self, message: str, text: str) -> str:
        missing = _UNDECLARED.search(message)
        if missing is not None:
            return self._explain_unknown(missing[1])
        found = _FIRST_LINE.search(message)
        if found is None:
            return message.removesuffix("[INVALID_ARGUMENT]").strip()
        kinds = _OVERLOAD.search(found["what"])
        way_out = None if kinds is None else self._explain_types(kinds, text)
        return f"{way_out or found['what']} (column {found['column']})"

    def _explain_types(self, kinds: re.Match[str], text: str) -> str | None:
        """What to write where two kinds of numbers, or a decimal and a number, stand side by side."""
        sides = set(_KINDS.findall(kinds["sides"]))
        if "string" in sides and sides & {"int", "double"}:
            named = self._find_variables(text)
            decimals = [variable for variable in named if variable.is_decimal or variable.lists_decimals]
            return _explain_decimal(decimals[0]) if decimals else None
        if "null_type" in sides:
            return "what is compared with null here is always given, and never null; leave that out"
        if sides != {"int", "double"}:
            return None
        return "a whole number does not go with one that has a fraction; write double(...) around the whole one"

    def _refuse_order_of_text(self, text: str) -> None:
        """Two texts can be compared, and '9' comes after '100': of a decimal that is never meant."""
        for variable in self._find_variables(text):
            name = re.escape(variable.name)
            if variable.is_decimal and re.search(rf"(?<![\w.]){name}\s*[<>]|[<>]=?\s*{name}(?![\w(])", text):
                raise ConditionError(_explain_decimal(variable))

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


def _nearest(pattern: re.Pattern[str], text: str, place: int) -> list[re.Match[str]]:
    return sorted(pattern.finditer(text), key=lambda match: abs(match.start() - place))


def _add_up(terms: list[str]) -> str:
    """A sum as a shallow tree: CEL's parser bounds the depth of an expression."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({_add_up(terms[:half])} + {_add_up(terms[half:])})"


def _explain_decimal(variable: Variable) -> str:
    """What to write instead of comparing a decimal as it is."""
    name, are, example = variable.name, "is a decimal", f"double({variable.name}) > 100.0"
    if variable.lists_decimals:
        are, example = "holds decimals", f"{name}.exists(x, double(x) > 100.0)"
    return f"{name} {are}, which rules see as text so that no digit is lost; write {example}"
