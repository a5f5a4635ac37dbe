"""JSON Schema as others write it: their own test suite, and what foreign tools bring along."""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from interlock import Runtime, Status, Tool
from interlock.canonical import Refusal
from interlock.errors import ContractError
from interlock.tools.schema_input import SchemaInput
from interlock.values import Context

SUITE = Path(__file__).parent / "data" / "json-schema-test-suite.tar.xz"
"""From the source of `jsonschema` 4.25.1: the tests that every implementation has to pass, of five drafts."""
DRAFTS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
INNER = "http://localhost:1234/inner"
KNOWN = {
    # Each option of an anyOf is closed to properties it does not name, so that what fits two in part fits none.
    "both anyOf valid (complex)",
    "in place applicator siblings, bar is missing",
    # A property that several parts describe is closed by each of them.
    "no extra properties",
    # The schema turns the keywords of validation off by a metaschema of its own; they are looked at all the same.
    "no validation: invalid number, but it still validates",
}
"""What is refused though it is valid, and why. Besides, properties that a schema does not name are refused."""


@cache
def suite() -> dict[str, Any]:
    with tarfile.open(SUITE) as archive:
        files = [member for member in archive.getmembers() if member.name.endswith(".json")]
        return {member.name: json.load(archive.extractfile(member)) for member in files}  # type: ignore[arg-type]


@cache
def remotes() -> dict[str, Any]:
    return {
        f"http://localhost:1234/{name.removeprefix('remotes/')}": content
        for name, content in suite().items()
        if name.startswith("remotes/")
    }


def as_argument(draft: str, schema: Any) -> dict[str, Any]:
    """A contract with one argument that has this schema; references to its top still lead there."""
    if isinstance(schema, dict):
        schema = {"id" if draft == "draft4" else "$id": INNER, **schema}
        schema.pop("$schema", None)
    return {"$schema": DRAFTS[draft], "type": "object", "properties": {"value": schema}, "required": ["value"]}


def admits(contract: SchemaInput, value: Any) -> tuple[bool, str]:
    try:
        contract.parse({"value": value})
    except Refusal as refusal:
        return False, str(refusal)
    return True, ""


@pytest.mark.parametrize("draft", DRAFTS)
def test_their_own_suite(draft: str) -> None:
    counts: Counter[str] = Counter()
    names = [name for name in suite() if name.startswith(f"tests/{draft}/") and name.count("/") == 2]
    for name in sorted(names):
        for group in suite()[name]:
            contract = SchemaInput(as_argument(draft, group["schema"]), documents=remotes())
            for case in group["tests"]:
                admitted, why = admits(contract, case["data"])
                same = admitted == case["valid"]
                counts["same" if same else "different"] += 1
                if not same:
                    assert case["valid"], f"{name}: {group['description']}: {case['description']} is let in"
                    unnamed = "dditional properties" in why or "nevaluated properties" in why
                    assert unnamed or case["description"] in KNOWN, f"{name}: {case['description']}: {why}"
    assert counts["same"] >= 0.985 * counts.total()
    assert counts.total() > 600


def test_of_all_drafts_together_at_most_one_in_a_hundred_differs() -> None:
    """And nothing that is refused elsewhere is let in here, which the test above shows."""
    same = total = 0
    for draft in DRAFTS:
        for name in (name for name in suite() if name.startswith(f"tests/{draft}/") and name.count("/") == 2):
            for group in suite()[name]:
                contract = SchemaInput(as_argument(draft, group["schema"]), documents=remotes())
                found = [admits(contract, case["data"])[0] == case["valid"] for case in group["tests"]]
                same, total = same + sum(found), total + len(found)
    assert same >= 0.99 * total


OBJECT = {"type": "object"}


@pytest.mark.parametrize("draft", DRAFTS.values())
def test_what_is_put_together_is_closed_in_every_draft(draft: str) -> None:
    base = {"properties": {"a": {"type": "integer"}}, "required": ["a"]}
    contract = SchemaInput(
        {
            "$schema": draft,
            "type": "object",
            "definitions": {"base": base},
            "allOf": [{"$ref": "#/definitions/base"}],
            "properties": {"b": {"type": "string"}},
            "patternProperties": {"^x_": {}},
        }
    )
    assert contract.parse({"a": 1, "b": "x", "x_1": 0}).arguments == {"a": 1, "b": "x", "x_1": 0}
    for wrong in ({"a": 1, "c": 1}, {"b": "x"}, {"a": "1"}):
        with pytest.raises(Refusal):
            contract.parse(wrong)


@pytest.mark.parametrize("name", ["имя", "naïve-name", "价格", "a b", "a/b~c%d", "$x"])
def test_properties_may_have_names_of_any_script(name: str) -> None:
    contract = SchemaInput({"type": "object", "properties": {name: {"type": "integer", "default": 3}}})
    assert contract.parse({name: 5}).arguments == {name: 5}
    assert contract.parse({name: None}).arguments == {name: 3}
    with pytest.raises(Refusal):
        contract.parse({name: "5"})


@pytest.mark.parametrize(
    ("schema", "right"),
    [
        ({"allOf": [{"properties": {"a": {"properties": {"k": {}}}}}]}, {"a": {"k": 1}}),
        ({"properties": {"b": {}}, "anyOf": [{"properties": {"a": {"properties": {"k": {}}}}}]}, {"a": {"k": 1}}),
        ({"patternProperties": {"^a": {"properties": {"k": {}}}}}, {"a": {"k": 1}}),
        (
            {"properties": {"b": {}}, "if": True, "then": {"properties": {"a": {"properties": {"k": {}}}}}},
            {"a": {"k": 1}},
        ),
        (
            {
                "$defs": {"d": {"properties": {"k": {}}}},
                "properties": {"a": {"$ref": "#/$defs/d"}, "b": {"allOf": [{"$ref": "#/$defs/d"}]}},
            },
            {"a": {"k": 1}},
        ),
    ],
)
def test_unknown_properties_are_refused_wherever_they_stand(schema: dict[str, Any], right: dict[str, Any]) -> None:
    contract = SchemaInput(schema)
    assert contract.parse(right).arguments == right
    with pytest.raises(Refusal):
        contract.parse({"a": {**right["a"], "evil": 1}})


def test_what_must_not_be_there_too_often_is_held_against_the_schema_as_it_came() -> None:
    thing = {"properties": {"k": {}}, "required": ["k"]}
    many = {"type": "array", "contains": {"$ref": "#/$defs/t"}, "maxContains": 1}
    contract = SchemaInput({"$defs": {"t": thing}, "properties": {"a": many}})
    assert contract.parse({"a": [{"k": 1}]}).arguments == {"a": [{"k": 1}]}
    with pytest.raises(Refusal):
        contract.parse({"a": [{"k": 1}, {"k": 2, "more": 1}]})


def test_a_reference_may_lead_to_any_place_of_the_schema() -> None:
    contract = SchemaInput({"components": {"x": {"type": "integer"}}, "properties": {"a": {"$ref": "#/components/x"}}})
    assert contract.parse({"a": 1}).arguments == {"a": 1}


@pytest.mark.parametrize("reference", ["#/$defs/node", "#/properties/q", "#node", "http://x.example/node"])
@pytest.mark.parametrize("word", ["anyOf", "allOf"])
def test_a_schema_in_itself_is_not_followed_for_ever(reference: str, word: str) -> None:
    shape = {
        "type": "object",
        "properties": {"q": {"$ref": reference}},
        "patternProperties": {"^q": {"$ref": reference}},
    }
    node = {"$anchor": "node", word: [shape, {**shape, "required": ["q"]}, {**shape, "minProperties": 1}]}
    schema = {"$defs": {"node": node}, "properties": {"q": node}}
    contract = SchemaInput(schema, documents={"http://x.example/node": node})
    deep: dict[str, Any] = {"q": 1}
    for _ in range(30):
        deep = {"q": deep}
    with pytest.raises(Refusal, match="nest it less"):
        contract.parse(deep)


def test_a_reference_with_more_beside_it_takes_both() -> None:
    base = {"type": "object", "properties": {"a": {"type": "integer"}}}
    more = {"$ref": "#/$defs/base", "properties": {"b": {"type": "integer"}}, "required": ["b"]}
    contract = SchemaInput({"$defs": {"base": base}, "properties": {"x": more}})
    assert contract.parse({"x": {"a": 1, "b": 2}}).arguments == {"x": {"a": 1, "b": 2}}
    for wrong in ({"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": "1", "b": 2}):
        with pytest.raises(Refusal):
            contract.parse({"x": wrong})


def test_no_properties_are_as_open_as_none_that_are_named() -> None:
    for inner in (OBJECT, {**OBJECT, "properties": {}}):
        contract = SchemaInput({"type": "object", "properties": {"x": inner}})
        assert contract.parse({"x": {"anything": 1}}).arguments == {"x": {"anything": 1}}


def test_a_top_without_a_type_is_an_object() -> None:
    for top in ({}, {"type": ["object", "null"]}):
        contract = SchemaInput({**top, "properties": {"a": {"type": "integer"}}})
        assert contract.parse({"a": 1}).arguments == {"a": 1}
        with pytest.raises(Refusal):
            contract.parse({"a": 1, "b": 2})
    for wrong in ({"type": "array"}, {"type": ["string", "null"]}, True):
        with pytest.raises(ContractError, match="describes an object"):
            SchemaInput(wrong)  # type: ignore[arg-type]


def test_formats_are_checked_where_the_caller_wants_it() -> None:
    schema = {"properties": {"to": {"type": "string", "format": "email"}}}
    assert SchemaInput(schema).parse({"to": "nobody"}).arguments == {"to": "nobody"}
    checked = SchemaInput(schema, formats=True)
    assert checked.parse({"to": "ann@x.example"}).arguments == {"to": "ann@x.example"}
    with pytest.raises(Refusal):
        checked.parse({"to": "nobody"})


def test_whole_numbers_are_whole_at_every_depth() -> None:
    contract = SchemaInput(
        {
            "$defs": {"n": {"type": "integer"}},
            "properties": {
                "a": {"type": "integer"},
                "rows": {"type": "array", "items": {"properties": {"n": {"$ref": "#/$defs/n"}}}},
                "pair": {"prefixItems": [{"type": "integer"}, {"type": "number"}], "type": "array"},
                "more": {"type": "object", "additionalProperties": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
            },
        }
    )
    given = {"a": 5.0, "rows": [{"n": 1.0}, {"n": 2.0}], "pair": [3.0, 4.0], "more": {"x": 6.0, "y": None}}
    spelled = json.dumps(contract.parse(given).arguments, sort_keys=True)
    assert spelled == '{"a": 5, "more": {"x": 6, "y": null}, "pair": [3, 4.0], "rows": [{"n": 1}, {"n": 2}]}'


def test_nothing_is_fetched_but_what_was_handed_over() -> None:
    schema = {"properties": {"x": {"$ref": "http://other.example/item.json"}}}
    with pytest.raises(ContractError, match="nothing is fetched for a contract"):
        SchemaInput(schema)
    contract = SchemaInput(schema, documents={"http://other.example/item.json": {"type": "integer"}})
    assert contract.parse({"x": 1}).arguments == {"x": 1}
    with pytest.raises(Refusal):
        contract.parse({"x": "1"})


async def test_a_function_of_two_gets_the_context_and_a_name_may_be_as_long_as_in_mcp() -> None:
    seen: list[Any] = []

    async def look(arguments: dict[str, Any], context: Context) -> int:
        seen.append((arguments, context.actor))
        return 1

    def plain(arguments: dict[str, Any], times: int = 1) -> int:
        return times

    name = "9." + "long-name_" * 12 + "ends"
    tools = [
        Tool.from_schema(name, look, schema={"properties": {"a": OBJECT}}, effect="read"),
        Tool.from_schema("plain", plain, schema={}, effect="read"),
    ]
    policy = {"version": 1, "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}]}
    async with Runtime.open("memory://", policy=policy, tools=tools) as runtime:
        assert (await runtime.call(name, {"a": {}}, actor="ann")).status is Status.OK
        assert (await runtime.call("plain", {}, actor="ann")).value == 1
    assert seen == [({"a": {}}, "ann")]
    with pytest.raises(ContractError, match="at most 128"):
        Tool.from_schema("x" * 129, look, schema={}, effect="read")
