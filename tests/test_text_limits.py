"""Texts from outside: linear, limited before any work, off the event loop where they are long; refused in a sentence."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import msgspec
import pytest
from pydantic import BaseModel, model_serializer

from interlock import Limits, Result, Runtime, Status, tool
from interlock.answers import Again, Agent, Answers, Intent, TurnResult, TurnStatus
from interlock.answers.grounding import Source, Vocabulary, default_vocabulary, ground
from interlock.answers.grounding.claims import Claim
from interlock.canonical import MOST_PROBLEMS
from interlock.config import Settings, TextLimits, load_settings
from interlock.errors import ConfigError
from interlock.models import Proposal
from interlock.policy import parse_policy
from interlock.ports import Query
from interlock.tools import Redactor, Tool, Unclear, redaction, resolve, results
from interlock.tools.name_index import NameIndex
from interlock.tools.results import Output, read_short
from tests.growth import LINEAR, growth
from tests.test_turns import AGENT, OPEN, QUESTION, opened, tools

SENTENCE = 1_500
"""A refusal is no longer than this, whatever was written."""
CALL = [Proposal("classify_damage", {"trail_id": "Waldo Lake"})]


def on(value: Any) -> list[Source]:
    return [Source("record 1", value)]


def chain(count: int) -> str:
    """Sums of which each rests on the result of the next."""
    return " ".join(f"{1000 + n} + 1 = {1001 + n}." for n in reversed(range(count)))


def opened_with(settings: Settings) -> Runtime:
    return Runtime.open("memory://", policy=parse_policy(OPEN), tools=tools(), settings=settings)


# How the work grows.


def test_sums_that_rest_on_each_other_in_any_order_are_all_supported() -> None:
    found = ground(chain(200), on({"a": 1000, "b": 1}))
    assert found.unsupported == ()
    assert sum(claim.how == "derived" for claim in found.claims) == 200 + 199


def test_four_times_the_sums_take_about_four_times_as_long() -> None:
    assert growth(lambda size: ground(chain(size), on({"a": 1000, "b": 1})), 80) < LINEAR


@pytest.mark.parametrize(
    "part",
    ["{n} acres ", "{n}% ", "12.4 acres ", "CASE-{n} ", "2022-08-14 ", "10:{n} ", "https://a.example/{n} ", "1 + 1 = 2 ", "two "],
)  # fmt: skip
def test_four_times_the_claims_take_about_four_times_as_long(part: str) -> None:
    rows = on([{"n": n, "at": f"CASE-{n} https://a.example/{n}"} for n in range(400)])
    limits = TextLimits(max_draft_chars=10**6, max_claims=10**6)
    assert growth(lambda size: ground("".join(part.format(n=n) for n in range(size)), rows, None, limits), 250) < LINEAR


ROWS: dict[str, Any] = {
    "numbers": lambda size: list(range(size)),
    "the same number": lambda size: {f"k{n}": 12.4 for n in range(size)},
    "rows": lambda size: [{"id": f"row-{n}", "acres": n, "note": f"CASE-{n} on 2022-08-14"} for n in range(size // 4)],
    "texts": lambda size: [f"12 acres at CASE-{n}" for n in range(size // 2)],
    "one text": lambda size: "12 acres burned. " * size,
    "one word": lambda size: "a" * size * 20,
    "a long key": lambda size: {"k" * size * 4: list(range(size))},
    "keys": lambda size: {f"key_{n}_acres": n for n in range(size // 2)},
}


@pytest.mark.parametrize("kind", ROWS)
def test_four_times_the_result_takes_about_four_times_as_long(kind: str) -> None:
    answer = " ".join(f"{n}.4 acres, CASE-{n};" for n in range(60))
    limits = TextLimits(max_evidence_chars=10**9)
    assert growth(lambda size: ground(answer, on(ROWS[kind](size)), None, limits), 700) < LINEAR


@pytest.mark.parametrize(
    "claim", ["{n} acres", "CASE-{n}", "2022-08-{n:02}", "https://a.example/{n}", "{n}.4", "12.4 acres"]
)
def test_four_times_the_claims_and_the_result_take_about_four_times_as_long(claim: str) -> None:
    """Every claim against every value would take the square."""
    limits = TextLimits(max_draft_chars=10**6, max_claims=10**6, max_evidence_chars=10**9)

    def check(size: int) -> object:
        said = [claim.format(n=n) for n in range(size)]
        return ground(", ".join(said), on([{f"k{n}": text, "n": n} for n, text in enumerate(said)]), None, limits)

    assert growth(check, 150) < LINEAR


def test_a_table_with_the_same_in_every_row_hides_nothing() -> None:
    rows: list[dict[str, Any]] = [{"miles": 7, "id": f"x-{n}", "day": "2022-08-14"} for n in range(3000)]
    rows += [{"acres": 7, "weight_kg": 7.3, "id": "CASE-9", "day": "2023-01-02"}]
    found = ground(
        "CASE-9 burned 7 acres on January 2, 2023; about 7 kg. X-5 has 7 miles. They are 3,001 rows.", on(rows)
    )
    assert found.unsupported == ()
    assert [claim.path for claim in found.claims[:2]] == ["$[3000].id", "$[3000].acres"]


def match_many(index: NameIndex, part: str, size: int) -> object:
    return index.match(part * (size // len(part)))


def test_names_against_many_known_values_take_no_more_than_both_are_long() -> None:
    known = {f"trail-{n}": (f"trail-{n}", f"Trail Number {n} lake") for n in range(1000)}
    index = NameIndex(known)
    for part in ("a", "a ", "lake ", "laka ", "trail number 7 "):
        assert growth(partial(match_many, index, part), 4000) < LINEAR
    names = {n: f"Trail Number {n} lake" for n in map(str, range(4000))}
    assert (
        growth(lambda size: NameIndex({n: (names[n],) for n in list(names)[:size]}).match("Trail 7 laka"), 800) < LINEAR
    )


# Limits, looked at before any work.


class Counting(Vocabulary):
    """A vocabulary that counts the characters that it is given to read."""

    read = 0

    def claims(self, text: str) -> tuple[Claim, ...]:
        self.read += len(text)
        return super().claims(text)


def counting() -> Counting:
    return Counting(default_vocabulary()._tables)


def test_an_answer_over_a_limit_is_not_read_and_not_supported() -> None:
    words = counting()
    found = ground("7 acres. " * 100, on({"acres": 7}), words, TextLimits(max_draft_chars=899))
    assert (words.read, found.is_supported, found.claims) == (0, False, ())
    assert found.unchecked == "an answer of 900 characters is not checked: at most 899 are (max_draft_chars)"
    found = ground("7 acres. " * 100, on({"acres": 7}), words, TextLimits(max_claims=99))
    assert words.read == 900  # the answer alone
    assert found.unchecked.startswith("an answer of 100 figures, names and dates is not checked: at most 99 are")
    assert ground("7 acres. " * 100, on({"acres": 7}), words, TextLimits(max_claims=100)).is_supported


def test_what_lies_beyond_the_limit_of_evidence_supports_nothing_and_is_not_read() -> None:
    words, limits = counting(), TextLimits(max_evidence_chars=1_000)
    rows = ["7 acres.", *(f"filler {n} x" for n in range(10_000)), "123 miles"]
    assert ground("7 acres", on(rows), words, limits).is_supported
    assert words.read < 2_000
    found = ground("7 acres, 123 miles", on(rows), words, limits)
    assert [claim.text for claim in found.unsupported] == ["123 miles"]
    assert "only the first 1,000 characters of the results are read" in found.unchecked


def test_half_of_a_text_that_is_too_long_ends_with_a_sentence() -> None:
    text = "It burned 41 acres. It cost 1,234 million dollars."
    for most in range(20, len(text)):
        found = ground("41 acres, 1 dollar, 12, 123, 1,234, 234", on(text), None, TextLimits(max_evidence_chars=most))
        assert [claim.how for claim in found.claims] == ["exact", *["unsupported"] * 5]


async def test_a_draft_that_could_not_be_checked_does_not_leave_as_verified() -> None:
    runtime = opened_with(Settings(max_draft_chars=60))
    long = "Waldo Lake is class 3 with 41.5 downed trees per mile. " * 2
    async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        await turn.propose(CALL)
        again = await turn.finish(long)
        assert isinstance(again, Again)
        assert "109 characters is not checked: at most 60 are (max_draft_chars). Write a shorter one." in again.prompt
        result = await turn.finish(long)
    assert isinstance(result, TurnResult)
    assert result.status is TurnStatus.RENDERED
    assert long.strip() not in result.answer
    assert "max_draft_chars" in result.reason
    async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        await turn.propose(CALL)
        result = await turn.finish("Waldo Lake is class 3 with 41.5 downed trees per mile.")
    assert isinstance(result, TurnResult)
    assert result.status is TurnStatus.VERIFIED
    await runtime.close()


async def test_a_question_that_is_too_long_opens_no_turn() -> None:
    runtime = opened()
    with pytest.raises(ConfigError) as refused:
        Answers(runtime).turn("damage " * 20_000, agent=AGENT)
    assert "the question has 140,000 characters, and at most 20,000 are read (max_question_chars)" in str(refused.value)
    async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        with pytest.raises(ConfigError, match="max_question_chars"):
            turn.child(AGENT, "damage " * 20_000)
        await turn.ask("x?")
    await runtime.close()


async def test_what_a_model_invents_makes_no_long_prompt() -> None:
    runtime = opened()
    links = " ".join(f"https://example.org/{'x' * 3000}{n}" for n in range(6))
    async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
        await turn.propose(CALL)
        again = await turn.finish(f"Class 3. {links}")
        assert isinstance(again, Again)
        assert len(again.prompt) < SENTENCE
        result = await turn.finish(f"Class 3. {links}")
    assert isinstance(result, TurnResult)
    assert len(result.reason) < SENTENCE
    await runtime.close()


async def _nothing(arguments: dict[str, Any]) -> None:
    """By schema."""


KNOWN = {f"trail-{n}": f"Trail Number {n} lake" for n in range(1000)}


@tool(effect="read", known_values={"trail_id": KNOWN, "others": KNOWN})
async def look(trail_id: str, others: list[str] | None = None) -> str:
    """Look."""
    return trail_id


async def refused(arguments: Any, on: Any = look) -> Any:
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[on])
    outcome = await runtime.call(on.name, arguments, actor="a")
    await runtime.close()
    assert outcome.problem is not None
    problem = outcome.problem
    assert len(problem.message) < SENTENCE
    assert len("".join([*problem.hints, *map(str, problem.fields)])) < 3 * SENTENCE
    return outcome


async def test_a_name_that_is_too_long_is_compared_with_nothing() -> None:
    for length in (501, 100_000, 200_000):
        outcome = await refused({"trail_id": "a" * length})
        assert outcome.status is Status.DENIED  # not "nothing on file", which a requirement may take for an answer
        assert f"{length:,} characters are held against no known value: at most 500 are" in outcome.problem.message
    assert resolve({"x": ["a" * 1000]}, {"x": "a" * 1000}) == ({"x": "a" * 1000}, ())  # a value is itself
    given: list[str] = []
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[finder(given)])
    assert (await runtime.call("find", {"x": "b" * 20_001}, actor="a")).status is Status.DENIED
    assert given == []
    await runtime.close()


def finder(given: list[str]) -> Tool:
    def known(text: str) -> list[str]:
        given.append(text)
        return ["b"]

    @tool(effect="read", known_values={"x": known})
    async def find(x: str) -> str:
        """Find."""
        return x

    return find


@pytest.mark.slow
async def test_many_wrong_names_make_a_short_sentence() -> None:
    wrong = {f"wrong_{n}": 1 for n in range(60_000)}
    outcome = await refused({"trail_id": "trail-1", **wrong})
    assert "there are 60,001 of them" in outcome.problem.message
    outcome = await refused({"trail_id": "trail-1", **dict(list(wrong.items())[:900])})
    assert "; and 890 more problems" in outcome.problem.message
    assert len(outcome.problem.fields) == MOST_PROBLEMS
    await refused({"trail_id": "trail-1", "w" * 100_000: 1})
    await refused({"trail_id": "trail-1", "others": [1] * 60_000})
    await refused({"trail_id": "trail-1", "others": ["nothing like it"] * 60_000})
    outcome = await refused({"trail_id": "trail-1", "others": [f"number {n} lake" for n in range(1000)]})
    assert "others: more than 100 of its items are no known values" in outcome.problem.message
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    by_schema = Tool.from_schema("schemed", _nothing, schema=schema, effect="read")
    await refused({f"wrong_{n}": 1 for n in range(20_000)}, by_schema)
    assert "more problems" in (await refused({"a": ["x"] * 20_000}, by_schema)).problem.message


def test_a_name_that_fits_very_many_is_a_short_question() -> None:
    found = resolve({"x": KNOWN}, {"x": "lake"})
    assert isinstance(found, Unclear)
    assert found.message.endswith("Trail Number 3 lake (trail-3) or one of 996 more?")
    assert len(found.fits) == 100


def test_limits_are_settings(tmp_path: Any) -> None:
    file = tmp_path / "interlock.toml"
    file.write_text("max_draft_chars = 5\n", encoding="utf-8")
    loaded = load_settings(file, environment={"INTERLOCK_MAX_CLAIMS": "7"})
    assert (loaded.settings.max_draft_chars, loaded.settings.max_claims) == (5, 7)
    for name in TextLimits.__struct_fields__:
        with pytest.raises(ConfigError, match=f"{name} must be at least 1"):
            load_settings(environment={}, given={name: 0})


# Off the event loop.


class Waiting(Vocabulary):
    """A vocabulary whose recognisers wait until something else has happened on the event loop."""

    def __init__(self, until: threading.Event) -> None:
        super().__init__(default_vocabulary()._tables)
        self._until = until
        self.went_on: bool | None = None

    def claims(self, text: str) -> tuple[Claim, ...]:
        if self.went_on is None:
            self.went_on = self._until.wait(20)
        return super().claims(text)


async def test_other_turns_go_on_while_a_long_draft_is_checked() -> None:
    """The recogniser of one turn waits for the end of another: on the event loop it would wait in vain."""
    runtime, other_ended = opened(), threading.Event()
    words = Waiting(other_ended)
    slow = Agent(name="slow", tools=("classify_damage",), intents=(Intent("damage", "classify_damage"),), semantic=False, vocabulary=words)  # fmt: skip

    async def other() -> None:
        async with Answers(runtime).turn(QUESTION, agent=AGENT) as turn:
            await turn.propose(CALL)
            assert isinstance(await turn.finish("Waldo Lake is class 3."), TurnResult)
        other_ended.set()

    async with Answers(runtime).turn(QUESTION, agent=slow) as turn:
        await turn.propose(CALL)
        result, _ = await asyncio.gather(turn.finish("Waldo Lake is class 3. " * 500), other())
    assert words.went_on
    assert isinstance(result, TurnResult)
    assert result.status is TurnStatus.VERIFIED
    await runtime.close()


async def test_a_short_draft_over_a_long_result_leaves_the_loop_too() -> None:
    ticks, enough = 0, threading.Event()

    @tool(effect="read")
    async def classify_damage() -> list[str]:
        """A long result."""
        return [f"row {n} of many" for n in range(2_000)]

    async def tick() -> None:
        nonlocal ticks
        while not enough.is_set():
            await asyncio.sleep(0)
            ticks += 1
            if ticks >= 100:
                enough.set()

    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[classify_damage])
    words = Waiting(enough)
    agent = Agent(name="slow", tools=("classify_damage",), default="classify_damage", vocabulary=words)
    async with Answers(runtime).turn(QUESTION, agent=agent) as turn:
        await turn.propose([Proposal("classify_damage", {})])
        result, _ = await asyncio.gather(turn.finish("There are 2,000 rows, row 1999 of many the last."), tick())
    assert words.went_on
    assert isinstance(result, TurnResult)
    assert result.status is TurnStatus.VERIFIED
    await runtime.close()


# Results.


@pytest.mark.parametrize("returns", [list[Any], list["Watched"], Any, Result[Any]])
async def test_a_long_result_is_read_off_the_loop_and_one_over_the_limit_not_at_all(returns: Any) -> None:
    loop_thread, threads = threading.get_ident(), list[int]()
    Watched.when_written = lambda: threads.append(threading.get_ident())

    async def rows(count: int) -> Any:
        """Rows."""
        return [Watched(name=f"row {n} of many") for n in range(count)]

    async def ends() -> list[tuple[Status, str, list[bool]]]:
        found = []
        for count in (3, 600, 5_000, 200_000):
            threads.clear()
            outcome = await runtime.call("rows", {"count": count}, actor="a")
            said = "" if outcome.problem is None else outcome.problem.message
            found.append((outcome.status, said, sorted({thread == loop_thread for thread in threads})))
        return found

    rows.__annotations__["return"] = list[Watched] if returns == list["Watched"] else returns
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[tool(effect="read", limits=LIMITS)(rows)])
    short, long, over, far_over = await ends()
    await runtime.close()
    assert short == (Status.OK, "", [True])
    assert long == (Status.OK, "", [False])
    assert (over[0], far_over[0]) == (Status.FAILED, Status.FAILED)
    assert True not in over[2]
    assert far_over[2] == []
    assert "more than" in far_over[1]
    assert "bytes" in far_over[1]


class Watched(BaseModel):
    """A row that tells when it is written out."""

    when_written: ClassVar[Callable[[], None]]
    name: str

    @model_serializer
    def _write(self) -> dict[str, str]:
        Watched.when_written()
        return {"name": self.name}


LIMITS = Limits(max_bytes=100_000)


async def test_a_long_result_in_one_step_is_measured_before_it_is_written() -> None:
    """The limit holds to the byte; what is plainly over it is not written out to find that."""

    @tool(effect="read", limits=LIMITS)
    async def text(count: int) -> dict[str, Any]:
        """A text in an object in an object."""
        return {"a": {"text": "x" * count}}

    @tool(effect="read", limits=LIMITS)
    async def bare(count: int) -> str:
        """A text."""
        return "x" * count

    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[text, bare])
    written = 0

    def watch(value: Any) -> bytes:
        nonlocal written
        written += 1
        return msgspec.json.encode(value, order="deterministic")

    for name, frame in (("text", len('{"a":{"text":""}}')), ("bare", len('""'))):
        assert (await runtime.call(name, {"count": 100_000 - frame}, actor="a")).status is Status.OK
        assert (await runtime.call(name, {"count": 100_001 - frame}, actor="a")).status is Status.FAILED
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(results, "_encode", watch)
            outcome = await runtime.call(name, {"count": 1_000_000}, actor="a")
        assert outcome.problem is not None
        assert (outcome.problem.reason, written) == ("too_large", 0)
        assert outcome.problem.message == "the result has more than the 100,000 bytes allowed"
    await runtime.close()


async def test_a_result_over_the_limit_that_reports_a_failure_is_that_failure() -> None:
    @tool(effect="read", limits=LIMITS)
    async def look() -> dict[str, Any]:
        """A failure with much around it."""
        return {"error": "the station is closed", "rows": ["x" * 1000] * 1000}

    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[look])
    outcome = await runtime.call("look", {}, actor="a")
    assert outcome.problem is not None
    assert (outcome.problem.reason, outcome.problem.message) == ("reported_failure", "the station is closed")
    await runtime.close()


# Redaction.


def listing(rows: int) -> list[dict[str, str]]:
    return [{"token": f"tok-{number:06d}", "name": f"customer {number}"} for number in range(rows)]


async def test_other_work_goes_on_while_a_long_result_is_redacted() -> None:
    loop_thread, threads = threading.get_ident(), list[int]()

    @tool(effect="read", redact={"token"})
    async def customers(rows: int) -> list[dict[str, str]]:
        return listing(rows)

    class Watching(Redactor):
        def __init__(self, *given: Any, **more: Any) -> None:
            threads.append(threading.get_ident())
            super().__init__(*given, **more)

    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[customers])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(redaction, "Redactor", Watching)
        await runtime.call("customers", {"rows": 2}, actor="a")
        await runtime.call("customers", {"rows": 2_000}, actor="a")
    await runtime.call("nobody", {"tokens": [row["token"] for row in listing(2_000)]}, actor="a")
    assert [thread == loop_thread for thread in threads] == [True, False]
    records = [record async for record in runtime.store.records(Query())]
    assert "tok-" not in "".join(record.body for record in records)
    await runtime.close()


async def test_a_call_that_is_cancelled_while_it_is_redacted_is_recorded_all_the_same() -> None:
    redacting, may_go_on = threading.Event(), threading.Event()

    @tool(effect="read", redact={"token"})
    async def customers(rows: int) -> list[dict[str, str]]:
        return listing(rows)

    class Waiting(Redactor):
        def __init__(self, *given: Any, **more: Any) -> None:
            redacting.set()
            may_go_on.wait(10)
            super().__init__(*given, **more)

    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[customers])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(redaction, "Redactor", Waiting)
        call = asyncio.ensure_future(runtime.call("customers", {"rows": 2_000}, actor="a"))
        await asyncio.to_thread(redacting.wait)
        call.cancel()
        await asyncio.sleep(0)
        may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await call
    (record,) = [record async for record in runtime.store.records(Query())]
    assert record.status == "ok"
    await runtime.close()


@pytest.mark.parametrize(
    "held",
    [
        OrderedDict.fromkeys(map(str, range(9_000))),
        set(range(9_000)),
        b"x" * 9_000,
        deque(range(9_000)),
        {"n" * 9_000: 1},
    ],
    ids=["ordered", "set", "bytes", "deque", "name"],
)
def test_what_a_result_holds_is_counted_whatever_holds_it(held: Any) -> None:
    """What is long is not read on the loop: `read_short` leaves it."""
    output = Output(Any, "rows")
    assert read_short({"rows": held}, output, False, 10**6) is None
    assert read_short(held, output, False, 10**6) is None
