"""Rules: what is refused at load, what is decided, what can never decide."""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from interlock import ConfigError, PolicyError, Runtime, Status, Tool, tool
from interlock.answers import Agent, Answers
from interlock.policy import Facts, compile_policy, decide, judge, load_policy, parse_policy, trace
from interlock.policy.cases import load_cases
from interlock.policy.decide import PRECEDENCE
from interlock.policy.lint import find_idle_rules, find_unapprovable, find_unfit_sets, measure_coverage
from interlock.principals import check_name
from interlock.tools import Parsed
from interlock.values import Call, Decision, Grant, Mode, Plan, TurnView, Verdict
from tests.conftest import echo, expect, running


class Season(StrEnum):
    summer = "summer"
    winter = "winter"


class Place(BaseModel):
    lat: float
    name: str = ""


ORIGIN = Place(lat=0.0)
THEN_US = 1_800_000_000_000_000


@tool(effect="read")
async def look(
    trail: str,
    season: Season = Season.summer,
    depth: int = 1,
    wide: bool = False,
    at: Place | None = None,
    near: Place = ORIGIN,
    tags: list[str] = [],
    extra: dict[str, Any] = {},
) -> str:
    return trail


def rule(decision: str, when: str | None = None, identity: str = "r", tools: str = '["*"]', more: str = "") -> str:
    condition = "" if when is None else f'when = """{when}"""\n'
    return f'[[rule]]\nid = "{identity}"\ntools = {tools}\ndecision = "{decision}"\n{condition}{more}\n'


def findings(text: str, *tools: Tool) -> str:
    with pytest.raises(PolicyError) as error:
        compile_policy(parse_policy(text, "p.toml"), tools or (look, echo))
    return str(error.value)


def facts(arguments: dict[str, Any] | None = None, tool_: Tool = look, **details: Any) -> Facts:
    plan, turn = details.pop("plan", None), details.pop("turn", TurnView())
    call = Call(**{"call_id": "c", "tool": tool_.name, "arguments": {}, "actor": "ann", "principal": "p", **details})
    parsed = tool_.input.parse(arguments or {"trail": "a"})
    return Facts(call=call, arguments=parsed.arguments, grant=Grant(actor="ann"), plan=plan, turn=turn)


def judge_call(rules: Any, given_facts: Facts, tool_: Tool = look) -> tuple[Verdict, dict[str, Any]]:
    """The verdict and the arguments after the clamps."""
    found, after = judge(rules, tool_, Parsed(None, given_facts.arguments), given_facts)
    return found, after.arguments


def verdict(text: str, given_facts: Facts | None = None, **options: Any) -> Any:
    ruleset = compile_policy(parse_policy("version = 1\n" + text), [look], **options)
    return judge_call(ruleset.rules("look"), given_facts or facts())[0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("version = 1\n[[rule", "p.toml: not valid TOML"),
        ("a = " + "[" * 5_000 + "]" * 5_000, "p.toml: not valid TOML: it is nested more than 64 levels deep"),
        (
            "version = 1\n[[rule]]\nid" + ".a" * 5_000 + " = 1",
            "p.toml: not valid TOML: it is nested more than 64 levels deep",
        ),
        ("", "p.toml:1: write version = 1 at the top"),
        ("version = 1\nrules = []", "p.toml:1: the policy: unknown key 'rules'; did you mean 'rule'?"),
        ("version = 1\nrule = 3", "rule is a list of tables: write [[rule]]"),
        (
            "version = 1\n\n" + rule("alow"),
            "p.toml:3: [[rule]] 'r': decision is allow, deny, review or clamp, not 'alow'",
        ),
        ("version = 1\n" + rule("allow", more='wen = "true"'), "unknown key 'wen'; did you mean 'when'?"),
        (
            "version = 1\n" + rule("allow", tools='["lok"]'),
            "p.toml:2: 'r' is for an unknown tool 'lok'; did you mean 'look'?",
        ),
        ("version = 1\n" + rule("allow", tools='["zzz"]'), "tools are echo, look"),
        ("version = 1\n" + rule("allow", tools="[]"), "tools = [] names nothing: write the names"),
        ("version = 1\n" + rule("allow", tools='"look"'), "tools is a list of names"),
        ("version = 1\n[[rule]]\ntools=['*']\ndecision='allow'", "id is missing or not text"),
        ("version = 1\n" + rule("allow") + rule("deny"), "there are two rules with id 'r'; an id names one thing"),
        ("version = 1\n" + rule("clamp", tools='["look"]'), "a clamp rule needs set"),
        (
            "version = 1\n" + rule("allow", more="set = { depth = 1 }", tools='["look"]'),
            'only a rule with decision = "clamp" may set',
        ),
        (
            "version = 1\n" + rule("allow", more='modes = ["aply"]'),
            "modes are apply, dry_run, shadow, not 'aply'",
        ),
        ("version = 1\n[actor.x]\nmodes = ['aply']", "modes are apply, dry_run, shadow, not 'aply'"),
        (
            "version = 1\n[actor.x]\ncapability = ['a']",
            "unknown key 'capability'; did you mean 'capabilities'?",
        ),
        (
            "version = 1\n[actor.x]\ncapabilities = []",
            'capabilities = [] names nothing: write the names, for example capabilities = ["a", "b"], or leave it out',
        ),
        ("version = 1\n[[rate]]\nid='x'\ntools=['*']\nrate='fast'", 'rate is written "10/minute"'),
        ("version = 1\n[[rate]]\nid='x'\ntools=['*']\nrate='0/s'", 'rate is written "10/minute"'),
        (
            "version = 1\n[[rate]]\nid='x'\ntools=['*']\nrate='1/s'\nper=['moon']",
            'per is ["actor"], ["tool"] or both',
        ),
        ("version = 1\n[[rate]]\nid='x'\ntools=['*']\nrate='1/s'\nburst=0", "burst is a whole number"),
        (
            "version = 1\n[[rate]]\nid='x'\ntools=['nope']\nrate='1/s'",
            "p.toml:2: 'x' is for an unknown tool 'nope'",
        ),
        ("version = 1\n[[budget]]\nid='x'\nper='week'\ncalls=1", "per is turn, run, actor or all"),
        ("version = 1\n[[budget]]\nid='x|y'\nper='turn'\ncalls=1", "the id of a budget holds no '|'"),
        ("version = 1\n[[budget]]\nid='x'\nper='turn'", "a budget limits calls, cost_usd or seconds"),
        ("version = 1\n[[budget]]\nid='x'\nper='turn'\ncalls=-1", "calls is a number of zero or more"),
        ("version = 1\n[[budget]]\nid='x'\nper='turn'\ncalls=1\nwindow='1d'", 'goes with per = "actor"'),
        ("version = 1\n[[budget]]\nid='x'\nper='actor'\ncalls=1\nwindow='99999999999d'", "is at most ten years"),
        ("version = 1\n[review]\nexpires='99999999999d'", 'expires is written "24h" (s, m, h, d), and is at most ten'),
        ("version = 1\n[review]\nremind='" + "9" * 5000 + "d'", "remind is written"),
        ("version = 1\n[review]\nquorum=0x" + "f" * 6000, "quorum is a whole number, at least 1 and at most 1,000"),
        *(
            (f"version = 1\n[[rule]]\nid='x'\ntools=['*']\ndecision='clamp'\nset={{depth={value}}}", "set.depth: ")
            for value in ("nan", "-inf", "1e400", "0x" + "f" * 6000, "[nan]")
        ),
        ("version = 1\n[limits]\nx = {}", "limits.x is text, a number"),
        ("version = 1\n[lists.x]\nfile='a'\nvalues=['b']", "a list has values"),
        ("version = 1\n[lists.x]\nquery='select 1'", "a list has values"),
        (
            "version = 1\n[lists.x]\nquery='select 1'\ndatabase='mysql://x'",
            "database is sqlite:///FILE or postgresql://",
        ),
        (
            "version = 1\n[[use]]\npack='nope'\ntools=['*']\nfield='x'",
            "there is no pack 'nope'; packs are bounds",
        ),
    ],
)
def test_what_is_wrong_in_a_policy_is_refused_with_its_place(text: str, sentence: str) -> None:
    assert sentence in findings(text)


@pytest.mark.parametrize(
    ("when", "sentence"),
    [
        ("args.dept > 1", "the tool has no parameter 'dept'; did you mean 'args.depth'?"),
        ("args.qqqq > 1", "its parameters are trail, season, depth"),
        ("args.near.lon > 1.0", "the tool has no parameter 'near.lon'"),
        ("args.depth > 'x'", "found no matching overload for '_>_' applied to '(int, string)'"),
        ("args.at == 3 && acter == 'x'", "unknown name 'acter'; did you mean 'actor'?"),
        ("args.depth >", "Syntax error"),
        ("args.depth", "must be true or false, but is int"),
        ("frobnicate(1)", "unknown name 'frobnicate'"),
        ("listed('people', args.trail)", "there is no list 'people'; the policy has no [lists]"),
        ("limits.most > 1", "unknown name 'limits.most'"),
    ],
)
def test_a_condition_is_checked_against_the_tools_schema(when: str, sentence: str) -> None:
    text = findings("version = 1\n\n" + rule("deny", when, tools='["look"]'))
    assert text.startswith("p.toml:7: rule 'r' for 'look': "), "the line of the condition"
    assert sentence in text


@pytest.mark.parametrize(("opens", "line"), [('"""', 8), ('"""\n', 9)])
def test_in_a_condition_of_several_lines_the_wrong_one_is_named(opens: str, line: int) -> None:
    rule = f"""version = 1

[[rule]]
id = "r"
tools = ["look"]
decision = "deny"
when = {opens}args.depth > 1 &&
  args.dept > 1
\"\"\"
"""
    assert findings(rule).startswith(f"p.toml:{line}: rule 'r' for 'look': the tool has no parameter 'dept'")


def test_every_finding_is_reported_at_once() -> None:
    text = findings(
        "version = 1\n" + rule("deny", "args.x > 1", "a", '["look"]') + rule("deny", "args.y > 1", "b", '["look"]')
    )
    assert "rule 'a'" in text
    assert "rule 'b'" in text


def test_a_clamp_is_checked_against_the_argument_it_sets() -> None:
    assert "has another type than the argument 'depth'" in findings(
        "version = 1\n" + rule("clamp", tools='["look"]', more="set = { depth = \"'x'\" }")
    )
    assert "has no parameter 'deep'" in findings(
        "version = 1\n" + rule("clamp", tools='["look"]', more="set = { deep = 1 }")
    )


def test_a_policy_file_that_is_not_there_is_named(tmp_path: Any) -> None:
    with pytest.raises(PolicyError, match="there is no such policy file"):
        load_policy(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PolicyError, match="cannot be read"):
        load_policy(tmp_path / "bad.toml")


def test_no_rule_no_execution() -> None:
    found = verdict(rule("allow", "actor == 'bob'", "bobs"))
    assert (found.decision, found.rule) == (Decision.DENY, "default")
    assert "those that could are bobs" in found.reason
    assert verdict("").decision is Decision.DENY


def test_deny_beats_review_beats_allow_whatever_the_order() -> None:
    text = rule("allow", None, "a") + rule("review", "args.depth > 1", "b") + rule("deny", "args.depth > 2", "c")
    assert [verdict(text, facts({"trail": "x", "depth": n})).rule for n in (1, 2, 3)] == ["a", "b", "c"]


def test_conditions_see_everything_the_design_promises() -> None:
    seen = {
        "args.trail == 'a'": True,
        "args.season == 'summer'": True,
        "args.at == null": True,
        "args.near.lat == 0.0 && args.near.name == ''": True,
        "size(args.tags) == 0 && size(args.extra) == 0": True,
        "actor == 'ann' && principal == 'p' && on_behalf_of == ''": True,
        "tool == 'look' && effect == 'read' && mode == 'apply'": True,
        "evidence.exists(e, e == 'r1')": True,
        "confidence != null && confidence < 0.5": True,
        "turn.calls == 2 && 'echo' in turn.tools && turn.tainted": True,
        "turn.untrusted == ['web'] && turn.id == 't'": True,
        "plan.risk == 'high' && plan.keys == ['k'] && plan.before.x == 1 && plan.diff == ''": True,
        "limits.most == 3 && limits.names == ['n'] && limits.share == 0.5 && limits.on && limits.word == 'w'": True,
        "size(capabilities) == 0": True,
        "math.greatest(args.depth, 7) == 7 && args.trail.upperAscii() == 'A'": True,
    }
    snapshot = facts(
        evidence=("r1",),
        confidence=0.25,
        turn=TurnView(calls=2, tools=("echo",), untrusted=("web",)),
        plan=Plan(digest="d", risk="high", keys=("k",), before={"x": 1}),
    )
    snapshot = Facts(
        call=Call(call_id="c", tool="look", arguments={}, actor="ann", principal="p", turn="t", evidence=("r1",), confidence=0.25),
        arguments=snapshot.arguments, grant=snapshot.grant, turn=snapshot.turn, plan=snapshot.plan,
    )  # fmt: skip
    limits = "[limits]\nmost = 3\nnames = ['n']\nshare = 0.5\non = true\nword = 'w'\n"
    for condition in seen:
        assert verdict(limits + rule("allow", condition), snapshot).decision is Decision.ALLOW, condition


def test_actors_and_modes_of_a_rule_are_conditions_too() -> None:
    text = rule("allow", "args.depth == 1", more='actors = ["ann"]\nmodes = ["apply"]')
    assert verdict(text).decision is Decision.ALLOW
    assert verdict(text, facts(actor="bob")).decision is Decision.DENY
    assert verdict(text, facts(mode=Mode.SHADOW)).decision is Decision.DENY


@pytest.mark.parametrize("when", ["1 / (args.depth - 1) == 1", "args.extra.missing == 1", "args.trail.matches('(')"])
def test_an_error_while_a_rule_is_evaluated_denies_and_names_the_rule(when: str) -> None:
    found = verdict(rule("allow", None, "fine") + rule("allow", when, "broken"))
    assert (found.decision, found.rule) == (Decision.DENY, "broken")
    assert "could not be evaluated" in found.reason


@pytest.mark.parametrize(
    "arguments",
    [
        {"trail": "waldo\0evil"},
        {"trail": "a", "tags": ["x\0"]},
        {"trail": "a", "extra": {"k\0": 1}},
        {"trail": "a", "extra": {"k": ["\0"]}},
    ],
)
def test_a_rule_never_judges_a_text_that_the_cel_library_would_cut_short(arguments: dict[str, Any]) -> None:
    """The library ends a text at NUL: 'waldo\\0evil' would pass for 'waldo'."""
    text = rule("allow", "args.trail == 'waldo' || size(args.tags) > 0 || size(args.extra) > 0", "only-waldo")
    found = verdict(text, facts(arguments))
    assert (found.decision, found.rule) == (Decision.DENY, "only-waldo")
    assert "NUL" in found.reason
    assert verdict(rule("allow"), facts(arguments)).decision is Decision.ALLOW


def test_decisions_are_kept_only_where_equal_values_are_the_same_values() -> None:
    """1, 1.0 and true are equal in Python; a condition on an open value is asked every time."""
    text = rule("deny", "type(args.extra.x) == bool", "no-truth") + rule("allow", None, "rest")
    rules = compile_policy(parse_policy("version = 1\n" + text), [look]).rules("look")
    for value, expected in ((1, "rest"), (True, "no-truth"), (1.0, "rest"), (True, "no-truth")):
        assert expect(decide(rules, facts({"trail": "a", "extra": {"x": value}}), final=True)).rule == expected
    text = rule("deny", "args.trail == 'no'", "named") + rule("allow", None, "rest")
    rules = compile_policy(parse_policy("version = 1\n" + text), [look]).rules("look")
    for n in range(1200):
        trail = "no" if n % 3 == 0 else "x" * (n % 700)
        expected = "named" if n % 3 == 0 else "rest"
        assert expect(decide(rules, facts({"trail": trail}), final=True)).rule == expected


def test_an_endless_condition_is_stopped_and_denies() -> None:
    when = "args.tags.all(a, args.tags.all(b, args.tags.all(c, a + b + c != '')))"
    found = verdict(rule("allow", when, "greedy"), facts({"trail": "a", "tags": ["x"] * 400}))
    assert (found.decision, found.rule) == (Decision.DENY, "greedy")


def test_clamps_rewrite_in_order_and_the_rules_see_the_new_arguments() -> None:
    text = (
        rule("clamp", "args.depth > 5", "five", '["look"]', "set = { depth = 5 }")
        + rule(
            "clamp",
            "args.depth == 5",
            "trail",
            '["look"]',
            "set = { trail = \"args.trail + '!'\", 'near.name' = \"'here'\" }",
        )
        + rule("allow", "args.depth <= 5")
    )
    ruleset = compile_policy(parse_policy("version = 1\n" + text), [look])
    found, arguments = judge_call(ruleset.rules("look"), facts({"trail": "a", "depth": 50}))
    assert found.decision is Decision.ALLOW
    assert (arguments["depth"], arguments["trail"], arguments["near"]["name"]) == (5, "a!", "here")
    assert [(r.rule, r.field, r.before, r.after) for r in found.rewrites] == [
        ("five", "depth", 50, 5),
        ("trail", "trail", "a", "a!"),
        ("trail", "near.name", "", "here"),
    ]


def test_a_clamp_that_cannot_be_evaluated_denies() -> None:
    text = rule("allow") + rule("clamp", "args.extra.x == 1", "c", '["look"]', "set = { depth = 5 }")
    ruleset = compile_policy(parse_policy("version = 1\n" + text.replace('id = "r"', 'id = "ok"')), [look])
    assert judge_call(ruleset.rules("look"), facts())[0].rule == "c"


def test_rules_that_need_the_plan_are_asked_only_when_it_is_known() -> None:
    text = (
        rule("allow", None, "a") + rule("deny", "plan.risk == 'high'", "risky") + rule("deny", "args.depth > 9", "deep")
    )
    rules = compile_policy(parse_policy("version = 1\n" + text), [look]).rules("look")
    assert decide(rules, facts(), final=False) is None
    early = decide(rules, facts({"trail": "a", "depth": 10}), final=False)
    assert early is not None
    assert early.rule == "deep"
    assert expect(decide(rules, facts(plan=Plan(digest="", risk="high")), final=True)).rule == "risky"
    assert expect(decide(rules, facts(plan=Plan(digest="")), final=True)).rule == "a"


def test_the_policy_version_moves_only_with_rules_of_the_tool() -> None:
    def version(text: str) -> str:
        return compile_policy(parse_policy("version = 1\n" + text), [look, echo]).rules("look").version

    mine = rule("allow", None, "mine", '["look"]')
    other = rule("allow", None, "other", '["echo"]')
    assert version(mine) == version("\n\n" + mine + other)
    assert version(mine) != version(mine.replace("allow", "deny"))


def test_forty_rules_are_joined_and_all_count() -> None:
    text = "".join(rule("deny", f"args.depth == {n}", f"d{n}") for n in range(40)) + rule("allow", None, "rest")
    rules = compile_policy(parse_policy("version = 1\n" + text), [look]).rules("look")
    assert len(rules.early) < 5
    found = [expect(decide(rules, facts({"trail": "a", "depth": n}), final=True)).rule for n in (0, 23, 39, 40)]
    assert found == ["d0", "d23", "d39", "rest"]


def test_conditions_too_deep_to_join_are_still_asked() -> None:
    deep = "(" * 22 + "args.depth == 7" + ")" * 22
    text = "".join(rule("deny", f"{deep} && args.wide", f"d{n}") for n in range(20)) + rule("allow", None, "rest")
    found = verdict(text, facts({"trail": "a", "depth": 7, "wide": True}))
    assert found.rule == "d0"


def test_explaining_asks_every_rule_alone() -> None:
    text = rule("allow", None, "a") + rule("deny", "args.depth > 9", "b") + rule("deny", "args.extra.x == 1", "c")
    rules = compile_policy(parse_policy("version = 1\n" + text), [look]).rules("look")
    said = {item.rule.id: (item.matched, item.error is not None) for item in trace(rules, facts())}
    assert said == {"a": (True, False), "b": (False, False), "c": (False, True)}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            rule("deny", None, "no") + rule("allow", "args.depth > 1", "yes"),
            "'yes' can never decide: rule 'no' denies every call of",
        ),
        (rule("deny", "true", "no") + rule("review", None, "ask"), "'ask' can never decide"),
        (rule("allow", "false", "never"), "'never' can never decide: its condition is false for every call"),
        (rule("allow", "false && args.depth > 1", "never"), "its condition is false for every call"),
        (
            rule("allow", "args.season == 'monsoon'", "never", '["look"]'),
            "its condition is false for every call",
        ),
        (
            rule("allow", "args.wide && !args.wide && mode == 'apply'", "never", '["look"]'),
            "its condition is false",
        ),
        (
            rule("deny", None, "no") + rule("clamp", None, "c", '["look"]', "set = { depth = 1 }"),
            "'c' can never decide",
        ),
    ],
)
def test_rules_that_can_never_decide_are_named(text: str, sentence: str) -> None:
    ruleset = compile_policy(parse_policy("version = 1\n" + text, "p.toml"), [look])
    idle = find_idle_rules(ruleset, ("look",))
    assert any(sentence in line and line.startswith("p.toml:") for line in idle), idle


def test_rules_that_can_decide_are_not_named() -> None:
    text = (
        rule("deny", None, "no", '["look"]')
        + rule("allow", "args.depth == 1 || args.season == 'winter'", "yes", '["look"]')
        + rule("allow", None, "all")
    )
    idle = find_idle_rules(compile_policy(parse_policy("version = 1\n" + text), [look, echo]), ("look", "echo"))
    assert [line.split("'")[1] for line in idle] == ["yes"]
    fine = rule("allow", "args.season == 'winter'", "yes") + rule("deny", "1 / args.depth == 0", "odd")
    assert find_idle_rules(compile_policy(parse_policy("version = 1\n" + fine), [look]), ("look",)) == ()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            '[review]\napprovers = ["user:lea"]\n',
            '1 of 1 to approve, and only 0 can: user:lea is a name .* vouched = ."user".',
        ),
        ('[review]\napprovers = ["lea"]\n', "lea has no kind: write os:lea"),
        ('[review]\napprovers = ["token:ci"]\n', "token:ci needs a key"),
        ('[review]\nquorum = 2\napprovers = ["os:ann", "user:lea"]\n', "wants 2 of 2 to approve, and only 1 can"),
        (
            '[review]\napprovers = ["user:lea"]\n[[review.delegation]]\nof = "user:lea"\nto = "os:x"\nuntil = 2020-01-01\n',
            "user:lea is a name",
        ),
        (rule("review", None, "ask", '["look"]', 'approvers = ["user:lea"]'), "p.toml:.*: rule 'ask' wants 1 of 1"),
    ],
)
def test_reviews_that_nobody_could_approve_are_named(text: str, sentence: str) -> None:
    ruleset = compile_policy(parse_policy("version = 1\n" + text, "p.toml"), [look])
    (found,) = find_unapprovable(ruleset, THEN_US)
    assert re.search(sentence, found)
    assert found.startswith("p.toml")


@pytest.mark.parametrize(
    "text",
    [
        "",
        '[review]\napprovers = ["user:lea"]\nvouched = ["user"]\n',
        '[review]\napprovers = ["os:ann", "user:lea"]\n',
        f'[review]\napprovers = ["token:ci"]\nkeys = ["ed25519:{"ab" * 32}"]\n',
        '[review]\napprovers = ["user:lea"]\n[[review.delegation]]\nof = "user:lea"\nto = "os:x"\nuntil = 2999-01-01\n',
    ],
)
def test_reviews_that_somebody_can_approve_are_not_named(text: str) -> None:
    assert find_unapprovable(compile_policy(parse_policy("version = 1\n" + text), [look]), THEN_US) == ()


@pytest.mark.parametrize("schema", [False, True])
def test_values_that_a_contract_always_refuses_are_named(schema: bool) -> None:
    async def ship(item: str, quantity: Annotated[int, Field(gt=0, lt=100)]) -> str:
        return item

    async def ship_raw(arguments: dict[str, Any]) -> str:
        return str(arguments["item"])

    described = {"item": {"type": "string"}, "quantity": {"type": "integer", "exclusiveMinimum": 0, "maximum": 99}}
    contract = {"type": "object", "properties": described, "required": ["item", "quantity"]}
    made = Tool.from_schema("ship", ship_raw, schema=contract, effect="read") if schema else tool(effect="read")(ship)
    bad = ("-4", "'0 - 4'", "100")
    fine = ("4", "'2 + 2'", "'args.quantity - 200'")
    text = "".join(
        rule("clamp", None, f"c{n}", '["ship"]', f"set = {{ quantity = {value} }}")
        for n, value in enumerate((*bad, *fine))
    )
    found = find_unfit_sets(compile_policy(parse_policy("version = 1\n" + text, "p.toml"), [made]), {"ship": made})
    assert [line.split("'")[1] for line in found] == ["c0", "c1", "c2"]
    assert all("sets quantity of 'ship' to what its contract refuses (" in line for line in found)


def test_coverage_counts_the_rules_of_every_tool() -> None:
    ruleset = compile_policy(parse_policy("version = 1\n" + rule("allow", None, "a", '["look"]')), [look, echo])
    lines = {line.tool: line for line in measure_coverage(ruleset, ("look", "echo"))}
    assert (lines["look"].is_decided, lines["echo"].is_decided) == (True, False)


async def test_capabilities_are_enforced_at_the_gate_all_of_a_set() -> None:
    @tool(effect="read", capabilities={"a", "b"})
    async def secret() -> str:
        return "x"

    text = (
        "version = 1\n[actor.half]\ncapabilities = ['a']\n[actor.full]\ncapabilities = ['a', 'b']\nmodes = ['apply']\n"
        + rule("allow")
    )
    async with running(secret, policy=text) as runtime:
        half = await runtime.call("secret", {}, actor="half")
        nobody = await runtime.call("secret", {}, actor="nobody")
        full = await runtime.call("secret", {}, actor="full")
        shadow = await runtime.call("secret", {}, actor="full", mode="shadow")
        assert [t.name for t in runtime.tools(actor="half")] == []
        assert [t.name for t in runtime.tools(actor="full", capability="b")] == ["secret"]
    assert (half.status, expect(half.verdict).rule) == (Status.DENIED, "grant")
    assert "lacks b" in expect(half.problem).message
    assert nobody.status is Status.DENIED
    assert full.ok
    assert "may not use mode 'shadow'" in expect(shadow.problem).message


async def test_the_grant_of_everyone_holds_for_those_without_their_own() -> None:
    @tool(effect="read", capabilities={"a"})
    async def open_(x: int) -> int:
        return x

    text = "version = 1\n[actor.\"*\"]\ncapabilities = ['a']\n[actor.none]\ncapabilities = ['b']\n" + rule("allow")
    async with running(open_, policy=text) as runtime:
        assert (await runtime.call("open_", {"x": 1}, actor="anyone")).ok
        assert (await runtime.call("open_", {"x": 1}, actor="none")).status is Status.DENIED


decisions = st.lists(
    st.tuples(st.sampled_from(list(Decision)), st.one_of(st.none(), st.integers(0, 6)), st.booleans()),
    max_size=12,
)


@given(decisions, st.integers(0, 6))
def test_the_combinator_is_the_strongest_matching_rule(
    written: list[tuple[Decision, int | None, bool]], depth: int
) -> None:
    """Deny > review > allow > nothing (deny), independent of order; a rule that cannot be evaluated denies."""
    parts, matching, broken = [], [], False
    for index, (decision, bound, error) in enumerate(written):
        when = None if bound is None else f"args.depth >= {bound}" + (" && args.extra.missing == 1" if error else "")
        parts.append(rule(decision.value, when, f"r{index}"))
        if bound is None:
            matching.append(decision)
        elif depth >= bound:
            broken = broken or error
            matching += [] if error else [decision]
    found = verdict("".join(parts), facts({"trail": "a", "depth": depth}))
    expected = Decision.DENY if broken else min(matching, key=PRECEDENCE.index, default=Decision.DENY)
    assert found.decision is expected
    assert verdict("".join(reversed(parts)), facts({"trail": "a", "depth": depth})).decision is expected


def test_attributes_and_arguments_are_read_together() -> None:
    when = "args.trail == 'a' && args.depth == 1 && args.wide == false && actor == 'ann' && principal == 'p' && mode == 'apply' && turn.calls == 0"
    assert verdict(rule("allow", when)).decision is Decision.ALLOW
    assert verdict(rule("allow", when), facts(actor="bob")).decision is Decision.DENY
    assert verdict(rule("allow", when), facts({"trail": "b"})).decision is Decision.DENY


@pytest.mark.parametrize("sure", ["95", "-0.1", "nan", "true", '"high"'])
def test_the_confidence_of_a_case_is_between_0_and_1(tmp_path: Path, sure: str) -> None:
    (tmp_path / "cases.toml").write_text(f'[[case]]\nname = "a"\ntool = "t"\nexpect = "allow"\nconfidence = {sure}\n')
    with pytest.raises(ConfigError, match=r"confidence"):
        load_cases(tmp_path / "cases.toml")


def test_cases_that_are_nested_without_end_are_refused_in_a_sentence(tmp_path: Path) -> None:
    for deep in ("[" * 5_000 + "]" * 5_000, "{a = " * 5_000 + "1" + "}" * 5_000):
        (tmp_path / "cases.toml").write_text(f"[[case]]\nname = {deep}\n")
        with pytest.raises(ConfigError, match="more than 64 levels deep; make it shallower"):
            load_cases(tmp_path / "cases.toml")


@tool(effect="read")
async def pay(
    amount: Decimal,
    rate: float,
    count: int,
    tip: Annotated[Decimal, Field(gt=0)] | None = None,
    parts: tuple[Decimal, ...] = (),
) -> str:
    return f"{amount} {rate}"


def pay_rule(when: str, **more: Any) -> Any:
    rule = {"id": "r", "tools": ["pay"], "decision": "deny", "when": when, **more}
    allow = {"id": "open", "tools": ["*"], "decision": "allow"}
    return {"version": 1, "rule": [allow, rule]}


DECIMAL = "is a decimal, which rules see as text so that no digit is lost; write double(args."
FRACTION = "a whole number does not go with one that has a fraction; write "


@pytest.mark.parametrize(
    ("when", "sentence"),
    [
        ("args.amount == 100", f"args.amount {DECIMAL}amount) > 100.0"),
        ("args.amount != 100", DECIMAL),
        ("args.amount > 100", DECIMAL),
        ("args.amount >= 100.0", DECIMAL),
        ("args.amount in [1, 2]", DECIMAL),
        ("args.amount - 5 > 2", DECIMAL),
        ("args.amount > '100'", DECIMAL),  # as texts: '9' would be more
        ("'100' <= args.amount", DECIMAL),
        ("args.tip != null && args.tip == 100", f"args.tip {DECIMAL}tip)"),
        ("100 in args.parts", "args.parts holds decimals, which rules see as text"),
        ("args.parts.exists(x, x > 100)", "write args.parts.exists(x, double(x) > 100.0)"),
        ("args.rate > args.count", f"{FRACTION}double(...) around the whole one"),
        ("args.rate > args.count + 1", f"{FRACTION}double(...) around the whole one"),
        ("args.count > 1.5", f"{FRACTION}double(...) around the whole one"),
        ("args.count != null", "is always given, and never null"),
        ("args.count == 'x'", "found no matching overload for '_==_' applied to '(int, string)'"),
    ],
)
def test_a_comparison_that_can_never_match_is_refused_and_says_what_to_write(when: str, sentence: str) -> None:
    with pytest.raises(PolicyError) as error:
        compile_policy(load_policy(pay_rule(when)), [pay])
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("when", "denied"),
    [
        ("double(args.amount) > 100.0", True),
        ("double(args.amount) > 200.0", False),
        ("args.amount == '150.00'", True),
        ("args.tip == null", True),
        ("args.parts.exists(x, double(x) == 9.0)", True),
        ("'9.00' in args.parts", True),
        ("args.rate > 0.5 && args.count == 3", True),
        ("args.rate > 100", False),
        ("args.count > 2 && args.rate > -100", True),
        ("7 <= args.rate || args.count == 3", True),
        ("args.rate + 1 > 1 && args.rate * 2 < 1000", True),
        ("args.rate in [1, 2]", True),
        ("args.rate in [2, 3]", False),
        ("double(args.amount) > 100", True),
        ("double(args.amount) > 1 &&\n double(args.amount) > 200", False),
    ],
)
async def test_decimals_are_compared_as_numbers_where_a_rule_says_so(when: str, denied: bool) -> None:
    arguments = {"amount": "150.00", "rate": 1, "count": 3, "parts": ["9.00"]}
    async with Runtime.open("memory://", policy=pay_rule(when), tools=[pay]) as runtime:
        outcome = await runtime.call("pay", arguments, actor="a")
    assert (outcome.status is Status.DENIED, outcome.verdict and outcome.verdict.rule) == (
        denied,
        "r" if denied else "open",
    )


async def test_a_whole_number_may_be_set_where_one_with_a_fraction_may() -> None:
    sets = {"amount": 100, "rate": 2, "tip": "args.count", "count": 4}
    policy = {
        "version": 1,
        "rule": [pay_rule("true")["rule"][0], {"id": "c", "tools": ["pay"], "decision": "clamp", "set": sets}],
    }
    async with Runtime.open("memory://", policy=policy, tools=[pay]) as runtime:
        outcome = await runtime.call("pay", {"amount": "150.00", "rate": 1.5, "count": 3}, actor="a")
    assert outcome.value == "100 2.0"
    for wrong in ({"parts": 5}, {"count": 1.5}, {"rate": "'x'"}):
        with pytest.raises(PolicyError, match="has another type than the argument"):
            compile_policy(load_policy(pay_rule("true", decision="clamp", set=wrong)), [pay])


ABOUT_INTERNS = (
    "version = 1\n"
    + rule("allow")
    + '[[rule]]\nid = "interns"\ntools = ["echo"]\ndecision = "deny"\nactors = ["intern"]\n'
    + '[[rule]]\nid = "mallory"\ntools = ["echo"]\ndecision = "deny"\nwhen = "principal == \'user:mallory\'"\n'
)


@pytest.mark.parametrize(
    "who",
    [
        {"actor": "Intern"},
        {"actor": "intern "},
        {"actor": "in  tern"},
        {"actor": "\u0456ntern"},
        {"actor": "\uff49ntern"},
        {"actor": "int\u0435rn\u2800"},
        {"actor": "re\u0301ne"},
        {"actor": "ann", "principal": "user:Mallory"},
        {"actor": "ann", "principal": "user:zoe", "on_behalf_of": "user:MALLORY"},
    ],
)
async def test_nobody_passes_a_rule_by_a_name_that_only_reads_like_one_of_it(who: dict[str, Any]) -> None:
    async with running(echo, policy=ABOUT_INTERNS) as runtime:
        assert (await runtime.call("echo", {"text": "x"}, actor="intern")).status is Status.DENIED
        mallory = await runtime.call("echo", {"text": "x"}, actor="ann", principal="user:mallory")
        assert mallory.status is Status.DENIED
        for _ in range(2):
            with pytest.raises(ConfigError, match=r"letter by letter|spaces|plainly|NFC"):
                await runtime.call("echo", {"text": "x"}, **who)
        if who["actor"] != "ann":
            with pytest.raises(ConfigError):
                await runtime.operations.plan_set([], actor=who["actor"])
            with pytest.raises(ConfigError):
                Answers(runtime).turn("why?", agent=Agent(name=who["actor"], tools=("echo",)))
            with pytest.raises(ConfigError):
                await runtime.operations.apply_set("s", [], actor=who["actor"])
        for plain in ("ann", "Ann", "анна", "田中", "agent#1 (old)"):
            assert (await runtime.call("echo", {"text": "x"}, actor=plain, principal="user:zoe")).ok
    if "principal" in who and "on_behalf_of" not in who:
        with pytest.raises(ConfigError, match="letter by letter"):
            Runtime.open("memory://", policy=parse_policy(ABOUT_INTERNS), tools=[echo], principal=who["principal"])


@pytest.mark.parametrize(
    "more",
    [
        {"risk": [{"id": "k", "tools": ["echo"], "level": "high", "when": "actor == 'intern'"}]},
        {"rule": [{"id": "r", "tools": ["echo"], "decision": "deny", "when": "// don't\nactor == 'intern'"}]},
        {"rule": [{"id": "r", "tools": ["echo"], "decision": "deny", "when": "actor == 'int\\u0065rn'"}]},
        {"rule": [{"id": "r", "tools": ["echo"], "decision": "deny", "when": "actor == r'intern'"}]},
        {"rule": [{"id": "r", "tools": ["echo"], "decision": "deny", "when": 'actor == """intern"""'}]},
    ],
)
async def test_a_name_of_a_condition_is_found_however_it_is_written_there(more: dict[str, Any]) -> None:
    allow = {"id": "a", "tools": ["*"], "decision": "allow"}
    policy = {"version": 1, **more, "rule": [allow, *more.get("rule", [])]}
    async with Runtime.open("memory://", policy=policy, tools=[echo]) as runtime:
        with pytest.raises(ConfigError, match="letter by letter"):
            await runtime.call("echo", {"text": "x"}, actor="Intern")


async def test_an_operator_does_not_pass_a_rule_by_a_name_in_other_letters() -> None:
    about_ann = {"id": "r", "tools": ["echo"], "decision": "deny", "when": "principal == 'user:ann'"}
    policy = {"version": 1, "rule": [{"id": "a", "tools": ["*"], "decision": "allow"}, about_ann]}
    async with Runtime.open("memory://", policy=policy, tools=[echo]) as runtime:
        with pytest.raises(ConfigError, match="letter by letter"):
            await runtime.operations.undo(run="r", by="user:Ann")
        with pytest.raises(ConfigError, match="letter by letter"):
            await runtime.operations.halt("run:r", by="user:Ann", reason="stop")


@pytest.mark.parametrize(
    "name", ["adk:auth0|5f7c8ec7", "adk:cn=ann,ou=people", "adk:{1b4e28ba}", "os:CORP\\ann", "user:a#1~%40"]
)
def test_names_may_have_the_signs_that_identity_providers_use(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["user:*", "user:a*", "user:<ann>", 'user:"ann"', "user:o\u2019neil"])
def test_names_may_not_have_signs_that_mean_something_here_or_read_as_others(name: str) -> None:
    with pytest.raises(ConfigError):
        check_name(name)
