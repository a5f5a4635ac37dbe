"""What a tool takes: strict, complete, and refused with a sentence for each wrong field."""

from __future__ import annotations

import functools
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from interlock import Context, ContractError, Limits, Result, RetryRule, Status, Tool, tool
from interlock.canonical import Refusal, canonical, guard
from interlock.engine.admit import accept
from interlock.engine.context import Ended, Started
from interlock.tools.registry import Registry
from interlock.values import Call, Grant
from tests.conftest import echo, expect, running


class Season(StrEnum):
    summer = "summer"
    winter = "winter"


class Box(BaseModel):
    width_m: float
    label: str = "none"


@tool(effect="read")
async def survey(trail: str, season: Season = Season.summer, when: date | None = None, box: Box | None = None) -> Any:
    """Look at a trail."""
    return {"trail": trail, "season": season, "when": when, "box": box}


def problems(raw: Any, on: Tool = survey) -> str:
    with pytest.raises(Refusal) as refusal:
        on.input.parse(raw)
    return str(refusal.value)


def test_arguments_become_typed_values_and_defaults_are_filled_in() -> None:
    parsed = survey.input.parse({"trail": "a", "when": "2026-01-31", "box": {"width_m": 2.0}})
    assert parsed.bound["when"] == date(2026, 1, 31)
    assert parsed.arguments == {
        "trail": "a",
        "season": "summer",
        "when": "2026-01-31",
        "box": {"width_m": 2.0, "label": "none"},
    }


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"trail": 3}, "trail: input should be a valid string"),
        ({}, "trail: required, but not given"),
        ({"trail": "a", "seson": "winter"}, "seson: the tool has no such parameter; did you mean 'season'?"),
        ({"trail": "a", "season": "monsoon"}, "season: input should be 'summer' or 'winter'"),
        ({"trail": "a", "season": None}, "season: input should be 'summer' or 'winter'"),
        ({"trail": "a", "box": {"width_m": "2"}}, "box.width_m: input should be a valid number"),
        (["trail"], "arguments must be a JSON object"),
        ("trail", "arguments must be a JSON object"),
        (None, "arguments must be a JSON object"),
        ({"trail": "\ud800"}, "lone surrogate"),
        ({"trail": float("nan")}, "trail: must be a finite number, not nan"),
        ({"trail": float("inf")}, "trail: must be a finite number, not inf"),
        ({1: "a"}, "keys must be strings"),
        ({"trail": object()}, "trail: object is not a JSON value"),
        ({"trail": "x" * 2_000_000}, "more than the 1,048,576 allowed"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_a_sentence(raw: Any, sentence: str) -> None:
    assert sentence in problems(raw)


def test_deep_arguments_are_refused_before_they_reach_the_policy_language() -> None:
    deep: Any = "x"
    for _ in range(40):
        deep = {"a": deep}
    assert "nested deeper than 32 levels" in problems({"trail": deep})
    for _ in range(100_000):
        deep = [deep]
    assert "nested deeper than 32 levels" in problems({"trail": deep})


def test_every_wrong_field_is_named_at_once() -> None:
    assert problems({"seson": 1}).count(";") >= 1


class Parcel(BaseModel):
    to: str
    notes: list[str] = []


@tool(effect="read")
async def book(phone: str, count: int = 1) -> Any:
    """Takes nothing but what JSON has."""


@tool(effect="read")
async def post(
    phone: str = "",
    day: date | None = None,
    at: datetime | None = None,
    key: UUID | None = None,
    price: Decimal | None = None,
    parcel: Parcel | None = None,
    tags: dict[str, int] | None = None,
    raw: bytes = b"",
) -> Any:
    """Takes dates, keys and prices too."""


@pytest.mark.parametrize("value", [b"1", date(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC), UUID(int=1), Decimal(1)])
def test_a_python_object_is_no_text_because_it_can_be_written_as_one(value: Any) -> None:
    kind = type(value).__name__
    schema = {"type": "object", "properties": {"phone": {"type": "string"}}}
    by_schema = Tool.from_schema("by_schema", _nothing, schema=schema, effect="read", description="x")
    for arguments, contract in (
        ({"phone": value}, book),
        ({"phone": value, "count": 2}, book),
        ({"phone": value}, post),
        ({"phone": value}, by_schema),
    ):
        with pytest.raises(Refusal, match=f"phone: {kind} is not a JSON value"):
            contract.input.parse(arguments)
    with pytest.raises(Refusal, match=rf"parcel.notes\[1\]: {kind} is not a JSON value"):
        post.input.parse({"parcel": {"to": "x", "notes": ["a", value]}})


async def _nothing(_arguments: Any) -> None:
    return


def test_a_python_object_for_a_field_of_its_own_type_stays() -> None:
    given = {"day": date(2026, 1, 2), "key": UUID(int=1), "price": Decimal("1.50"), "phone": "1"}
    assert {name: post.input.parse(given).bound[name] for name in given} == given
    moment = datetime(2026, 1, 2, 3, tzinfo=UTC)
    assert post.input.parse({"at": moment, "day": "2026-01-02"}).bound["at"] == moment
    with pytest.raises(Refusal, match="raw: bytes is not a JSON value"):
        post.input.parse({"raw": b"1"})
    with pytest.raises(Refusal, match="keys must be strings, not int"):
        post.input.parse({"tags": {1: 2}})


def test_an_int_is_not_a_bool_and_a_bool_is_not_an_int() -> None:
    assert "times" in problems({"text": "a", "times": True}, echo)
    assert "times" in problems({"text": "a", "times": 2.0}, echo)
    assert "times" in problems({"text": "a", "times": "2"}, echo)


def test_a_parameter_without_annotation_is_refused_at_registration() -> None:
    with pytest.raises(ContractError, match="parameter 'x' has no annotation"):

        @tool(effect="read")
        async def broken(x) -> str:  # type: ignore[no-untyped-def]
            return "x"


def test_a_missing_return_type_is_refused_at_registration() -> None:
    with pytest.raises(ContractError, match="return type has no annotation"):

        @tool(effect="read")
        async def broken(x: int):  # type: ignore[no-untyped-def]
            return x


def _star(*names: str) -> str:
    return ""


def _keywords(**names: str) -> str:
    return ""


def _positional(x: int, /) -> str:
    return ""


def _generator(x: int) -> Iterator[int]:
    yield x


async def _async_generator(x: int) -> AsyncIterator[int]:
    yield x


def _unresolved(x: Nowhere) -> str:  # type: ignore[name-defined]  # noqa: F821
    return ""


def _indescribable(x: threading.Lock) -> str:
    return ""


def _returns_indescribable(x: int) -> threading.Lock:
    return threading.Lock()


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (_star, "has no name a caller can use"),
        (_keywords, "has no name a caller can use"),
        (_positional, "has no name a caller can use"),
        (_generator, "generator tools are refused"),
        (_async_generator, "generator tools are refused"),
        (_unresolved, "annotation cannot be resolved"),
        (_indescribable, "type cannot be described"),
        (_returns_indescribable, "return type cannot be described"),
    ],
)
def test_what_cannot_be_a_contract_is_refused_at_registration(function: Any, sentence: str) -> None:
    with pytest.raises(ContractError, match=sentence):
        tool(effect="read")(function)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"effect": "delete"}, "effect is read, write, send, not 'delete'"),
        ({"effect": "read", "trust": "maybe"}, "trust is trusted, untrusted"),
        ({"effect": "read", "name": "two words"}, "is not a tool name"),
        ({"effect": "read", "colour": "red"}, "a tool's options are"),
        ({"effect": "read", "timeout_s": 0}, "timeout_s must be a number of seconds above 0"),
        ({"effect": "read", "retry": RetryRule(max_attempts=0)}, "retry.max_attempts cannot be 0"),
        ({"effect": "read", "capabilities": "trails"}, "is a set of names"),
        ({"effect": "write"}, "a write tool names the resource it changes"),
    ],
)
def test_options_that_make_no_sense_are_refused_at_registration(options: dict[str, Any], sentence: str) -> None:
    def body(x: int) -> int:
        return x

    with pytest.raises(ContractError, match=sentence):
        tool(**options)(body)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ContractError, match="there is a tool of that name already"):
        Registry([echo, echo])


def test_the_registry_freezes_when_the_runtime_opens() -> None:
    registry = Registry([echo]).freeze()
    with pytest.raises(ContractError, match="the runtime is open"):
        registry.add(survey)


def test_only_tools_can_be_registered() -> None:
    with pytest.raises(ContractError, match="decorate it with @tool"):
        Registry([print])  # type: ignore[list-item]


def test_the_list_is_filtered_by_capability_and_by_what_an_actor_was_granted() -> None:
    @tool(effect="read", capabilities={"a", "b"})
    def both() -> str:
        return "x"

    @tool(effect="read", capabilities={"a"})
    def one() -> str:
        return "x"

    registry = Registry([both, one, echo])
    assert [t.name for t in registry.list(capability="a")] == ["both", "one"]
    assert [t.name for t in registry.list(grant=Grant(actor="x", capabilities=frozenset("a")))] == [
        "one",
        "echo",
    ]
    assert len(registry) == 3


async def test_a_sync_tool_runs_in_a_thread() -> None:
    @tool(effect="read")
    def where() -> str:
        return threading.current_thread().name

    async with running(where) as runtime:
        outcome = await runtime.call("where", {}, actor="a")
        assert outcome.value.startswith("interlock-tool")


async def test_a_tool_may_ask_for_its_context() -> None:
    @tool(effect="read")
    async def who(context: Context, suffix: str = "") -> str:
        return f"{context.actor} {context.attempt} {context.turn}{suffix}"

    async with running(who) as runtime:
        outcome = await runtime.call("who", {"suffix": "!"}, actor="ann", turn="t1")
        assert outcome.value == "ann 1 t1!"
        assert "context" not in who.input.schema["properties"]


async def test_parameters_may_have_names_that_pydantic_keeps_for_itself() -> None:
    @tool(effect="read")
    async def odd(schema: str, model_name: int = 3, copy: bool = False, _x: str = "q") -> Any:
        return [schema, model_name, copy, _x]

    assert set(odd.input.schema["properties"]) == {"schema", "model_name", "copy", "_x"}
    async with running(odd) as runtime:
        outcome = await runtime.call("odd", {"schema": "s", "model_name": 4}, actor="a")
        assert outcome.value == ["s", 4, False, "q"]
        assert (await runtime.call("odd", {"arg_schema": "s"}, actor="a")).status is Status.DENIED


async def test_names_that_would_become_one_field_stay_apart() -> None:
    @tool(effect="read")
    async def near(_x: int, arg_x: int, __x: int, arg_x_: int, schema: int, arg_schema: int) -> list[int]:
        return [_x, arg_x, __x, arg_x_, schema, arg_schema]

    arguments = {"_x": 1, "arg_x": 2, "__x": 3, "arg_x_": 4, "schema": 5, "arg_schema": 6}
    assert set(near.input.schema["properties"]) == set(arguments)
    async with running(near) as runtime:
        outcome = await runtime.call("near", arguments, actor="a")
        missing = await runtime.call("near", {**arguments, "__x": "3"}, actor="a")
    assert outcome.value == [1, 2, 3, 4, 5, 6]
    assert [field.field for field in expect(missing.problem).fields] == ["__x"]


async def test_a_pair_of_models_makes_a_tool() -> None:
    def area(box: Box) -> float:
        """Its area."""
        return box.width_m**2

    made = Tool.from_models("area", area, takes=Box, gives=float, effect="read")
    assert made.manifest()["description"] == "Its area."
    async with running(made) as runtime:
        assert (await runtime.call("area", {"width_m": 3.0}, actor="a")).value == 9.0
        assert (await runtime.call("area", {"width_m": 3.0, "depth": 1}, actor="a")).status is Status.DENIED


async def test_callable_objects_and_partials_make_tools() -> None:
    class Asker:
        async def __call__(self, arguments: dict[str, Any]) -> str:
            return f"{arguments['q']}?"

    async def ask(mark: str, arguments: dict[str, Any]) -> str:
        return f"{arguments['q']}{mark}"

    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    first = Tool.from_schema("first", Asker(), schema=schema, effect="read")
    second = Tool.from_schema("second", functools.partial(ask, "!"), schema=schema, effect="read")
    async with running(first, second) as runtime:
        assert (await runtime.call("first", {"q": "a"}, actor="a")).value == "a?"
        assert (await runtime.call("second", {"q": "a"}, actor="a")).value == "a!"


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 2},
        "limit": {"type": "integer", "default": 5},
        "tag": {"$ref": "#/$defs/tag"},
        "note": {"type": ["string", "null"]},
    },
    "required": ["query"],
    "$defs": {"tag": {"enum": ["a", "b"]}},
}


def found(arguments: dict[str, Any]) -> dict[str, Any]:
    """Find."""
    return {"got": arguments}


def test_a_contract_that_arrives_as_json_schema_is_checked_by_a_compiled_validator() -> None:
    made = Tool.from_schema("find", found, schema=SCHEMA, effect="read")
    assert made.input.parse({"query": "ab", "tag": "a"}).arguments == {"query": "ab", "tag": "a", "limit": 5}
    assert "query" in problems({"query": 3}, made)
    assert "tag: the value is not one of" in problems({"query": "ab", "tag": "c"}, made)
    assert "diary" not in problems({"query": "ab", "limit": "my private diary"}, made)
    assert "extra" in problems({"query": "ab", "extra": 1}, made)
    assert "query" in problems({}, made)


def test_null_for_an_optional_property_means_left_out_and_is_recorded() -> None:
    made = Tool.from_schema("find", found, schema=SCHEMA, effect="read")
    parsed = made.input.parse({"query": "ab", "limit": None, "tag": None, "note": None})
    assert parsed.arguments == {"query": "ab", "note": None, "limit": 5}
    assert [(change.field, change.after, change.rule) for change in parsed.rewrites] == [
        ("tag", "(left out)", "contract"),
        ("limit", 5, "contract"),
    ]
    assert "query" in problems({"query": None}, made)


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ({"type": "array"}, "describes an object"),
        ({"type": "object", "properties": {"a": {"type": "nonsense"}}}, "not valid JSON Schema"),
        ({"type": "object", "properties": {"type": "object", "allOf": None}}, "not valid JSON Schema"),
    ],
)
def test_a_schema_that_cannot_be_a_contract_is_refused(schema: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ContractError, match=sentence):
        Tool.from_schema("find", found, schema=schema, effect="read")


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_nothing_is_fetched_for_a_contract_that_arrived(tmp_path: Path, scheme: str) -> None:
    file = tmp_path / "part.json"
    file.write_text('{"type": "string"}')
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        asked.listen()
        asked.setblocking(False)
        address = file.as_uri() if scheme == "file" else f"http://127.0.0.1:{asked.getsockname()[1]}/part.json"
        schema: dict[str, Any] = {"type": "object", "properties": {"a": {"$ref": address}}}
        with pytest.raises(ContractError, match="nothing is fetched for a contract"):
            Tool.from_schema("find", found, schema=schema, effect="read")
        with pytest.raises(BlockingIOError):
            asked.accept()


def test_without_the_validator_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jsonschema_rs", None)
    with pytest.raises(ContractError, match=r"pip install 'interlock\[schema\]'"):
        Tool.from_schema("find", found, schema=SCHEMA, effect="read")


def test_the_manifest_holds_what_a_model_needs_and_no_generated_titles() -> None:
    manifest = survey.manifest()
    assert manifest["name"] == "survey"
    assert manifest["description"] == "Look at a trail."
    assert "title" not in manifest["parameters"]
    assert all("title" not in part for part in manifest["parameters"]["properties"].values())


def test_the_deadline_of_a_call_covers_its_attempts_and_waits() -> None:
    @tool(effect="read", timeout_s=2, retry=RetryRule(max_attempts=3, base_s=1, factor=2, cap_s=10))
    def slow() -> str:
        return ""

    assert slow.deadline_s == 2 * 3 + 1 + 2
    assert echo.limits == Limits()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values)
def test_canonical_text_is_json_that_reads_back_as_the_same_value(value: Any) -> None:
    import json

    guard(value)
    text = canonical(value)
    assert json.loads(text) == value
    assert canonical(json.loads(text)) == text


@given(
    st.recursive(
        st.floats() | st.integers() | st.text(st.characters()) | st.none() | st.binary(max_size=2),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_whatever_a_caller_passes_is_either_parsed_or_refused(raw: Any) -> None:
    try:
        parsed = echo.input.parse(raw)
    except Refusal as refusal:
        said = str(refusal)
    else:
        said = "parsed" if set(parsed.arguments) == {"text", "times"} else ""
    assert said


@given(
    text=st.text(st.characters(exclude_categories=["Cs"])),
    times=st.integers(-(2**63), 2**63 - 1),
)
def test_every_value_the_schema_admits_is_accepted_unchanged(text: str, times: int) -> None:
    assert echo.input.parse({"text": text, "times": times}).arguments == {"text": text, "times": times}


def test_annotated_constraints_are_part_of_the_contract() -> None:
    @tool(effect="read")
    def pick(count: Annotated[int, Field(ge=1, le=5)]) -> int:
        return count

    assert "count: input should be less than or equal to 5" in problems({"count": 9}, pick)
    assert pick.input.schema["properties"]["count"]["maximum"] == 5


def test_a_result_type_with_a_parameter_describes_its_value() -> None:
    @tool(effect="read")
    def box() -> Result[Box]:
        return Result(value=Box(width_m=1.0))

    assert "width_m" in str(box.output.schema)


class Unlooked(dict[str, Any]):
    """Arguments that may be counted, and not looked at."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("somebody goes through them")

    items = keys = values = __iter__  # type: ignore[assignment]


MANY = {f"a{n}": n for n in range(60_000)}


async def test_more_arguments_than_a_tool_can_have_are_refused_before_any_is_looked_at() -> None:
    async with running() as runtime:
        context = runtime.context
        for name in ("echo", "nope"):
            ended = accept(context, Call("c", name, Unlooked(MANY), "a", "p"), Started(0, 0.0), None)
            assert isinstance(ended, Ended)
            assert ended.arguments == {"unreadable": "60,000 arguments, which are not kept"}
        outcome = await runtime.call("echo", MANY, actor="a")
    assert (outcome.status, expect(outcome.problem).reason) == (Status.DENIED, "invalid_arguments")
    assert "there are 60,000 of them, and the tool takes 2; give only those" in outcome.summary


async def test_a_tool_that_does_not_name_all_it_takes_may_be_given_many_arguments() -> None:
    async def count(numbers: dict[str, Any]) -> int:
        return len(numbers)

    schemas: list[dict[str, Any]] = [
        {"type": "object", "properties": {"x": {}}, "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"x": {}}, "patternProperties": {"^a": {}}, "additionalProperties": False},
        {"type": "object", "anyOf": [{"patternProperties": {"^a": {}}}]},
    ]
    for schema in schemas:
        made = Tool.from_schema("count", count, schema=schema, effect="read")
        assert made.input.most_arguments == inf
        assert made.input.parse(dict(list(MANY.items())[:2_000])).arguments["a1999"] == 1999
    closed = Tool.from_schema("count", count, schema={"type": "object", "properties": {"x": {}}}, effect="read")
    assert closed.input.most_arguments == 1_001


class Leaf(BaseModel):
    field: str
    value: int


class Every(BaseModel):
    args: list[Leaf | Every | Some]


class Some(BaseModel):
    args: list[Leaf | Every | Some]


async def search(where: Leaf | Every | Some) -> int:
    """Search."""
    return 1


async def look_up(arguments: dict[str, Any]) -> int:
    return 1


_NODE = {
    "anyOf": [
        {"type": "object", "properties": {"args": {"type": "array", "items": {"$ref": "#/$defs/n"}}, other: {}}}
        for other in ("x", "y")
    ]
    + [{"type": "string"}]
}
UNIONS = [
    tool(effect="read")(search),
    Tool.from_schema(
        "look_up",
        look_up,
        schema={"type": "object", "properties": {"where": {"$ref": "#/$defs/n"}}, "$defs": {"n": _NODE}},
        effect="read",
    ),
]


@pytest.mark.parametrize("union", UNIONS, ids=lambda union: union.name)
def test_a_union_in_itself_is_not_tried_without_end(union: Tool) -> None:
    def nest(levels: int) -> dict[str, Any]:
        inner: Any = 5
        for _level in range(levels):
            inner = {"args": [inner]}
        return {"where": inner}

    with pytest.raises(Refusal) as shallow:
        union.input.parse(nest(4))
    assert "nested so deeply" not in str(shallow.value)
    with pytest.raises(Refusal, match="checking it has no end; nest it less"):
        union.input.parse(nest(14))  # each level more would double the time, and 32 are let in


class All(BaseModel):
    all: list[Leaf | All | Either | Negated]


class Either(BaseModel):
    any: list[Leaf | All | Either | Negated]


class Negated(BaseModel):
    negate: Leaf | All | Either | Negated


async def search_named(where: Leaf | All | Either | Negated) -> int:
    """Search."""
    return 1


def _closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_FILTER = {"$ref": "#/$defs/f"}
_MANY = {"type": "array", "items": _FILTER}
_NAMED = [_closed(field={}, value={"type": "integer"}), _closed(all=_MANY), _closed(any=_MANY), _closed(negate=_FILTER)]
NAMED = [
    tool(effect="read")(search_named),
    Tool.from_schema(
        "look_up_named",
        look_up,
        schema={"type": "object", "properties": {"where": _FILTER}, "$defs": {"f": {"anyOf": _NAMED}}},
        effect="read",
    ),
]


@pytest.mark.parametrize("union", NAMED, ids=lambda union: union.name)
@pytest.mark.parametrize("value", [1, "wrong"])
def test_a_filter_whose_shapes_have_fields_of_their_own_may_be_nested_as_deep_as_anything(
    union: Tool, value: int | str
) -> None:
    """Only one shape looks into each field, so that the work grows with the depth and no faster."""
    inner: Any = {"field": "a", "value": value}
    for level in range(14):
        inner = ({"all": [inner]}, {"any": [inner]}, {"negate": inner})[level % 3]
    if value == 1:
        assert union.input.parse({"where": inner}).arguments["where"] == inner
    else:
        with pytest.raises(Refusal) as refused:
            union.input.parse({"where": inner})
        assert "nested so deeply" not in str(refused.value)


@pytest.mark.parametrize(("union", "most"), [(UNIONS[0], 12), (UNIONS[1], 9)], ids=["model", "schema"])
def test_the_levels_that_the_guide_names_are_let_in(union: Tool, most: int) -> None:
    def is_refused(levels: int) -> bool:
        inner: Any = {"field": "a", "value": 1} if union is UNIONS[0] else {"x": "a"}
        for _level in range(levels):
            inner = {"args": [inner]}
        try:
            union.input.parse({"where": inner})
        except Refusal:
            return True
        return False

    assert (is_refused(most), is_refused(most + 1)) == (False, True)


def test_lists_of_several_kinds_in_each_other_are_not_tried_without_end() -> None:
    options = [{"type": "array", "items": {"$ref": "#/$defs/n"}, "maxItems": most} for most in (1, 2)]
    schema = {"type": "object", "properties": {"where": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"anyOf": options}}}
    lists = Tool.from_schema("look_up_lists", look_up, schema=schema, effect="read")
    inner: Any = 5
    for _level in range(20):
        inner = [inner]
    with pytest.raises(Refusal, match="checking it has no end; nest it less"):
        lists.input.parse({"where": inner})


def test_a_wide_union_is_no_deep_one() -> None:
    many = {"args": [{"args": [{"field": "a", "value": 1}] * 20}] * 20}
    assert UNIONS[0].input.parse({"where": many}).arguments["where"]["args"][19]["args"][19]["value"] == 1
