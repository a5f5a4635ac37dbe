"""What must not be written down is not: in no spelling, under no misspelled name, and in no half."""

from __future__ import annotations

import html
import json
import logging
import re
import string
import unicodedata
from base64 import b64encode, encodebytes, urlsafe_b64encode
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import httpx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator

from interlock import Context, ContractError, Result, Runtime, Status, Tool, tool
from interlock.errors import InDoubt, Unavailable
from interlock.ports import Query
from interlock.resources.client import raise_for
from interlock.tools import MARK, Redactor
from interlock.tools.word_search import LEAST
from tests.conftest import ALLOW, expect, running
from tests.growth import LINEAR, growth

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
    "JSON, as Go writes it": lambda secret: re.sub(
        "[&<>]", lambda found: f"\\u{ord(found[0]):04x}", json.dumps(secret)
    ),
    "JSON, as PHP writes it": lambda secret: json.dumps(secret).replace("/", "\\/"),
    "JSON, every letter": lambda secret: "".join(
        f"\\u{unit}" for unit in secret.encode("utf-16-be").hex(" ", 2).split()
    ),
    "JSON, twice": lambda secret: json.dumps(json.dumps(secret))[1:-1],
    "Python": repr,
    "Python, as bytes": lambda secret: repr(secret.encode()),
    "HTML": html.escape,
    "HTML, every letter": lambda secret: "".join(f"&#{ord(letter)};" for letter in secret),
    "HTML, every letter, in hexadecimal": lambda secret: "".join(f"&#x{ord(letter):X};" for letter in secret),
    "HTML, without semicolons": lambda secret: "".join(f"&#{ord(letter)}" for letter in secret),
    "HTML, with noughts before": lambda secret: "".join(f"&#{ord(letter):010d};" for letter in secret),
    "JavaScript, in braces": lambda secret: "".join(f"\\u{{{ord(letter):x}}}" for letter in secret),
    "with what nobody sees between": "\u200b".join,
    "with a mark of direction between": "\u202e".join,
    "with tags between": "\U000e0041".join,
    "in full width": lambda secret: "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in secret),
    "HTML of a URL": lambda secret: html.escape(quote(secret, safe="&<>")),
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
        assert len(shown) <= len(f"before {MARK}%3D  after")


@given(
    secret=st.text(min_size=3, max_size=40),
    around=st.tuples(*[st.text(alphabet=string.digits + " ÄİßΣ%+\n", max_size=9)] * 2),
    spelling=st.sampled_from(
        [name for name in SPELLINGS if not {"case", "base64", "semicolons"} & set(re.findall(r"\w+", name))]
    ),
)
def test_no_letter_of_a_secret_is_left_whatever_stands_beside_it(
    secret: str, around: tuple[str, str], spelling: str
) -> None:
    try:
        encoded = SPELLINGS[spelling](secret)
    except UnicodeEncodeError:  # a lone surrogate has no percent-encoding
        return
    # What nobody sees does not count: a secret of two letters is too short to be looked for.
    assume(sum(unicodedata.category(letter) != "Cf" for letter in secret) >= LEAST)
    # Where what stands beside it makes another escape of its edge, nobody can tell which one is meant.
    assume("%" not in around[0][-2:] and "%" not in encoded[-2:])
    assert encoded not in redact(f"{around[0]}{encoded}{around[1]}", secret).replace(MARK, "\0")


def test_secrets_that_overlap_leave_nothing_between_them() -> None:
    redactor = Redactor(frozenset({"a", "b"}), {"a": "abcdef", "b": "defghi"})
    assert redactor.text("x abcdefghi y") == f"x {MARK} y"
    assert redact("xabaabax", "aba") == f"x{MARK}x"


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("Großbeerenstraße 77", "GROSSBEERENSTRASSE 77"),
        ("Großbeerenstraße 77", "grossbeerenstrasse 77"),
        ("GROSSBEERENSTRASSE 77", "Großbeerenstraße 77"),
        ("İstanbul-19", "İstanbul-19".lower()),
        ("oﬃce-secret", "OFFICE-SECRET"),
        ("office-secret", "oﬃce-secret"),
        ("ガギグ99", "ｶﾞｷﾞｸﾞ99"),
        ("Müllerweg 9", unicodedata.normalize("NFD", "Müllerweg 9")),
        (unicodedata.normalize("NFD", "Müllerweg 9"), "MÜLLERWEG 9"),
        ("91234.50", "91234.5"),
        ("91234.00", "91234"),
        ("서울특별시 강남구", unicodedata.normalize("NFD", "서울특별시 강남구")),
        ("কোন-19", unicodedata.normalize("NFD", "কোন-19")),
        ("Müller weg 9", quote_plus(unicodedata.normalize("NFD", "Müller weg 9"))),
        ("hunter 2", quote_plus(quote_plus("hunter 2"))),
        ("4711337", "4&nbsp;711&nbsp;337"),
        ("4711337", "4%2C711%2C337"),
        ("2026-01-02T10:11:12Z", "2026-01-02 10:11:12+00:00"),
    ],
)
def test_letters_numbers_and_times_are_found_in_the_other_ways_of_writing_them(secret: str, text: str) -> None:
    assert redact(f"it is {text} there", secret) == f"it is {MARK} there"


@pytest.mark.parametrize(
    "between",
    ["&shy;", "&#8203;", "\\u200b", "%E2%80%8B", "\n  ", "\f", "\v", "\x85", "\u2028", "\u2029", "%0A", "\\n"],
)
def test_what_stands_between_the_letters_is_seen_through_escaped_or_not(between: str) -> None:
    assert redact(f"it is hunt{between}er2-and-{between}more there", "hunter2-and-more") == f"it is {MARK} there"


@pytest.mark.parametrize("salary", [91234.5, "91234.5", "91234.50"])
@pytest.mark.parametrize(
    "text", ["91,234.50", "91.234,50", "91,234.5", "91.234,5", "91 234,50", "91’234.50", "91234,5"]
)
def test_a_sum_of_money_is_found_as_sums_are_written(salary: Any, text: str) -> None:
    redactor = Redactor(frozenset({"salary"}), {"salary": salary})
    assert redactor.text(f"earns {text} EUR") == f"earns {MARK} EUR"
    assert redactor.value([91234.5, 91235.5]) == [MARK, 91235.5]


def test_a_byte_that_is_no_character_does_not_hide_what_stands_before_it() -> None:
    assert redact("it is %C3%A4bc%80 there", "äbc") == f"it is {MARK}%80 there"


def test_a_number_that_was_given_as_a_text_is_found_as_a_number() -> None:
    redactor = Redactor(frozenset({"salary"}), {"salary": "91234.50"})
    assert redactor.value({"paid": 91234.5, "other": 91234.6}) == {"paid": MARK, "other": 91234.6}


@pytest.mark.parametrize("secret", [4711337, 4711337.0, "4711337", "4 711-337", "4.711.337"])
@pytest.mark.parametrize(
    "text", ["4711337", "4,711,337", "4.711.337", "4 711 337", "4_711_337", "4'711'337", "4’711’337", "471-13-37"]
)
def test_a_number_is_found_with_and_without_separators(secret: Any, text: str) -> None:
    redactor = Redactor(frozenset({"pin"}), {"pin": secret})
    assert redactor.text(f"pin {text}, please") == f"pin {MARK}, please"
    assert redactor.value([4711337, 4711337.0, 4711338]) == [MARK, MARK, 4711338]


@pytest.mark.parametrize("by", ["", " ", "-", ".", "\u00a0", "\u200b", "_"])
@pytest.mark.parametrize("given", ["4111 1111 1111 1111", "4111111111111111", "4111-1111-1111-1111"])
def test_the_number_of_a_card_is_found_however_it_is_written(given: str, by: str) -> None:
    text = by.join(["4111"] * 1 + ["1111"] * 3)
    wide = text.translate({ord("0") + digit: 0xFF10 + digit for digit in range(10)})
    assert redact(f"card {text} is declined", given) == f"card {MARK} is declined"
    assert redact(f"card {wide} is declined", given) == f"card {MARK} is declined"


@pytest.mark.parametrize(
    "cut", ["hunter2-and…", "'HUNTER2-AND-M…'", "hun...", "hunter2%2Da%6…", "hunter2\\u002d\\u00…"]
)
def test_the_beginning_of_a_secret_before_an_ellipsis_is_no_less_of_it(cut: str) -> None:
    shown = redact(f"it is {cut} and so on", "hunter2-and-more")
    assert "hun" not in shown.lower()
    assert shown.startswith("it is ")
    assert shown.endswith(" and so on")
    assert redact("as hung… is not", "hunter2-and-more") == "as hung… is not"


def test_what_is_too_much_to_search_is_withheld() -> None:
    assert redact("x" * 1_000_001) == MARK
    several = Redactor(frozenset({"t"}), {"t": [f"secret {number}" for number in range(60_000)]})
    assert several.text("anything") == MARK
    assert several.value({"a": ["b", 7, None, True]}) == {MARK: [MARK, MARK, None, True]}
    deep: Any = []
    for _level in range(100_000):
        deep = [deep]
    assert Redactor(frozenset({"t"}), [deep, {"t": "hunter2"}]).text("x hunter2") == f"x {MARK}"


ALPHABETS: dict[str, Callable[[int], str]] = {
    "numbered": lambda number: f"https://example.org/customers/number/{number:09d}",
    "of every length": lambda number: "ab" * (number % 97 + 2) + str(number),
    "prefixes of each other": lambda number: "a" * (number % 400 + 3),
}


@pytest.mark.parametrize("kind", ALPHABETS)
def test_four_times_the_secrets_and_texts_take_about_four_times_as_long(kind: str) -> None:
    def work(size: int) -> None:
        rows = [{"token": ALPHABETS[kind](number), "name": f"customer {number}"} for number in range(size)]
        redactor = Redactor(frozenset({"token"}), rows)
        redactor.value(rows)
        redactor.text(" ".join(row["token"] for row in rows))

    assert growth(work, 400) < LINEAR


@pytest.mark.slow
@given(st.lists(st.text(alphabet="ab1", min_size=3, max_size=20), min_size=60, max_size=90), st.data())
def test_many_secrets_are_found_as_each_of_them_is(secrets: list[str], data: st.DataObject) -> None:
    text = data.draw(st.text(alphabet="ab1 ", max_size=60))
    together = Redactor(frozenset({"t"}), {"t": secrets}).text(text)
    assert not any(secret in together.replace(MARK, "\0") for secret in secrets)
    if not any(redact(text, secret) != text for secret in secrets):
        assert together == text


def test_of_many_secrets_a_short_one_at_the_end_is_found_where_a_longer_one_begins_alike() -> None:
    secrets = ["1111", "1111222", *(f"secret-{number}" for number in range(60))]
    assert Redactor(frozenset({"t"}), {"t": secrets}).text("ends in 11 11") == f"ends in {MARK}"


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

    async def restore(self, key: str, state: Any) -> None:
        self.held[key] = state


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


APPLY = 'mode = "apply"\n' + ALLOW
LONG = "A" * 60 + "hunter2-" + "B" * 120


async def test_evidence_is_redacted_and_an_approval_is_still_good_for_it(durable_url: str) -> None:
    @tool(effect="send", redact={"pin"}, once_per="ever")
    async def pay(pin: str) -> str:
        return "paid"

    policy = APPLY + '[[rule]]\nid = "ask"\ntools = ["pay"]\ndecision = "review"\n[review]\nvouched = ["user"]\n'
    async with running(pay, policy=policy, store=durable_url) as runtime:
        parked = await runtime.call("pay", {"pin": "hunter2"}, actor="a", evidence=("the mail says hunter2",), run="r")
        await runtime.operations.decide(expect(parked.ticket), approve=True, by="user:boss")
        outcome = await runtime.operations.resume(expect(parked.ticket))
        body = await written(runtime)
    assert outcome.status is Status.OK
    assert "hunter2" not in body
    assert f'"evidence":["the mail says {MARK}"]' in body


async def test_names_below_a_redacted_field_are_secrets_unless_the_contract_declares_them() -> None:
    class Home(BaseModel):
        street: str

    @tool(effect="read", redact={"passwords", "home"})
    async def login(passwords: dict[str, str], home: Home) -> dict[str, str]:
        return {"used": next(iter(passwords)), "street": "none"}

    async with running(login) as runtime:
        await runtime.call("login", {"passwords": {"hunter2": "mail"}, "home": {"street": "Elm"}}, actor="a")
        body = await written(runtime)
    assert "hunter2" not in body
    assert f'"used":"{MARK}"' in body
    assert '"street":"none"' in body


async def test_no_sentence_about_a_key_or_a_name_holds_half_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    @tool(effect="write", key=lambda given: given["pin"] + "*", resource=Shelf(), redact={"pin"})
    async def put(pin: str) -> str:
        return "put"

    @tool(effect="read", redact={"pin"}, known_values={"pin": {LONG + "C": "the other one"}})
    async def find(pin: str) -> str:
        return "found"

    @tool(effect="read", redact={"pin"})
    async def check(pin: Pin) -> str:
        return "checked"

    with caplog.at_level(logging.INFO, logger="interlock"):
        async with running(put, find, check, policy=APPLY) as runtime:
            for pin in (LONG, "hunter2"):
                await runtime.call("put", {"pin": pin}, actor="a")
            await runtime.call("find", {"pin": LONG}, actor="a")
            refused = await runtime.call("check", {"pin": {"number": LONG}}, actor="a")
            body = await written(runtime)
    assert "AAA" in expect(refused.problem).message
    for text in (body, caplog.text):
        assert "AAA" not in text
        assert "hunter2" not in text
        assert "the other one" not in text


class Pin(BaseModel):
    number: str

    @field_validator("number")
    @classmethod
    def check(cls, number: str) -> str:
        raise ValueError("x" * 200 + number)


async def test_a_key_that_is_locked_is_redacted_and_still_locked_by_undo(durable_url: str) -> None:
    shelf = Shelf()

    held_by_undo: list[str] = []

    async def restore(key: str, state: Any, context: Context) -> None:
        held_by_undo.extend(name for name in context.tokens if name != key)
        shelf.held[key] = state

    shelf.restore = restore  # type: ignore[method-assign, assignment]

    @tool(
        effect="write", key="{id}", locks="{pin}", resource=shelf, redact={"pin"}, simulate=lambda _state, _given: {"n": 1},
    )  # fmt: skip
    async def put(id: str, pin: str) -> str:
        shelf.held[id] = {"n": 1}
        return "put"

    async with running(put, policy=APPLY, store=durable_url) as runtime:
        await runtime.call("put", {"id": "k", "pin": "hunter2"}, actor="a", run="r")
        body = await written(runtime)
        ((_step, undone),) = await runtime.operations.undo(run="r")
    assert f'"under":{{"shelf/{MARK}":' in body
    assert "hunter2" not in body
    assert expect(undone).status is Status.OK
    assert held_by_undo == ["hunter2"]


@pytest.mark.parametrize("how", ["says", "raises", "simulates"])
async def test_a_state_that_was_read_again_under_the_lease_is_redacted(
    caplog: pytest.LogCaptureFixture, how: str
) -> None:
    shelf = Shelf()
    shelf.held["k"] = {"pin": "hunter2-old", "n": 1}

    reads: list[str] = []

    async def read_state(key: str) -> Any:
        reads.append(key)
        if len(reads) > 1:
            shelf.held[key] = {"pin": "hunter3-new", "n": 2}
        return shelf.held.get(key)

    shelf.read_state = read_state  # type: ignore[method-assign]

    async def invariants(_given: Any, before: Any, _after: Any) -> list[str]:
        if before["k"]["n"] == 2 and how == "raises":
            raise Unavailable(f"cannot look {before['k']['pin']} up")
        return [f"{before['k']['pin']} is locked"] if before["k"]["n"] == 2 else []

    def simulate(state: Any, _given: Any) -> Any:
        if state["n"] == 2 and how == "simulates":
            raise Unavailable(f"cannot count {state['pin']}")
        return {**state, "n": 3}

    @tool(effect="write", key="{id}", resource=shelf, redact={"pin"}, invariants=invariants, simulate=simulate)
    async def put(id: str) -> str:
        return "put"

    with caplog.at_level(logging.INFO, logger="interlock"):
        async with running(put, policy=APPLY) as runtime:
            outcome = await runtime.call("put", {"id": "k"}, actor="a", call_id="c")
            body = await written(runtime)
    assert "hunter3-new" in expect(outcome.problem).message
    assert "hunter" not in body + caplog.text
    assert MARK in body


async def test_the_question_about_a_change_in_doubt_names_no_redacted_key(durable_url: str) -> None:
    shelf = Shelf()

    @tool(effect="write", key="{pin}", resource=shelf, redact={"pin"})
    async def put(pin: str) -> str:
        shelf.read_state = broken  # type: ignore[method-assign]
        raise InDoubt("no answer")

    async def broken(key: str) -> Any:
        raise OSError

    async with running(put, policy=APPLY, store=durable_url) as runtime:
        await runtime.call("put", {"pin": "hunter2"}, actor="a", call_id="c")
        await runtime.operations.recover()
        (ticket,) = await runtime.store.tickets()
        body = await written(runtime)
    assert f"'shelf/{MARK}' cannot be read" in ticket.why
    assert "hunter2" not in ticket.why + body
