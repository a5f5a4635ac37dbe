"""Every way of writing a call becomes the same proposals; no text becomes a call that the model did not finish."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.models import Proposal, ToolCard, parse_native, parse_text
from interlock.models.manifest import describe_tools
from tests.growth import LINEAR, growth

TOOL = ToolCard(
    "classify_damage",
    "Damage class of a trail.",
    {
        "type": "object",
        "properties": {"trail_id": {"type": "string"}, "points": {"type": "integer"}},
        "required": ["trail_id"],
    },
)
WANTED = Proposal("classify_damage", {"trail_id": "waldo-lake-3536", "points": 3})
ARGUMENTS = json.dumps(WANTED.arguments)

WRITTEN = {
    "json in tags": f'<tool_call>{{"name": "classify_damage", "arguments": {ARGUMENTS}}}</tool_call>',
    "json in a fence": f'Let me look.\n```json\n{{"name": "classify_damage", "arguments": {ARGUMENTS}}}\n```',
    "bare json": f'{{"name": "classify_damage", "arguments": {ARGUMENTS}}}',
    "json in prose": f'I will call {{"tool": "classify_damage", "args": {ARGUMENTS}}} now.',
    "arguments as text": json.dumps({"name": "classify_damage", "arguments": ARGUMENTS}),
    "openai in text": json.dumps({"function": {"name": "classify_damage", "arguments": ARGUMENTS}}),
    "batch": json.dumps({"plan": "look", "tool_calls": [{"tool": "classify_damage", "args": WANTED.arguments}]}),
    "xml": "<tool_call><function=classify_damage><parameter=trail_id>waldo-lake-3536</parameter>"
    "<parameter=points>3</parameter></function></tool_call>",
    "xml without tags": "<function=classify_damage><parameter=trail_id>waldo-lake-3536</parameter>"
    "<parameter=points>\n3\n</parameter></function>",
    "xml with names": '<function name="classify_damage"><parameter name="trail_id">waldo-lake-3536</parameter>'
    '<parameter name="points">3</parameter></function>',
    "trailing comma": '<tool_call>{"name": "classify_damage", "arguments":'
    ' {"trail_id": "waldo-lake-3536", "points": 3,},}</tool_call>',
    "single quotes": "<tool_call>{'name': 'classify_damage', 'arguments':"
    " {'trail_id': 'waldo-lake-3536', 'points': 3}}</tool_call>",
    "not closed": f'<tool_call>{{"name": "classify_damage", "arguments": {ARGUMENTS}',
    "words around": f'<tool_call>Sure! {{"name": "classify_damage", "arguments": {ARGUMENTS}}} Done.</tool_call>',
}


@pytest.mark.parametrize("way", WRITTEN)
def test_every_way_of_writing_a_call(way: str) -> None:
    proposals, rest = parse_text(WRITTEN[way], [TOOL])
    assert proposals == (WANTED,)
    assert "{" not in rest
    assert "<function" not in rest


@pytest.mark.parametrize("arguments", [ARGUMENTS, WANTED.arguments])
def test_native_calls(arguments: Any) -> None:
    call = {"id": "c1", "function": {"name": "classify_damage", "arguments": arguments}}
    assert parse_native([call]) == (Proposal("classify_damage", WANTED.arguments, "c1"),)


def test_what_cannot_be_read_is_a_call_that_the_contract_refuses() -> None:
    (one,), _ = parse_text('<tool_call>{"name": "classify_damage", "arguments": {"x": </tool_call>', [TOOL])
    assert one.tool == "classify_damage"
    assert list(one.arguments) in (["unreadable"], ["x"])
    (two,) = parse_native([{"function": {"name": "classify_damage", "arguments": "{nonsense"}}])
    assert two.arguments == {"unreadable": "{nonsense"}


@pytest.mark.parametrize(
    "text", ["It is class 3.", "Use {braces} freely, or {'a': 1}.", "", "```\nno call\n```", "[1, 2]"]
)
def test_a_text_without_a_call_stays_a_text(text: str) -> None:
    proposals, rest = parse_text(text, [TOOL])
    assert proposals == ()
    assert rest == text.strip()


def test_several_calls_keep_their_order() -> None:
    several = [{"tool": "classify_damage", "args": {"trail_id": str(n)}} for n in range(3)]
    proposals, _ = parse_text(json.dumps({"plan": "p", "tool_calls": several}), [TOOL])
    assert [p.arguments["trail_id"] for p in proposals] == ["0", "1", "2"]


@given(
    st.text(max_size=300), st.sampled_from(["", "<tool_call>", "```json\n", "<function=classify_damage>", '{"name": '])
)
def test_the_normaliser_never_fails(text: str, before: str) -> None:
    proposals, rest = parse_text(before + text, [TOOL])
    assert isinstance(rest, str)
    for proposal in proposals:
        json.dumps(proposal.arguments)


@given(st.recursive(st.none() | st.integers() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)))  # fmt: skip
def test_any_arguments_survive_being_written_as_json(arguments: Any) -> None:
    text = json.dumps({"name": "classify_damage", "arguments": arguments})
    (one,), _ = parse_text(f"<tool_call>{text}</tool_call>", [TOOL])
    if not isinstance(arguments, str) and arguments is not None:
        assert one.arguments == arguments


def test_the_manifest_teaches_what_the_normaliser_reads() -> None:
    for way in ("json", "xml", "batch"):
        shown = describe_tools([TOOL], way)
        assert "trail_id: string" in shown
        assert "points?: integer" in shown
        example = shown.rpartition("write only")[2].partition(":\n")[2]
        (one,), _ = parse_text(example, [TOOL])
        assert one.tool == "classify_damage"
        assert one.arguments == {"trail_id": "value"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_any_arguments_survive_being_written_as_python_would(arguments: dict[str, Any]) -> None:
    (one,), _ = parse_text(f"<tool_call>{ {'name': 'classify_damage', 'arguments': arguments}!r}</tool_call>", [TOOL])
    assert one.arguments == arguments


@given(st.text(max_size=40))
def test_a_trailing_comma_changes_nothing_within_a_string(text: str) -> None:
    written = json.dumps({"name": "classify_damage", "arguments": {"trail_id": f"{text}, ]}}"}})[:-1] + ",}"
    (one,), _ = parse_text(f"<tool_call>{written}</tool_call>", [TOOL])
    assert one.arguments == {"trail_id": f"{text}, ]}}"}


WHOLE = json.dumps({"name": "classify_damage", "arguments": {"trail_id": "waldo, [or] {not}", "points": 1234}})


@pytest.mark.parametrize("opening", ["<tool_call>", "```json\n", "<tool_call>Sure: "])
def test_a_call_that_breaks_off_is_never_finished_for_the_model(opening: str) -> None:
    """Half a name, half a text or the first digit of a number is not what the model asked for."""
    for proposal in (p for end in range(len(WHOLE)) for p in parse_text(opening + WHOLE[:end], [TOOL])[0]):
        assert proposal.tool in ("classify_damage", "(unreadable)")
        if "unreadable" not in proposal.arguments:
            assert set(proposal.arguments.items()) <= {("trail_id", "waldo, [or] {not}"), ("points", 1234)}


@pytest.mark.parametrize(
    "written",
    [
        '{"name": "classify_damage", "arguments": {"trail_id": "wal',
        '{"name": "classify_damage", "arguments": {"trail_id": "waldo", "points": 1',
        '{"name": "classify_damage", "arguments": {"trail_id": "waldo",',
        '{"name": "classify_damage", "arguments": {"trail_id": "a\\',
    ],
)
@pytest.mark.parametrize("opening", ["<tool_call>", "```json\n"])
def test_half_a_call_is_refused_so_that_the_model_hears_of_it(opening: str, written: str) -> None:
    (one,), rest = parse_text(opening + written, [TOOL])
    assert (one.tool, list(one.arguments), rest) == ("classify_damage", ["unreadable"], "")


PROSE = st.lists(
    st.sampled_from(
        [*"{}[]\"':,`<>/\\ \n", "name", "arguments", "classify_damage", "I would call", "it's", "3", "json"]
    ),
    max_size=40,
).map("".join)


@given(PROSE)
@example("Sure: the {name: classify_damage, arguments: {x}} is what I would call")
@example("[see note] and {name: classify_damage}")
@example("{classify_damage} takes 'arguments': {'trail_id'}")
def test_prose_about_a_call_is_no_call(text: str) -> None:
    """Without quotes around the name of the tool there is no object that names it, whatever stands around it."""
    text = text.replace('"classify_damage"', "classify_damage").replace("'classify_damage'", "classify_damage")
    text = text.replace("<function", "<func").replace("```", "``")
    assert parse_text(text, [TOOL])[0] == ()


@pytest.mark.parametrize(
    ("native", "wanted"),
    [
        (
            {"function": "classify_damage", "arguments": {"trail_id": "a"}},
            Proposal("classify_damage", {"trail_id": "a"}),
        ),
        ({"name": "classify_damage", "id": 7, "function": None}, Proposal("classify_damage", {}, "7")),
        ({"function": {"arguments": "{}"}}, Proposal("(no name)", {})),
        ("rubbish", Proposal("(no name)", {})),
    ],
)
def test_native_calls_of_another_shape(native: Any, wanted: Proposal) -> None:
    assert parse_native([native]) == (wanted,)


HOSTILE = ["{", "[", '{"', '"', "\\", "\\'", "{'", '{"a":["b', "[{", '{"a":', "<tool_call", "<tool_call ", "<tool_call>{", "```", "```\n{",
           "<function=", "<function=a>", "<function=a><parameter=b>", "<tool_call>[</tool_call>", "{}", '{"name":"x"}', ", ", "{'a\\'"]  # fmt: skip


@pytest.mark.parametrize("opening", ["", "<tool_call>", "<tool_call>{"])
@pytest.mark.parametrize("part", HOSTILE)
@pytest.mark.slow
def test_no_text_takes_long(part: str, opening: str) -> None:
    text = opening + part * (100_000 // len(part))
    started = time.process_time()
    parse_text(text, [TOOL])
    parse_native([{"name": "classify_damage", "arguments": text}])
    assert time.process_time() - started < 5  # about 0.2 s; anything quadratic takes minutes


@pytest.mark.parametrize("depth", [100, 500, 900, 940, 960, 970, 980, 985, 990, 995, 2000, 40_000])
@pytest.mark.parametrize(("before", "after"), [("[", "]"), ('{"calls":[', "]}"), ("-", "")])
def test_no_text_is_too_deep(before: str, after: str, depth: int) -> None:
    for end in (after * depth, ""):
        proposals, _ = parse_text(f'<tool_call>[{before * depth}{{"name":"x"}}{end}]</tool_call>', [TOOL])
        assert len(proposals) == 1


@pytest.mark.parametrize(
    "before", ["<tool_call>{", "```json\n{", '{"name": "classify_damage", "arguments": {', "<function=classify_damage>"]
)
def test_of_a_reply_that_is_too_long_no_call_is_made_and_the_model_hears_why(before: str) -> None:
    proposals, rest = parse_text(before + '"classify_damage": 1, ' * 100_000, [TOOL])
    assert [(p.tool, rest) for p in proposals] == [(TOOL.name, "")]
    assert "a reply of 2,2" in str(proposals[0].arguments)
    assert len(str(proposals[0].arguments)) < 300


def test_an_answer_that_is_too_long_to_be_read_for_calls_stays_as_it_is() -> None:
    text = "It burned 12 acres. " * 50_000
    assert parse_text(text, [TOOL]) == ((), text)


@pytest.mark.parametrize(
    "part", ["{", "[", '{"', "```", "```\n{", "<tool_call>{", "<function=a>", "<parameter=a>", "{}", "'", "```{}```"]
)
def test_four_times_the_reply_takes_about_four_times_as_long(part: str) -> None:
    assert growth(lambda size: parse_text(part * (size // len(part)), [TOOL]), 20_000) < LINEAR


def test_arguments_that_are_too_long_are_not_completed() -> None:
    """Cut there and closed, they would be other arguments: a trail without its season."""
    first = '{"trail": "' + "x" * (100_000 - 12) + '"'
    assert len(first) == 100_000
    for written, readable in ((first + ', "season": "winter"}', True), (first + ', "season": "winter"', False)):
        (proposal,) = parse_native([{"name": "classify_damage", "arguments": written}])
        assert list(proposal.arguments) == (["trail", "season"] if readable else ["unreadable"])


def test_an_f_string_is_no_literal_and_is_not_read_for_long() -> None:
    def read(arguments: str) -> Any:
        (found,) = parse_native([{"function": {"name": "classify_damage", "arguments": arguments}}])
        return found.arguments

    assert read("{'a': 'if f it', 'of': 'x'}") == {"a": "if f it", "of": "x"}
    assert set(read("{'a': f'{1}{1}'}")) == {"unreadable"}
    assert growth(lambda size: read("{'a': f'" + "{1}" * size + "'}"), 5_000) < LINEAR
