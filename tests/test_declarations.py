"""What somebody writes by mistake when declaring tools is a sentence that says what is wrong and what to write."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from enum import StrEnum
from typing import Any

import pytest
from pydantic import BaseModel

from interlock import (
    Compensation,
    ConfigError,
    Context,
    ContractError,
    Limits,
    Mode,
    PolicyError,
    Result,
    RetryRule,
    Runtime,
    Status,
    Tool,
    tool,
)
from interlock.testing import call_ungoverned
from interlock.tools.registry import Registry
from tests.conftest import echo, running

OPEN = {"version": 1, "rule": [{"id": "open", "tools": ["*"], "decision": "allow"}]}


def plain(x: int) -> int:
    return x


def unannotated(x, y):  # type: ignore[no-untyped-def]
    return x


class Shop:
    """Sells."""

    def __init__(self, prices: dict[str, int]) -> None:
        self.prices = prices

    async def price(self, item: str) -> int:
        """What an item costs."""
        return self.prices[item]

    @classmethod
    def currency(cls, country: str) -> str:
        """What is paid in."""
        return f"{cls.__name__} {country}"

    @staticmethod
    async def tax(amount: int) -> int:
        """What the state gets."""
        return amount // 5

    def __call__(self, item: str, count: int = 1) -> int:
        """What several cost."""
        return self.prices[item] * count


async def total(price: int, count: int, currency: str = "USD") -> str:
    """What is to be paid."""
    return f"{price * count} {currency}"


SHOP = Shop({"pen": 3})


# What can be a tool


@pytest.mark.parametrize(
    ("function", "name", "description", "parameters", "arguments", "value"),
    [
        (SHOP.price, None, "What an item costs.", {"item"}, {"item": "pen"}, 3),
        (Shop.currency, None, "What is paid in.", {"country"}, {"country": "US"}, "Shop US"),
        (Shop.__dict__["tax"], None, "What the state gets.", {"amount"}, {"amount": 10}, 2),
        (SHOP, "several", "What several cost.", {"item", "count"}, {"item": "pen", "count": 2}, 6),
        (functools.partial(total, 3), "pay", "What is to be paid.", {"count", "currency"}, {"count": 2}, "6 USD"),
        (functools.partial(total, currency="EUR"), "pay", "What is to be paid.", {"price", "count"}, {"price": 1, "count": 2}, "2 EUR"),
        (functools.lru_cache(plain), None, "", {"x"}, {"x": 1}, 1),
    ],
)  # fmt: skip
async def test_whatever_can_be_called_can_be_a_tool(
    function: Any, name: str | None, description: str, parameters: set[str], arguments: dict[str, Any], value: Any
) -> None:
    made = tool(effect="read", name=name)(function)
    assert (made.description, set(made.input.schema["properties"])) == (description, parameters)
    async with running(made) as runtime:
        assert (await runtime.call(made.name, arguments, actor="a")).value == value


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that knows nothing of async functions."""

    @functools.wraps(function)
    def wrapper(*positional: Any, **named: Any) -> Any:
        return function(*positional, **named)

    return wrapper


async def test_an_async_function_behind_a_plain_one_is_awaited() -> None:
    paid: list[int] = []

    async def pay(n: int) -> int:
        """Pay."""
        paid.append(n)
        return n

    def later(n: int) -> Any:
        """Pay, as a function of another kind."""
        return pay(n)

    async with running(tool(effect="send")(logged(pay)), tool(effect="send")(later)) as runtime:
        for name in ("pay", "later"):
            outcome = await runtime.call(name, {"n": 1}, actor="a", call_id=name, mode="apply")
            assert (outcome.status, outcome.value) == (Status.OK, 1)
    assert await call_ungoverned(tool(effect="send")(logged(pay)), 1) == 1
    assert paid == [1, 1, 1]


async def test_what_a_partial_fixes_cannot_be_replaced_by_a_caller() -> None:
    made = tool(effect="read", name="pay")(functools.partial(total, currency="EUR"))
    async with running(made) as runtime:
        outcome = await runtime.call("pay", {"price": 1, "count": 2, "currency": "XXX"}, actor="a")
    assert outcome.status is Status.DENIED


# Without their types, as somebody calls them whose editor says nothing.
careless_tool: Any = tool
careless_limits: Any = Limits
careless_compensation: Any = Compensation
NO_TOOL: Any = plain
NO_MODEL: Any = dict
NO_FUNCTION: Any = None


def _generate() -> Any:
    class Generates:
        def __call__(self, x: int) -> Iterator[int]:
            yield x

    return Generates()


class Method:
    def one(self, x: int) -> int:
        return x


@pytest.mark.parametrize(
    ("declare", "sentence"),
    [
        (lambda: careless_tool(plain), 'write @tool(effect="read") above it'),
        (lambda: careless_tool("read"), "write @tool(effect='read'): its options are named"),
        (lambda: tool()(plain), 'plain: say what it does to the world: effect="read", "write" or "send"'),
        (lambda: tool(effect="read")(tool(effect="read")(plain)), "plain is a tool already; decorate it once"),
        (lambda: tool(effect="read")(functools.partial(plain, 1)), 'a partial of plain has no name of its own; give it one: tool(effect=..., name="...")'),
        (lambda: tool(effect="read")(SHOP), "an object of class Shop has no name of its own"),
        (lambda: tool(effect="read")(lambda x: x), "a lambda has no name of its own"),
        (lambda: tool(effect="read", name="two words")(plain), "'two words' is not a tool name"),
        (lambda: careless_tool(effect="read", name=3)(plain), "3 is not a tool name"),
        (lambda: tool(effect="read", name="interlock.lock")(plain), "is Interlock's own in the ledger"),
        (lambda: tool(effect="read")(Shop.__dict__["currency"]), "below the class, write tool(effect=...)(Class.currency)"),
        (lambda: tool(effect="read")(Shop), "Shop is a class; a tool is a function, a method of an object"),
        (lambda: careless_tool(effect="read")(3), "3 is not a function"),
        (lambda: tool(effect="read")(Method.one), "a method becomes a tool on its object, where it is known what to call: tool(effect=...)(thing.method)"),
        (lambda: tool(effect="read", name="g")(_generate()), "generator tools are refused"),
        (lambda: tool(effect="read")(unannotated), "parameter 'x' has no annotation; a contract needs its type"),
        (lambda: tool(effect="read")(max), "write an annotated function around it"),
        (lambda: tool(effect="raed")(plain), "effect is read, write, send, not 'raed'; did you mean 'read'?"),
        (lambda: careless_tool(effect=3)(plain), "effect is read, write, send, not 3"),
        (lambda: tool(effect="read", trust="trustd")(plain), "trust is trusted, untrusted, not 'trustd'; did you mean 'trusted'?"),
        (lambda: tool(effect="read", timeout="5")(plain), "there is no option 'timeout'; did you mean 'timeout_s'?"),
        (lambda: tool(effect="read", zzz=1)(plain), "there is no option 'zzz'; a tool's options are capabilities,"),
        (lambda: tool(effect="read", body=1)(plain), "there is no option 'body'"),
        (lambda: tool(effect="read", timeout_s="5")(plain), "timeout_s must be a number of seconds above 0, not '5'"),
        (lambda: tool(effect="read", timeout_s=0)(plain), "timeout_s must be a number of seconds above 0, not 0"),
        (lambda: tool(effect="read", timeout_s=True)(plain), "timeout_s must be a number of seconds"),
        (lambda: tool(effect="read", timeout_s=None)(plain), "timeout_s must be a number of seconds"),
        (lambda: tool(effect="read", timeout_s=float("inf"))(plain), "timeout_s must be a number of seconds"),
        (lambda: tool(effect="read", timeout_s=timedelta(seconds=5))(plain), "timeout_s must be a number of seconds"),
        (lambda: tool(effect="read", deadline_s="5")(plain), "deadline_s must be a number of seconds"),
        (lambda: tool(effect="read", deadline_s=0)(plain), "deadline_s must be a number of seconds above 0"),
        (lambda: tool(effect="read", limits={})(plain), "limits is interlock.Limits(max_bytes=..., concurrency=..., cost_usd=..., breaker_failures=..., breaker_reset_s=...), not {}"),
        (lambda: tool(effect="read", limits=careless_limits(max_bytes="1 MB"))(plain), "limits.max_bytes cannot be '1 MB'"),
        (lambda: tool(effect="read", limits=Limits(concurrency=0))(plain), "limits.concurrency cannot be 0"),
        (lambda: tool(effect="read", limits=Limits(cost_usd=float("nan")))(plain), "limits.cost_usd must be a finite number"),
        (lambda: tool(effect="read", retry=3)(plain), "retry is interlock.RetryRule(max_attempts=..., base_s=..., factor=..., cap_s=...), not 3"),
        (lambda: tool(effect="read", retry=RetryRule(max_attempts=0))(plain), "retry.max_attempts cannot be 0"),
        (lambda: tool(effect="read", capabilities="x")(plain), "capabilities is a set of names; write {'x'}"),
        (lambda: tool(effect="read", capabilities=5)(plain), "capabilities is a set of names, not 5"),
        (lambda: tool(effect="read", capabilities=[1])(plain), "capabilities is a set of names, and 1 is not a name"),
        (lambda: tool(effect="read", redact="x")(plain), "redact is a set of names; write {'x'}"),
        (lambda: tool(effect="read", known_values=["x"])(plain), "known_values is a mapping from arguments to the values they can have"),
        (lambda: tool(effect="send", once_per="turns")(plain), "once_per is one of turn, run, actor, ever, not 'turns'; did you mean 'turn'?"),
        (lambda: tool(effect="send", repeatable="no")(plain), "repeatable is True or False, not 'no'"),
        (lambda: tool(effect="send", review_when=True)(plain), "review_when is a condition in CEL, as text"),
        (lambda: tool(effect="send", key=3)(plain), "key is a template ('{order_id}') or a function of the arguments, not 3"),
        (lambda: tool(effect="send", key="{y}")(plain), "key: '{y}' names 'y', which is no parameter"),
        (lambda: tool(effect="send", key="{x")(plain), "key: '{x' is not a template"),
        (lambda: tool(effect="send", locks="trail/{y}")(plain), "locks: 'trail/{y}' names 'y', which is no parameter"),
        (lambda: tool(effect="write", simulate=lambda state: state)(plain), "simulate is a function of state and arguments"),
        (lambda: tool(effect="write", simulate="same")(plain), "simulate is a function of state and arguments"),
        (lambda: tool(effect="send", compensate="cancel")(plain), "compensate is interlock.Compensation(tool, arguments), not 'cancel'"),
        (lambda: tool(effect="send", compensate=careless_compensation(echo, dict))(plain), "Compensation has the name of a tool, as text, not Tool"),
        (lambda: tool(effect="send", compensate=careless_compensation("cancel", lambda arguments: {}))(plain), "the arguments of 'cancel' are made by a plain function of two parameters"),
        (lambda: tool(effect="send", compensate=careless_compensation("cancel", None))(plain), "the arguments of 'cancel' are made by a plain function"),
        (lambda: tool(effect="send", compensate=careless_compensation("cancel", total))(plain), "the arguments of 'cancel' are made by a plain function"),
        (lambda: Tool.from_models("m", plain, takes=NO_MODEL, gives=int, effect="read"), "takes= is a Pydantic model"),
        (lambda: Tool.from_models("m", Shop, takes=BaseModel, gives=int, effect="read"), "Shop is a class"),
        (lambda: Tool.from_schema("m", NO_FUNCTION, schema={"type": "object"}, effect="read"), "None is not a function"),
    ],
)  # fmt: skip
def test_what_cannot_be_declared_is_said_in_a_sentence(declare: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(ContractError) as error:
        declare()
    assert sentence in str(error.value)


# What is given to Runtime.open


@pytest.mark.parametrize(
    "tools",
    [echo, [echo], (echo,), {echo}, (item for item in [echo]), Registry([echo])],
    ids=["one", "list", "tuple", "set", "generator", "registry"],
)
async def test_tools_are_given_one_or_several(tools: Any) -> None:
    runtime = Runtime.open("memory://", policy=OPEN, tools=tools)
    assert [item.name for item in runtime.tools()] == ["echo"]
    await runtime.close()


@pytest.mark.parametrize(
    ("tools", "sentence"),
    [
        (plain, "tools= is a list of tools; plain is not a Tool; decorate it with @tool(effect=...)"),
        ([plain], "plain is not a Tool; decorate it with @tool(effect=...)"),
        ([echo, [echo]], "there is a list inside the list of tools; write [*those, *these]"),
        ({"echo": echo}, "tools= is a list of tools, not a mapping; write tools=[*mapping.values()]"),
        ("echo", "tools= is a list of tools; 'echo' is not a Tool"),
        (None, "tools= is a list of tools; None is not a Tool"),
        ([SHOP], "is not a Tool; a tool is a function under @tool(effect=...)"),
        ([echo, echo], "echo: there is a tool of that name already"),
    ],
)
def test_what_is_no_tool_is_refused_with_a_sentence(tools: Any, sentence: str) -> None:
    with pytest.raises(ContractError) as error:
        Runtime.open("memory://", policy=OPEN, tools=tools)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("policy", "kind", "sentence"),
    [
        (None, ConfigError, "policy= is the name of a file, the text of one, a dict with its keys or a Policy, not NoneType"),
        ("version = 2\n", PolicyError, "policy:1: write version = 1 at the top"),
        ({}, PolicyError, "policy: write version = 1 at the top"),
        ({"version": 1, "rules": []}, PolicyError, "unknown key 'rules'; did you mean 'rule'?"),
        ({"version": 1, "rule": [{"id": "a", "tools": ["*"], "decision": "alow"}]}, PolicyError, "policy: [[rule]] 'a': decision is allow, deny, review or clamp"),
        ({"version": 1, "rule": [{"tools": ["*"], "decision": "allow"}]}, PolicyError, "policy: [[rule]] number 1: id is missing"),
        ({"version": 1, "rule": {"id": "a"}}, PolicyError, "rule is a list of tables"),
        ({"version": 1, "actor": {"ann": 3}}, PolicyError, "policy: [actor.ann]: is a table with keys, not int"),
        ({"version": 1, "limits": {"a": object()}}, PolicyError, "a policy is made of text, numbers, lists and tables"),
        ({"version": 1, 5: 1}, PolicyError, "unknown key '5'"),
    ],
)  # fmt: skip
def test_what_is_no_policy_is_refused_with_a_sentence(policy: Any, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind) as error:
        Runtime.open("memory://", policy=policy, tools=echo)
    assert sentence in str(error.value)


async def test_a_dict_is_a_policy_with_the_keys_of_the_file() -> None:
    policy = {
        "version": 1,
        "mode": Mode.APPLY,
        "actor": {"ann": {"capabilities": {"a"}}},
        "limits": {"most": 3},
        "rule": ({"id": "few", "tools": ("echo",), "decision": "allow", "when": "args.times <= limits.most"},),
    }
    runtime = Runtime.open("memory://", policy=policy, tools=echo)
    assert (await runtime.call("echo", {"text": "a", "times": 2}, actor="ann")).ok
    assert (await runtime.call("echo", {"text": "a", "times": 4}, actor="ann")).status is Status.DENIED
    await runtime.close()


# Compensations


def _pay(compensated_by: str) -> Tool:
    compensation = Compensation(compensated_by, lambda arguments, _value: {"x": arguments["x"]})
    return tool(effect="send", name="pay", compensate=compensation)(plain)


@pytest.mark.parametrize(
    ("compensated_by", "sentence"),
    [
        ("refund", "pay: it is compensated by 'refund', and there is no such tool; pass that tool to Runtime.open"),
        ("eho", "there is no such tool; did you mean 'echo'?"),
        ("echo", "pay: it is compensated by 'echo', which is a read and changes nothing"),
    ],
)
def test_a_compensation_that_cannot_be_made_is_found_when_the_runtime_is_opened(
    compensated_by: str, sentence: str
) -> None:
    with pytest.raises(ContractError) as error:
        Runtime.open("memory://", policy=OPEN, tools=[_pay(compensated_by), echo])
    assert sentence in str(error.value)


# Calling a tool


class Season(StrEnum):
    summer = "summer"
    winter = "winter"


class Trail(BaseModel):
    name: str
    miles: float


@tool(effect="read")
def lengthen(trail: Trail, by: float = 1.0, when: date | None = None, season: Season = Season.summer) -> Trail:
    return Trail(name=f"{trail.name} {season} {when}", miles=trail.miles + by)


@tool(effect="send")
async def greet(name: str, context: Context) -> Result[str]:
    return Result(value=f"{name} from {context.actor}", summary="greeted")


def test_a_tool_is_not_called_like_a_function() -> None:
    with pytest.raises(TypeError) as error:
        lengthen(Trail(name="a", miles=1))
    assert "await Runtime.call('lengthen', {...}, actor=...)" in str(error.value)
    assert "interlock.testing.call_ungoverned(lengthen, ...)" in str(error.value)


def test_a_sync_tool_is_called_ungoverned_in_a_test() -> None:
    trail = Trail(name="a", miles=1)
    assert call_ungoverned(lengthen, trail) == Trail(name="a summer None", miles=2)
    made = call_ungoverned(lengthen, {"name": "a", "miles": 1.0}, by=2.0, when=date(2026, 1, 2), season=Season.winter)
    assert made == Trail(name="a winter 2026-01-02", miles=3)


async def test_an_async_tool_is_called_ungoverned_in_a_test() -> None:
    assert await call_ungoverned(greet, "Ann") == Result(value="Ann from tester", summary="greeted")
    other = await call_ungoverned(greet, name="Ann", context=Context(call_id="c", actor="bob", attempt=2))
    assert other.value == "Ann from bob"


def liar() -> int:
    return "seven"  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: call_ungoverned(lengthen), "lengthen: trail: required, but not given"),
        (lambda: call_ungoverned(lengthen, trail=3), "lengthen: trail: input should be"),
        (lambda: call_ungoverned(lengthen, {"name": "a", "miles": 1.0}, bye=2), "did you mean 'by'?"),
        (lambda: call_ungoverned(echo, 1, 2, 3), "echo: 3 arguments were given, and it takes 2"),
        (lambda: call_ungoverned(echo, object()), "echo: Unable to serialize"),
        (lambda: call_ungoverned(tool(effect="read")(liar)), "the tool returned something else than it promised"),
        (lambda: call_ungoverned(NO_TOOL, 1), "is not a Tool; a plain function is called as it is"),
    ],
)
def test_an_ungoverned_call_keeps_the_contract(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(ContractError) as error:
        call()
    assert sentence in str(error.value)


def test_what_the_function_raises_or_does_not_find_comes_back_as_it_is() -> None:
    @tool(effect="read")
    def find(name: str) -> str:
        if name == "nobody":
            return None  # type: ignore[return-value]
        raise LookupError(name)

    assert call_ungoverned(find, "nobody") is None
    with pytest.raises(LookupError, match="ann"):
        call_ungoverned(find, "ann")


# What is loaded and printed


def _run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


def test_a_refused_call_is_not_printed_to_stderr() -> None:
    ran = _run("""
import asyncio
from interlock import Runtime, tool

@tool(effect="read")
def look(x: int) -> int:
    return x

async def main():
    async with Runtime.open("memory://", policy={"version": 1}, tools=look) as runtime:
        print((await runtime.call("look", {"x": 1}, actor="ann")).status)

asyncio.run(main())
""")
    assert (ran.stdout, ran.stderr) == ("denied\n", "")


def test_testing_a_tool_loads_nothing_of_the_second_half() -> None:
    loaded = _run("import sys; from interlock.testing import call_ungoverned; print(*sys.modules)").stdout.split()
    assert [name for name in loaded if name.startswith(("interlock.models", "interlock.answers"))] == []


def test_what_is_heavy_is_loaded_when_it_is_used() -> None:
    loaded = _run("import sys; from interlock import Runtime, tool; print(*sys.modules)").stdout.split()
    heavy = {"cel_expr_python", "cryptography", "rapidfuzz", "psycopg", "jsonschema_rs", "rich", "jwt", "tomllib"}
    assert heavy & {name.partition(".")[0] for name in loaded} == set()
    assert "interlock.tools.spellings" not in loaded


def test_the_names_are_loaded_without_what_only_a_declared_tool_or_an_open_runtime_needs() -> None:
    loaded = set(_run("import sys; from interlock import Runtime, tool; print(*sys.modules)").stdout.split())
    later = {"pydantic", "pydantic_core", "asyncio", "pathlib", "interlock.engine", "interlock.policy"}
    later |= {"interlock.assembly", "interlock.operations", "interlock.stores", "interlock.tools.declarations"}
    assert loaded & later == set()
    assert {"interlock.runtime", "interlock.tools.contract"} <= loaded


def test_every_name_of_a_package_is_found_on_first_use() -> None:
    for package in ("interlock", "interlock.tools"):
        done = _run(f"import {package} as p; print(*[n for n in p.__all__ if getattr(p, n, None) is None])")
        assert done.stdout.split() == []
        with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
            _ = importlib.import_module(package).nothing
