"""`FirstChoice`, the model that only chooses: the first text that a grammar admits, and always one that fits it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.answers.constrained.grammar import answer_grammar, call_grammar
from interlock.models import Request
from interlock.testing import FirstChoice
from interlock.testing.grammar import first_text


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        ('root ::= "a"', "a"),
        ('root ::= ("a" | "b")', "a"),
        ('root ::= "a" | "b"', "a"),
        ('root ::= "-"? [0-9]{1,12}', "0"),
        ('root ::= [0-9]{3,12} ("." [0-9]{1,6})?', "000"),
        ('root ::= "\\"" [^"\\\\]{2,80} "\\""', '"xx"'),
        ('root ::= ("; " ("a" | "b")){0,2} "."', "."),
        ('root ::= (("a" | "b") ("c" | "d") | "e")', "ac"),
        ('root ::= "say \\"hi\\"\\n"', 'say "hi"\n'),
        ('root ::= "(|)" "]"', "(|)]"),  # marks inside a text are text
        ("root ::= ", ""),
    ],
)
def test_the_first_of_each_and_as_few_as_may_be(grammar: str, text: str) -> None:
    assert first_text(grammar) == text


@pytest.mark.parametrize("grammar", ['root ::= "a" )', 'root ::= ("a") ) "b"'])
def test_what_is_no_grammar_is_refused(grammar: str) -> None:
    with pytest.raises(ValueError, match="not a grammar of one rule"):
        first_text(grammar)


async def test_it_answers_by_the_grammar_or_greets() -> None:
    model = FirstChoice()
    assert not model.instructable
    assert (await model.reply(Request(instructions="", messages=(), grammar='root ::= "yes" | "no"'))).text == "yes"
    assert (await model.reply(Request(instructions="", messages=()))).text == "hello"
    await model.close()


NAMES = st.text("abc_", min_size=1, max_size=6)
KINDS = st.sampled_from(
    [{"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": "string"}, {"type": "object"},
     {"type": "array", "items": {"type": "integer"}}, {"enum": ["x", 'a "b"', 3]}]
)  # fmt: skip
VALUES = st.text(max_size=8) | st.integers() | st.booleans() | st.none()


@given(st.dictionaries(NAMES, KINDS, max_size=4), st.data(), st.text(max_size=30))
def test_the_first_text_of_any_call_is_a_call(properties: dict[str, Any], data: st.DataObject, said: str) -> None:
    required = data.draw(st.lists(st.sampled_from(sorted(properties)), unique=True) if properties else st.just([]))
    slots = data.draw(
        st.dictionaries(st.sampled_from(sorted(properties)), st.lists(VALUES, max_size=3))
        if properties
        else st.just({})
    )
    schema = {"type": "object", "properties": properties, "required": required}
    arguments = json.loads(first_text(call_grammar(schema, slots, said)))
    assert set(arguments) <= set(properties)
    assert {name for name, values in slots.items() if values} <= set(arguments)
    assert all(arguments[name] == values[0] for name, values in slots.items() if values)


def test_the_first_text_of_an_answer_is_its_first_statements() -> None:
    assert first_text(answer_grammar("", ["acres 240", "cost 5"])) == "acres 240."
    assert first_text(answer_grammar("So it is", ["acres 240", "cost 5"])) == "."
