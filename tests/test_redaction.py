"""What must not be written down is not: in no spelling, under no misspelled name, and in no half."""

from __future__ import annotations

import json
import string
from base64 import b64encode, encodebytes, urlsafe_b64encode
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from interlock import ContractError, Result, Runtime, Tool, tool
from interlock.errors import Unavailable
from interlock.ports import Query
from interlock.resources.client import raise_for
from interlock.tools import MARK, Redactor
from tests.conftest import ALLOW, expect, running

SECRET = "Hunter2/ÿ+ päss wörd?>9"


async def written(runtime: Runtime) -> str:
    return "".join([record.body async for record in runtime.store.records(Query())])


def redact(text: str, secret: str = SECRET) -> str:
    return Redactor(frozenset({"token"}), {"token": secret}).text(text)


def half_escaped(secret: str) -> str:
    return "".join(quote(letter, safe="") if place % 2 else letter for place, letter in enumerate(secret))


SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda secret: secret,
    "in upper case": lambda secret: secret.upper(),
    "in lower case": lambda secret: secret.lower(),
    "percent": lambda secret: quote(secret, safe=""),
    "percent, small digits": lambda secret: quote(secret, safe="").lower(),
    "percent, here and there": half_escaped,
    "percent, as forms": quote_plus,
    "percent, twice": lambda secret: quote(quote(secret, safe=""), safe=""),
    "hex": lambda secret: secret.encode().hex(),
    "hex, capitals": lambda secret: secret.encode().hex().upper(),
    "base64": lambda secret: b64encode(secret.encode()).decode(),
    "base64, for URLs": lambda secret: urlsafe_b64encode(secret.encode()).decode().rstrip("="),
    "base64, in a URL": lambda secret: quote(b64encode(secret.encode()).decode(), safe=""),
    "base64, one byte before": lambda secret: b64encode(f"u{secret}:x".encode()).decode(),
    "base64, two bytes before": lambda secret: b64encode(f"me{secret}".encode()).decode(),
    "base64, three bytes before": lambda secret: b64encode(f"me:{secret}!".encode()).decode(),
    "base64, in lines": lambda secret: encodebytes(b"x" * 50 + secret.encode()).decode(),
    "JSON": json.dumps,
    "Python": repr,
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_secret_is_found_in_every_spelling(spelling: str) -> None:
    encoded = SPELLINGS[spelling](SECRET)
    shown = redact(f"before {encoded} after")
    assert shown.startswith("before ")
    assert shown.endswith(" after")
    assert MARK in shown
    # Around a longer text in base64 its other bytes stay; nothing that is the secret's alone does.
    if "before" not in spelling and "lines" not in spelling:
        assert len(shown) <= len(f"before {MARK}%3D after")


@given(
    secret=st.text(min_size=3, max_size=40),
    around=st.tuples(*[st.text(alphabet=string.digits + " ÄİßΣ%+\n", max_size=9)] * 2),
    spelling=st.sampled_from([name for name in SPELLINGS if "case" not in name and "base64" not in name]),
)
def test_no_letter_of_a_secret_is_left_whatever_stands_beside_it(
    secret: str, around: tuple[str, str], spelling: str
) -> None:
    try:
        encoded = SPELLINGS[spelling](secret)
    except UnicodeEncodeError:  # a lone surrogate has no percent-encoding
        return
    assert encoded not in redact(f"{around[0]}{encoded}{around[1]}", secret).replace(MARK, "\0")


def test_secrets_that_overlap_leave_nothing_between_them() -> None:
    redactor = Redactor(frozenset({"a", "b"}), {"a": "abcdef", "b": "defghi"})
    assert redactor.text("x abcdefghi y") == f"x {MARK} y"
    assert redact("xabaabax", "aba") == f"x{MARK}x"


def test_a_secret_that_repeats_itself_is_not_searched_for_ever() -> None:
    assert redact("a" * 300_000, "a" * 20_000) == MARK


async def test_a_sentence_is_cut_only_after_it_was_redacted(store_url: str) -> None:
    @tool(effect="read", redact={"token"})
    async def login(token: str, how: str) -> Any:
        filler = "x" * 1995
        match how:
            case "raised":
                raise Unavailable(filler + token, hints=(filler + token,))
            case "text":
                return f"Error: {'x' * 488}{token}"
            case "field":
                return {"success": False, "error": {"message": "x" * 495 + token}}
            case _:
                return {"isError": True, "content": [{"text": "x" * 495 + token}]}

    async with running(login, store=store_url) as runtime:
        for how in ("raised", "text", "field", "content"):
            outcome = await runtime.call("login", {"token": "hunter2-and-more", "how": how}, actor="a")
            assert len(expect(outcome.problem).message) <= 2000
        assert "xhun" not in await written(runtime)


def test_what_a_server_answered_is_not_cut_before_it_can_be_redacted() -> None:
    request = httpx.Request("GET", "https://example.org/x")
    answer = httpx.Response(503, text="y" * 195 + "hunter2", request=request)
    with pytest.raises(Unavailable, match=r"hunter2$"):
        raise_for(answer)


async def test_what_a_failure_says_about_itself_is_redacted_in_its_sentence() -> None:
    @tool(effect="read", redact={"token"})
    async def login(user: str) -> Any:
        return {"error": "the token s3cr3t-9 has expired", "token": "s3cr3t-9"}

    async with running(login) as runtime:
        outcome = await runtime.call("login", {"user": "u"}, actor="a")
        body = await written(runtime)
    assert expect(outcome.problem).message == "the token s3cr3t-9 has expired"
    assert "s3cr3t-9" not in body
    assert f"the token {MARK} has expired" in body


async def test_the_value_of_a_misspelled_argument_is_redacted() -> None:
    @tool(effect="read", redact={"token"})
    async def login(token: str, user: dict[str, str]) -> str:
        return "in"

    async def admit(arguments: dict[str, Any]) -> str:
        return "in"

    schema = {"type": "object", "properties": {"token": {"type": "string"}}, "required": ["token"]}
    other = Tool.from_schema("admit", admit, schema=schema, effect="read", redact={"token"})
    async with running(login, other) as runtime:
        await runtime.call("login", {"tokne": "hunter2", "user": {}}, actor="a")
        await runtime.call("login", {"unreadable": '{"token": "hunter2'}, actor="a")
        await runtime.call("login", {"tokne": "hunter2"}, actor="a", offered=("admit",), turn="t")
        await runtime.call("admit", {"tokne": "hunter2"}, actor="a")
        await runtime.call("logon", {"deep": [{"Tokens": "hunter2"}], "user": "ann"}, actor="a")
        body = await written(runtime)
    assert "hunter2" not in body
    assert '"user":"ann"' in body
    assert body.count(MARK) >= 5


class Account(BaseModel):
    account_name: str = Field(alias="accountName")
    pin: str


@pytest.mark.parametrize(
    ("redacts", "gives", "sentence"),
    [
        ({"pasword"}, str, "login: redact names a field that it does not have, 'pasword'; did you mean 'password'?"),
        ({"pasword"}, dict[str, Any], "'pasword'; did you mean 'password'?"),
        ({"zzz"}, str, "'zzz'; its fields are password, user"),
        ({"zzz"}, Account, "'zzz'; its fields are accountName, account_name, password, pin, user"),
        ({"PASSWORD", "pin", "account_name", "accountname"}, Account, None),
        ({"phone"}, dict[str, Any], None),
        ({"phone"}, Result[str], None),
        ({"passwords", "password"}, Any, None),
    ],
)
def test_redacting_a_field_that_is_not_there_is_refused(redacts: set[str], gives: Any, sentence: str | None) -> None:
    def login(user, password):  # type: ignore[no-untyped-def]
        return None

    login.__annotations__ = {"user": str, "password": str, "return": gives}
    if sentence is None:
        assert tool(effect="read", redact=redacts)(login).redact == redacts
        return
    with pytest.raises(ContractError) as error:
        tool(effect="read", redact=redacts)(login)
    assert sentence in str(error.value)


class Shelf:
    name = "shelf"

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}

    async def read_state(self, key: str) -> Any:
        return self.held.get(key)

    async def restore(self, key: str, state: Any) -> None: ...


async def test_what_was_not_done_as_planned_is_said_without_a_cut_secret(store_url: str) -> None:
    shelf = Shelf()

    @tool(
        effect="write", key="{pin}", resource=shelf, redact={"pin"}, simulate=lambda _state, given: {"pin": given["pin"]},
    )  # fmt: skip
    async def put(pin: str) -> str:
        shelf.held[pin] = {"pin": "other"}
        return "x" * 150 + pin

    policy = 'mode = "apply"\n' + ALLOW
    async with running(put, policy=policy, store=store_url) as runtime:
        outcome = await runtime.call("put", {"pin": "hunter2-and-more"}, actor="a", call_id="c")
        bodies = [record.body async for record in runtime.store.records(Query())]
    assert outcome.deviates == ("shelf/hunter2-and-more",)
    assert "xhun" not in bodies[-1]
    assert "hunter2" not in bodies[-1]
    assert f'"deviates":["shelf/{MARK}"]' in bodies[-1]
