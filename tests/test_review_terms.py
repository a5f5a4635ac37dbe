"""Who may decide: the policy says, the ticket carries it, and neither a setting nor a spelling changes it."""

from __future__ import annotations

import asyncio
import time
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from interlock import ConfigError, Outcome, PolicyError, Runtime, Status, tool
from interlock.audit import load_or_make_key, load_public_key, verify
from interlock.config import Settings, load_settings
from interlock.errors import InDoubt, NotAllowed
from interlock.operations.ledger_writer import LedgerEntry
from interlock.policy import parse_policy
from interlock.ports import Query
from interlock.principals import check_name, default_principal, is_same, reads_like
from interlock.review.identity import TokenClaims, issue
from interlock.state import ClaimState, TicketState
from interlock.testing import ManualClock
from interlock.transitions import DecideTicket
from tests.conftest import ALLOW as READS
from tests.conftest import echo, expect
from tests.test_changes import Made, Shelf, error, mailing, retitle, running

OPEN = (
    'version = 1\nmode = "apply"\n[[rule]]\nid = "ask"\ntools = ["title"]\ndecision = "review"\nreason = "look"\n{rule}'
)


ALLOW = READS.replace("version = 1\n", 'version = 1\nmode = "apply"\n')


def policy(terms: str, rule: str = "") -> str:
    return OPEN.format(rule=rule) + f"[review]\n{terms}\n"


async def parked(runtime: Runtime, **details: Any) -> str:
    given = {"turn": "t", "call_id": "c1", "principal": "user:asker", **details}
    outcome = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", **given)
    assert outcome.status is Status.PARKED, outcome
    return expect(outcome.ticket)


async def decides(runtime: Runtime, ticket: str, by: str, approve: bool = True) -> str:
    """The state of the ticket after somebody's decision, or why it was not theirs."""
    try:
        await runtime.operations.decide(ticket, approve=approve, by=by)
    except (NotAllowed, ConfigError) as refused:
        return str(refused)
    return expect(await runtime.store.ticket(ticket)).state.value


# Several approvers, groups, delegation, reminders


async def test_two_of_three_approve_and_each_counts_once(store_url: str) -> None:
    made: list[Made] = []
    terms = 'vouched = ["user"]\nquorum = 2\napprovers = ["user:kim", "user:lee", "user:max"]'
    async with running(retitle(Shelf(), made), policy=policy(terms), url=store_url) as runtime:
        ticket = await parked(runtime)
        assert "user:eve may not decide this; user:kim, user:lee, user:max may" in await decides(
            runtime, ticket, "user:eve"
        )
        assert await decides(runtime, ticket, "user:kim") == "open"
        assert "has approved it already" in await decides(runtime, ticket, "user:kim")
        before = await runtime.store.heads()
        early = await runtime.operations.resume(ticket)
        assert (early.status, error(early), made) == (Status.PARKED, "needs_review", [])
        assert ("has 1 of the 2 approvals" in early.summary, early.ticket) == (True, ticket)
        assert await runtime.store.heads() == before, "to ask too early is no denial, and leaves no record"
        assert await decides(runtime, ticket, "user:max") == "approved"
        assert (await runtime.operations.resume(ticket)).ok
        kept = expect(await runtime.store.ticket(ticket))
    assert ([said.by for said in kept.approvals], kept.decided_by) == (["user:kim", "user:max"], "user:kim, user:max")
    assert len(made) == 1


async def test_two_who_approve_at_once_are_two(store_url: str) -> None:
    """Both decisions may land in one group of the store."""
    made: list[Made] = []
    terms = 'vouched = ["user"]\nquorum = 2'
    async with running(retitle(Shelf(), made), policy=policy(terms), url=store_url) as runtime:
        for n in range(8):
            ticket = await parked(runtime, turn=f"t{n}")
            said = await asyncio.gather(*(decides(runtime, ticket, by) for by in ("user:kim", "user:lee")))
            assert set(said) <= {"open", "approved"}
            resumed = await runtime.operations.resume(ticket)
            assert resumed.ok, resumed.summary
    assert len(made) == 8


async def test_one_of_them_is_enough_to_deny(store_url: str) -> None:
    terms = 'vouched = ["user"]\nquorum = 2\napprovers = ["user:kim", "user:lee"]'
    async with running(retitle(Shelf(), []), policy=policy(terms), url=store_url) as runtime:
        ticket = await parked(runtime)
        assert await decides(runtime, ticket, "user:kim") == "open"
        assert await decides(runtime, ticket, "user:lee", approve=False) == "denied"


async def test_a_rule_has_approvers_of_its_own_and_groups_are_written_out() -> None:
    terms = 'vouched = ["user"]\napprovers = ["user:kim"]\n[review.groups]\nfinance = ["user:fay", "user:finn"]'
    text = policy(terms, 'approvers = ["group:finance"]\nquorum = 2\n')
    async with running(retitle(Shelf(), []), policy=text) as runtime:
        ticket = await parked(runtime)
        assert "user:kim may not decide this" in await decides(runtime, ticket, "user:kim")
        assert [await decides(runtime, ticket, by) for by in ("user:fay", "user:finn")] == ["open", "approved"]


async def test_a_delegation_ends_and_speaks_for_one_voice() -> None:
    clock = ManualClock()
    day = date.fromtimestamp(clock.now_us() / 1e6).isoformat()
    terms = (
        'vouched = ["user"]\nquorum = 2\nexpires = "9d"\napprovers = ["user:kim", "user:lee"]\n'
        f'[[review.delegation]]\nof = "user:kim"\nto = "user:sub"\nuntil = {day}\n'
        '[[review.delegation]]\nof = "user:eve"\nto = "user:mal"\nuntil = 2999-01-01\n'
    )
    async with running(retitle(Shelf(), []), policy=policy(terms), clock=clock) as runtime:
        first = await parked(runtime)
        assert "may not decide" in await decides(runtime, first, "user:mal"), "one cannot give what one does not have"
        assert await decides(runtime, first, "user:sub") == "open"
        assert "user:kim has approved it already" in await decides(runtime, first, "user:kim")
        assert await decides(runtime, first, "user:lee") == "approved"
        records = [r async for r in runtime.store.records(Query()) if r.kind == "ticket"]
        assert records[0].content().arguments["in_place_of"] == "user:kim"
        second = await parked(runtime, call_id="c2", turn="u")
        clock.advance(2 * 86_400)
        assert "user:sub may not decide this" in await decides(runtime, second, "user:sub")


async def test_nobody_decides_in_the_place_of_whoever_asked() -> None:
    terms = (
        'vouched = ["user"]\napprovers = ["user:asker", "user:lee"]\n'
        '[[review.delegation]]\nof = "user:asker"\nto = "user:sub"\nuntil = 2999-01-01\n'
    )
    async with running(retitle(Shelf(), []), policy=policy(terms)) as runtime:
        ticket = await parked(runtime)
        assert "nobody decides in their place" in await decides(runtime, ticket, "user:sub")


async def test_whoever_has_to_decide_is_reminded() -> None:
    clock = ManualClock()
    terms = 'remind = "1h"\nescalate = "3h"\nexpires = "1d"'
    async with running(retitle(Shelf(), []), policy=policy(terms), clock=clock) as runtime:
        await parked(runtime)
        told = []
        for _ in range(5):
            clock.advance(3600)
            told.append([(t.escalated, t.reminded_us > 0) for t in await runtime.operations.sweep()])
            assert await runtime.operations.sweep() == (), "once each time"
        states = [r.status async for r in runtime.store.records(Query()) if r.kind == "ticket"]
    assert states == ["reminded", "reminded", "escalated", "reminded", "reminded"]
    assert told[0] == [(False, True)]


# Identity


@pytest.mark.parametrize(
    "name",
    [
        "os:root",
        "OS:root",
        "token:deployer",
        "os:boss",
        " user:ann",
        "user:ann ",
        "us​er:x",
        "user:аnn",
        "user:асе",
        "user:ёѓор",
        "user:ꓮꓡꓲꓚꓰ",
        "user:ᎪᏞᎥᏟᎬ",
        "user:օսո",
        "user:ⲟⲥ",
        "user:ഠഠ",
        "user:هه",
        "user:ﻩﻩ",
        "user:ann٥",
        "user:ㅇㅣ",
        "User:ann",
        "user:",
    ],
)
async def test_names_that_could_be_somebody_elses_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.runtime.default_principal", lambda: "os:svc")
    async with running(retitle(Shelf(), []), policy=policy('vouched = ["user"]')) as runtime:
        with pytest.raises(ConfigError):
            await runtime.call("title", {"id": "a", "title": "x"}, actor="ann", turn="t", principal=name)
        ticket = await parked(runtime)
        assert await decides(runtime, ticket, name) not in ("approved", "denied")
        with pytest.raises(ConfigError):
            await runtime.operations.halt("all", by=name)
    with pytest.raises(ConfigError):
        Runtime.open("memory://", policy=parse_policy("version = 1"), tools=[], principal=name)


@pytest.mark.parametrize(
    "name",
    [
        "os:root",
        "user:jürgen",
        "user:анна",
        "user:σοφία",
        "user:محمد",
        "user:יוסי",
        "user:გიორგი",
        "user:田中",
        "user:たなか",
        "user:田中さくら",
        "user:山田タロー",
        "user:김철수",
        "user:สมชาย",
        "token:ci-1",
        "service:a.b@c",
        "user:Ann Lee",
        "kim",
    ],
)
def test_plain_names_are_taken(name: str) -> None:
    check_name(name)


def test_one_normal_form() -> None:
    assert is_same("user:Ann", "user:ann")
    assert is_same("user:\uff41nn", "user:ann")
    assert not is_same("user:ann", "user:anne")
    assert not is_same(None, None)


@pytest.mark.parametrize(
    ("asks", "decides_as"),
    [
        ("user:admin", "user:adm\u0131n"),
        ("user:paul", "user:pauI"),
        ("user:IvanI", "user:ivanl"),
        ("user:kim", "user:\u0138im"),
        ("user:bob10", "user:boblO"),
        ("user:tom", "user:torn"),
    ],
)
async def test_nobody_decides_their_own_question_in_letters_that_look_alike(asks: str, decides_as: str) -> None:
    async with running(retitle(Shelf(), []), policy=policy('vouched = ["user"]')) as runtime:
        ticket = await parked(runtime, principal=asks)
        assert f"reads like {asks}" in await decides(runtime, ticket, decides_as)
        assert await decides(runtime, ticket, "user:boss") == "approved"


@pytest.mark.parametrize(
    ("one", "other"), [("user:ian", "user:lan"), ("user:ann", "user:anne"), ("user:rené", "user:rene")]
)
def test_names_that_people_tell_apart_are_two(one: str, other: str) -> None:
    assert not reads_like(one, other)


async def test_whom_the_policy_names_decides_though_the_name_reads_like_that_of_whoever_asked() -> None:
    async with running(retitle(Shelf(), []), policy=policy('approvers = ["user:torn"]\nvouched = ["user"]')) as runtime:
        ticket = await parked(runtime, principal="user:tom")
        assert await decides(runtime, ticket, "user:torn") == "approved"


async def test_a_capital_letter_makes_nobody_else() -> None:
    async with running(retitle(Shelf(), []), policy=policy('vouched = ["user"]')) as runtime:
        ticket = await parked(runtime, principal="user:ann")
        assert "asked for this" in await decides(runtime, ticket, "user:ANN")
        other = await parked(runtime, on_behalf_of="user:Kim", turn="u", call_id="c2")
        assert "asked for this" in await decides(runtime, other, "user:kim")


@pytest.mark.parametrize("asks", [{"principal": "user:somebody"}, {"on_behalf_of": "user:kim"}, {}])
async def test_an_account_does_not_approve_what_was_asked_from_it(store_url: str, asks: dict[str, Any]) -> None:
    """Whatever name the program gave: the account that it ran under is a party to the ticket."""
    made: list[Made] = []
    async with running(retitle(Shelf(), made), policy=policy("quorum = 1"), url=store_url) as runtime:
        ticket = await parked(runtime, **asks)
        assert expect(await runtime.store.ticket(ticket)).account == default_principal()
        refused = await decides(runtime, ticket, default_principal())
        assert f"from the account {default_principal()}, in the name of user:" in refused
        assert "from an account of their own, or with a token" in refused
        assert (await runtime.operations.resume(ticket)).status is Status.PARKED
        await runtime.operations.decide(ticket, approve=False)
        assert expect(await runtime.store.ticket(ticket)).state.value == "denied", "it may be withdrawn"
    assert made == []


async def test_a_service_that_asks_by_its_token_is_not_approved_by_its_account(tmp_path: Path) -> None:
    url, key = f"sqlite:///{tmp_path / 'l.db'}", tmp_path / "service.key"
    load_or_make_key(key)
    terms = policy(f'keys = ["ed25519:{load_public_key(key)}"]')
    async with running(retitle(Shelf(), []), policy=terms, url=url) as runtime:
        now, ledger = int(time.time()), runtime.store.identity.ledger
        (tmp_path / "token").write_text(issue(key, TokenClaims(sub="bot", aud=ledger, iat=now, exp=now + 60)))
    service = Settings(token=str(tmp_path / "token"))
    async with running(retitle(Shelf(), []), policy=terms, url=url, settings=service) as runtime:
        ticket = await parked(runtime, principal=None)
        assert expect(await runtime.store.ticket(ticket)).asked_by == "token:bot"
    async with running(retitle(Shelf(), []), policy=terms, url=url) as runtime:
        assert "in the name of token:bot" in await decides(runtime, ticket, runtime.principal)


async def test_reviewers_with_accounts_of_their_own_decide_what_a_server_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, shelf = f"sqlite:///{tmp_path / 'l.db'}", Shelf()
    with monkeypatch.context() as server:
        server.setattr("interlock.runtime.default_principal", lambda: "os:svc")
        async with running(retitle(shelf, []), policy=policy("quorum = 1"), url=url) as runtime:
            ticket = await parked(runtime)
    async with running(retitle(shelf, []), policy=policy("quorum = 1"), url=url) as runtime:
        assert await decides(runtime, ticket, runtime.principal) == "approved"
        assert (await runtime.operations.resume(ticket)).ok, "by whoever decided, too"


async def test_one_person_alone_says_so_in_the_policy() -> None:
    async with running(retitle(Shelf(), []), policy=policy("self_approval = true")) as runtime:
        ticket = await parked(runtime)
        assert await decides(runtime, ticket, runtime.principal) == "approved"
        said = [r.content().arguments async for r in runtime.store.records(Query()) if r.kind == "ticket"]
    assert said[0]["by_proposer"] is True, "and the ledger says it"


async def test_nobody_decides_in_the_place_of_the_account_that_asked() -> None:
    terms = (
        f'vouched = ["user"]\napprovers = ["{default_principal()}", "user:lee"]\n'
        f'[[review.delegation]]\nof = "{default_principal()}"\nto = "user:sub"\nuntil = 2999-01-01\n'
    )
    async with running(retitle(Shelf(), []), policy=policy(terms)) as runtime:
        ticket = await parked(runtime)
        assert "nobody decides in their place" in await decides(runtime, ticket, "user:sub")


async def test_no_variable_changes_who_calls_or_who_may_approve(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PRINCIPAL", "os:boss"), ("SELF_APPROVAL", "true"), ("REVIEW_KEYS", "mine.pem")):
        with pytest.raises(ConfigError, match="there is no such setting"):
            load_settings(environment={f"INTERLOCK_{name}": value})
    monkeypatch.setenv("LOGNAME", "boss")
    monkeypatch.setenv("USER", "boss")
    runtime = Runtime.open("memory://", policy=parse_policy("version = 1"), tools=[])
    assert runtime.principal == default_principal() != "os:boss"
    await runtime.close()


async def test_the_terms_are_those_under_which_it_was_asked(tmp_path: Path) -> None:
    """Another process, with a policy of its own choice, decides by the terms of the ticket."""
    url, shelf = f"sqlite:///{tmp_path / 'l.db'}", Shelf()
    async with running(retitle(shelf, []), policy=policy('approvers = ["user:kim"]\nquorum = 1'), url=url) as runtime:
        ticket = await parked(runtime, principal=None)
    lax = policy('self_approval = true\nvouched = ["user"]')
    async with running(retitle(shelf, []), policy=lax, url=url) as runtime:
        assert "asked for this" in await decides(runtime, ticket, runtime.principal)
        assert "the word of an application is not enough" in await decides(runtime, ticket, "user:kim")
        denied = await runtime.operations.resume(ticket)
    assert (denied.status, shelf.items) == (Status.PARKED, {})


async def test_a_service_calls_and_decides_with_its_token(tmp_path: Path) -> None:
    url, key = f"sqlite:///{tmp_path / 'l.db'}", tmp_path / "service.key"
    load_or_make_key(key)
    terms = policy(f'keys = ["ed25519:{load_public_key(key)}"]')
    async with running(retitle(Shelf(), []), policy=terms, url=url) as runtime:
        ledger, ticket = runtime.store.identity.ledger, await parked(runtime)
        now = int(time.time())
        token = issue(key, TokenClaims(sub="deployer", aud=ledger, iat=now, exp=now + 60))
        await runtime.operations.decide(ticket, approve=True, token=token)
        assert expect(await runtime.store.ticket(ticket)).decided_by == "token:deployer"
        with pytest.raises(NotAllowed, match="not a token"):
            await runtime.operations.decide(ticket, approve=True, token="token:deployer")
    (tmp_path / "token").write_text(token)
    async with running(
        retitle(Shelf(), []), policy=terms, url=url, settings=Settings(token=str(tmp_path / "token"))
    ) as runtime:
        assert runtime.principal == "token:deployer"
    with pytest.raises(ConfigError, match="cannot be read"):
        Runtime.open(url, policy=parse_policy(terms), tools=[retitle(Shelf(), [])], settings=Settings(token="nowhere"))


async def test_the_name_of_a_runtime_is_not_enough_to_decide(tmp_path: Path) -> None:
    """Whoever opens a runtime can give it any name; the policy says whose word counts."""
    url = f"sqlite:///{tmp_path / 'l.db'}"
    async with running(retitle(Shelf(), []), policy=policy("quorum = 1"), url=url) as runtime:
        ticket = await parked(runtime, principal=None)
    async with running(retitle(Shelf(), []), policy=policy("quorum = 1"), url=url, principal="user:boss") as runtime:
        with pytest.raises(NotAllowed, match="the word of an application is not enough for 'user:boss'"):
            await runtime.operations.decide(ticket, approve=True)


async def test_a_token_of_a_key_of_ones_own_decides_nothing(tmp_path: Path) -> None:
    url, mine, theirs = f"sqlite:///{tmp_path / 'l.db'}", tmp_path / "mine.key", tmp_path / "theirs.key"
    for file in (mine, theirs):
        load_or_make_key(file)

    def trusting(file: Path) -> str:
        return policy(f'keys = ["ed25519:{load_public_key(file)}"]')

    async with running(retitle(Shelf(), []), policy=trusting(theirs), url=url) as runtime:
        ledger, ticket = runtime.store.identity.ledger, await parked(runtime)
    now = int(time.time())
    for file, words in ((mine, "not signed by a key that this store trusts"), (theirs, "")):
        (tmp_path / "token").write_text(issue(file, TokenClaims(sub="deployer", aud=ledger, iat=now, exp=now + 60)))
        service = Settings(token=str(tmp_path / "token"))
        async with running(retitle(Shelf(), []), policy=trusting(file), url=url, settings=service) as runtime:
            if words:
                with pytest.raises(NotAllowed, match=words):
                    await runtime.operations.decide(ticket, approve=True)
            else:
                await runtime.operations.decide(ticket, approve=True)
                assert (await runtime.operations.resume(ticket)).ok, "its token is kept with the decision"


TAINTED = '[[rule]]\nid = "tainted"\ntools = ["title"]\nwhen = "turn.tainted"\n'


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (TAINTED + 'decision = "deny"\nreason = "it has read from outside"\n', "it has read from outside"),
        (TAINTED + 'decision = "review"\n', "now rule 'tainted' asks; ask again"),
        ("", ""),
    ],
)
async def test_the_rules_look_again_at_the_turn_when_an_approval_is_spent(rule: str, words: str) -> None:
    @tool(effect="read", trust="untrusted")
    async def mail() -> str:
        """What came in."""
        return "do as I say"

    text = "version = 1\n" + 'mode = "apply"\n' + rule
    text += '[[rule]]\nid = "ask"\ntools = ["title"]\ndecision = "review"\n'
    text += '[[rule]]\nid = "mail"\ntools = ["mail"]\ndecision = "allow"\n[review]\nvouched = ["user"]\n'
    async with running(retitle(Shelf(), []), mail, policy=text) as runtime:
        ticket = await parked(runtime)
        assert await decides(runtime, ticket, "user:boss") == "approved"
        assert (await runtime.call("mail", {}, actor="ann", turn="t")).ok
        outcome = await runtime.operations.resume(ticket)
    assert outcome.status is (Status.DENIED if words else Status.OK)
    assert words in outcome.summary


async def test_an_approval_under_other_terms_is_not_spent() -> None:
    rules = (
        '[[rule]]\nid = "strict"\ntools = ["title"]\ndecision = "review"\nwhen = "turn.calls > 1"\n'
        'approvers = ["user:boss"]\n'
    )
    text = OPEN.format(rule='when = "turn.calls <= 1"\napprovers = ["user:clerk"]\n') + rules
    text += '[[rule]]\nid = "echo"\ntools = ["echo"]\ndecision = "allow"\n[review]\nvouched = ["user"]\n'
    async with running(retitle(Shelf(), []), echo, policy=text) as runtime:
        ticket = await parked(runtime)
        assert await decides(runtime, ticket, "user:clerk") == "approved"
        for n in range(3):
            await runtime.call("echo", {"text": str(n)}, actor="ann", turn="t")
        outcome = await runtime.operations.resume(ticket)
    assert (outcome.status, "under other terms" in outcome.summary) == (Status.DENIED, True)


# Who says whether it landed


STRICT = 'approvers = ["user:lead", "user:boss"]\nquorum = 2\nvouched = ["user"]\n'


async def in_doubt(runtime: Runtime, **details: Any) -> None:
    given = {"principal": "user:asker", "call_id": "c1", **details}
    outcome = await runtime.call("mail", {"to": "a"}, actor="ann", **given)
    assert outcome.status is Status.UNKNOWN, outcome


async def test_who_says_whether_it_landed_is_said_by_the_policy_under_which_it_was_made(durable_url: str) -> None:
    """Whoever recovers brings a policy of their own; that one does not say who settles what others have made."""
    made: list[str] = []
    mail = mailing(made, InDoubt("lost"))
    async with running(mail, policy=f"{ALLOW}[review]\n{STRICT}", url=durable_url) as runtime:
        await in_doubt(runtime, principal=None)
    own = f'{ALLOW}[review]\nself_approval = true\nvouched = ["user"]\n'
    async with running(mail, policy=own, url=durable_url) as runtime:
        (asked,) = await runtime.operations.recover()
        ticket = expect(asked.ticket)
        assert expect(await runtime.store.ticket(ticket)).terms.approvers == ("user:lead", "user:boss")
        for approve in (True, False):
            assert "asked for this" in await decides(runtime, ticket, runtime.principal, approve)
            assert "user:me may not decide this" in await decides(runtime, ticket, "user:me", approve)
        again = await runtime.call("mail", {"to": "a"}, actor="ann", call_id="c1")
        assert (again.status, made) == (Status.UNKNOWN, ["a"])
        assert await decides(runtime, ticket, "user:lead") == "open"
        assert await decides(runtime, ticket, "user:boss") == "approved"
        again = await runtime.call("mail", {"to": "a"}, actor="ann", call_id="c1")
    assert (again.status, made) == (Status.OK, ["a"])


async def test_what_a_rule_asked_others_about_they_settle_too() -> None:
    rule = (
        '[[rule]]\nid = "ask"\ntools = ["mail"]\ndecision = "review"\napprovers = ["user:fay", "user:finn"]\n'
        '[review]\napprovers = ["user:lead"]\nvouched = ["user"]\n'
    )
    async with running(mailing([], InDoubt("lost")), policy=ALLOW + rule) as runtime:
        waiting = await runtime.call("mail", {"to": "a"}, actor="ann", principal="user:asker", call_id="c1")
        assert await decides(runtime, expect(waiting.ticket), "user:fay") == "approved"
        assert (await runtime.operations.resume(expect(waiting.ticket))).status is Status.UNKNOWN
        (asked,) = await runtime.operations.recover()
        assert "user:lead may not decide this" in await decides(runtime, expect(asked.ticket), "user:lead")
        assert await decides(runtime, expect(asked.ticket), "user:finn") == "approved"


async def test_an_account_does_not_settle_what_was_made_from_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url, mail = f"sqlite:///{tmp_path / 'l.db'}", mailing([], InDoubt("lost"))
    async with running(mail, policy=ALLOW, url=url) as runtime:
        await in_doubt(runtime)
    with monkeypatch.context() as other:
        other.setattr("interlock.runtime.default_principal", lambda: "os:other")
        async with running(mail, policy=ALLOW, url=url) as runtime:  # whoever recovers is not a party by that
            (asked,) = await runtime.operations.recover()
    ticket = expect(asked.ticket)
    async with running(mail, policy=ALLOW, url=url) as runtime:
        for approve in (True, False):
            assert "from the account" in await decides(runtime, ticket, default_principal(), approve)
    for module in ("interlock.runtime", "interlock.operations.approvals"):
        monkeypatch.setattr(f"{module}.default_principal", lambda: "os:other")
    async with running(mail, policy=ALLOW, url=url) as runtime:
        assert await decides(runtime, ticket, "os:other") == "approved"


async def test_two_who_say_at_once_that_it_landed_settle_it(store_url: str) -> None:
    async with running(
        mailing([], *[InDoubt("lost")] * 8), policy=f"{ALLOW}[review]\n{STRICT}", url=store_url
    ) as runtime:
        for n in range(8):
            await in_doubt(runtime, call_id=f"c{n}")
        for asked in await runtime.operations.recover():
            ticket = expect(asked.ticket)
            both = [decides(runtime, ticket, by) for by in ("user:lead", "user:boss")]
            assert "approved" in await asyncio.gather(*both)
            assert expect(await runtime.store.claim(asked.claim)).state is ClaimState.DONE
        assert (await verify(runtime.store)).problems == ()


async def test_what_people_have_said_is_not_asked_again_if_they_died_before_it_was_settled(store_url: str) -> None:
    async with running(mailing([], InDoubt("lost")), policy=f"{ALLOW}[review]\n{STRICT}", url=store_url) as runtime:
        await in_doubt(runtime)
        (asked,) = await runtime.operations.recover()
        ticket = expect(await runtime.store.ticket(expect(asked.ticket)))
        assert await decides(runtime, ticket.id, "user:lead") == "open"
        # The other one read the ticket before that, so believed that somebody else was needed, and died.
        writer = await runtime.operations.decider(ticket.id, "user:boss", None)
        said = {"ticket": ticket.id, "state": "approved", "binding": ticket.binding, "claim": ticket.claim}
        yes = DecideTicket(ticket.id, TicketState.APPROVED, "user:boss", "", "user:boss")
        await writer.commit(LedgerEntry("ticket", "approved", said), yes)
        (settled,) = await runtime.operations.recover()
        assert (settled.state, settled.how) == ("done", "user:lead, user:boss said so")
        assert await runtime.operations.recover() == ()
        assert (await verify(runtime.store)).problems == ()


# What an approval is good for


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"on_behalf_of": "user:other"}, "on behalf of"),
        ({"on_behalf_of": None}, "on behalf of"),
        ({"evidence": ("r2",)}, "the evidence or the confidence"),
        ({"confidence": 0.1}, "the evidence or the confidence"),
        ({"run": "r2"}, "the run, the evidence"),
    ],
)
async def test_an_approval_is_bound_to_everything_that_rules_can_see(changed: dict[str, Any], sentence: str) -> None:
    shelf, asked = Shelf(), {"on_behalf_of": "user:kim", "evidence": ("r1",), "confidence": 0.9, "run": "r1"}
    async with running(retitle(shelf, []), policy=policy('vouched = ["user"]')) as runtime:
        ticket = await parked(runtime, **asked)
        assert await decides(runtime, ticket, "user:boss") == "approved"
        given = {**asked, "principal": "user:asker", "turn": "t", "call_id": "c1", "ticket": ticket, **changed}
        outcome: Outcome = await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", **given)
        assert (outcome.status, shelf.items) == (Status.DENIED, {})
        assert sentence in outcome.summary
        assert (await runtime.operations.resume(ticket)).ok


async def test_changed_terms_end_an_approval(tmp_path: Path) -> None:
    url, shelf = f"sqlite:///{tmp_path / 'l.db'}", Shelf()
    async with running(retitle(shelf, []), policy=policy('vouched = ["user"]'), url=url) as runtime:
        ticket = await parked(runtime)
        assert await decides(runtime, ticket, "user:boss") == "approved"
    async with running(retitle(shelf, []), policy=policy('vouched = ["user"]\nquorum = 2'), url=url) as runtime:
        outcome = await runtime.operations.resume(ticket)
    assert "the policy changed since the plan was approved" in outcome.summary


# What a policy may say


@pytest.mark.parametrize(
    ("terms", "finding"),
    [
        ("quorums = 2", "did you mean 'quorum'"),
        ("quorum = 0", "quorum is a whole number"),
        ('quorum = 3\napprovers = ["user:a", "user:b"]', "3 approvals are wanted"),
        ('expires = "soon"', 'expires is written "24h"'),
        ("self_approval = 1", "self_approval is true or false"),
        ('vouched = ["os"]', "vouched names kinds of names"),
        ('approvers = ["group:none"]', "there is no group 'none'"),
        ('approvers = ["user:аnn"]', "letters of several alphabets"),
        ('[[review.delegation]]\nof = "user:a"\nto = "user:b"', "until says when it ends"),
        ('[review.groups]\nx = "user:a"', "x is a list of names"),
        ("delegation = 1", "delegation is a list of tables"),
        ("groups = 1", "groups is a table"),
    ],
)
def test_what_cannot_be_meant_is_a_finding(terms: str, finding: str) -> None:
    with pytest.raises(PolicyError, match=finding.replace("[", r"\[")):
        parse_policy(policy(terms))


def test_only_a_review_has_approvers() -> None:
    with pytest.raises(PolicyError, match="has approvers or a quorum"):
        parse_policy('version = 1\n[[rule]]\nid = "x"\ntools = ["*"]\ndecision = "allow"\nquorum = 2\n')


def test_keys_that_cannot_be_read_and_groups_that_are_too_small(tmp_path: Path) -> None:
    for terms, sentence in (
        ('keys = ["nowhere.pem"]', "cannot be read"),
        ('keys = ["ed25519:beef"]', "is no key"),
        ('quorum = 2\napprovers = ["group:g"]\n[review.groups]\ng = ["user:a"]', "only user:a may give one"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            Runtime.open("memory://", policy=parse_policy(policy(terms)), tools=[retitle(Shelf(), [])])
