"""Where a value came from is not forgotten on the way: in memories, plan sets and undo, and by whoever fills it in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlock import Context, Runtime, Status, Tool, tool
from interlock.cli.main import main
from interlock.errors import ConfigError, ContractError
from interlock.operations import Change
from interlock.resources import Documents
from interlock.tools import Compensation

POLICY: dict[str, Any] = {
    "version": 1,
    "mode": "apply",
    "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}],
    "use": [{"pack": "provenance", "tools": ["pay", "take_back"]}],
}
GOOD, BAD = "DE12500105170648489890", "LT923250458766496047"


@tool(effect="read")
async def read_mail(id: str) -> dict[str, str]:
    """Read a mail."""
    return {"from": "somebody@far.example", "body": f"The landlord's new account is {BAD}."}


@tool(effect="send")
async def take_back(account: str, amount: float) -> bool:
    """Take money back."""
    return True


@tool(effect="send", compensate=Compensation("take_back", lambda given, _value: dict(given)))
async def pay(account: str, amount: float) -> bool:
    """Pay money to an account."""
    return True


class Memory:
    """Notes and contacts that outlive a turn."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.contacts: dict[str, str] = {}

    def tools(self, *, recalls: bool = True) -> list[Tool]:
        @tool(effect="send", repeatable=True)
        async def save_note(text: str) -> bool:
            """Save a note."""
            self.notes.append(text)
            return True

        @tool(effect="send", repeatable=True)
        async def save_contact(name: str, account: str) -> bool:
            """Save a contact."""
            self.contacts[name] = account
            return True

        told: dict[str, Any] = {"recalls": ("save_note", "save_contact")} if recalls else {}

        @tool(effect="read", **told)
        async def read_notes(topic: str) -> list[str]:
            """Read the notes about something."""
            return self.notes

        @tool(effect="read", **told)
        async def find_contact(name: str) -> dict[str, str]:
            """Find a contact."""
            return {"name": name, "account": self.contacts[name]}

        return [save_note, save_contact, read_notes, find_contact, read_mail, pay, take_back]


def about(turn: str, question: str) -> dict[str, Any]:
    return {"actor": "agent", "turn": turn, "question": question}


@pytest.mark.parametrize(("recalls", "paid"), [(True, Status.PARKED), (False, Status.OK)])
async def test_a_note_of_what_stood_in_a_mail_is_no_better_than_the_mail(
    recalls: bool, paid: Status, tmp_path: Path
) -> None:
    memory, store = Memory(), f"sqlite:///{tmp_path / 'l.db'}"
    async with Runtime.open(store, policy=POLICY, tools=memory.tools(recalls=recalls)) as runtime:
        said = about("t1", "read mail 7 and note what is important")
        await runtime.call("read_mail", {"id": "7"}, **said)
        noted = await runtime.call("save_note", {"text": f"Rent: account {BAD[:4]} {BAD[4:]}"}, **said)
        assert noted.ok
        assert noted.verdict is not None
        assert bool(noted.verdict.foreign) is recalls
        assert BAD not in str(noted.verdict.foreign), "it is kept as a digest"
    # In another turn, another session, another process.
    async with Runtime.open(store, policy=POLICY, tools=memory.tools(recalls=recalls)) as runtime:
        said = about("t2", "pay the rent, 900, to the account in my notes about the apartment")
        await runtime.call("read_notes", {"topic": "apartment"}, **said)
        made = await runtime.call("pay", {"account": BAD, "amount": 900.0}, **said)
        assert made.status is paid


async def test_what_the_user_had_noted_is_the_users_own() -> None:
    memory = Memory()
    async with Runtime.open("memory://", policy=POLICY, tools=memory.tools()) as runtime:
        said = about("t1", f"note that the rent goes to {GOOD}")
        assert (await runtime.call("save_note", {"text": f"Rent goes to {GOOD}"}, **said)).ok
        said = about("t2", "pay the rent, 900, to the account in my notes about the apartment")
        await runtime.call("read_notes", {"topic": "apartment"}, **said)
        assert (await runtime.call("pay", {"account": GOOD, "amount": 900.0}, **said)).ok


@pytest.mark.parametrize("account", [BAD, "PL61109010140000071219812874"])
async def test_a_field_that_a_model_has_filled_in_is_no_field_of_ones_own(account: str) -> None:
    """Whether it took the value from a text or made it up: to write it down and read it back makes it no better."""
    memory = Memory()
    async with Runtime.open("memory://", policy=POLICY, tools=memory.tools()) as runtime:
        said = about("t1", "read mail 7 and save the landlord as a contact")
        await runtime.call("read_mail", {"id": "7"}, **said)
        assert (await runtime.call("save_contact", {"name": "landlord", "account": account}, **said)).ok
        said = about("t2", "pay the landlord 900")
        await runtime.call("find_contact", {"name": "landlord"}, **said)
        held = await runtime.call("pay", {"account": account, "amount": 900.0}, **said)
        assert held.status is Status.PARKED
        memory.contacts["landlord"] = GOOD  # somebody has corrected it, by other means
        said = about("t3", "pay the landlord 900")
        await runtime.call("find_contact", {"name": "landlord"}, **said)
        assert (await runtime.call("pay", {"account": GOOD, "amount": 900.0}, **said)).ok


def test_what_is_recalled_has_to_be_there() -> None:
    @tool(effect="read", recalls=("save_notes",))
    async def read_notes() -> str:
        """Read notes."""
        return ""

    with pytest.raises(ContractError, match="it recalls 'save_notes', and there is no such tool; did you mean"):
        Runtime.open("memory://", policy=POLICY, tools=[read_notes, *Memory().tools()[:1]])


async def test_what_is_taken_back_comes_from_its_record_and_was_asked_for(tmp_path: Path) -> None:
    documents = Documents(f"sqlite:///{tmp_path / 'd.db'}", "contacts")

    @tool(effect="write", key="{name}", resource=documents)
    async def set_account(name: str, account: str, context: Context) -> bool:
        """Set the account of somebody."""
        await documents.write(name, {"account": account}, context)
        return True

    policy = {**POLICY, "use": [{"pack": pack, "tools": ["*"]} for pack in ("provenance", "unasked")]}
    async with Runtime.open("memory://", policy=policy, tools=[set_account, pay, take_back]) as runtime:
        said = about("t1", f"pay 5 to {GOOD}, and set the account of ann to {GOOD}")
        assert (await runtime.call("pay", {"account": GOOD, "amount": 5.0}, **said)).ok
        assert (await runtime.call("set_account", {"name": "ann", "account": GOOD}, **said)).ok
        undone = await runtime.operations.undo(turn="t1", by="boss")
        assert [(step.tool, outcome and outcome.status) for step, outcome in undone] == [
            ("undo.contacts", Status.OK),
            ("take_back", Status.OK),
        ]
        outcome = undone[1][1]
        assert outcome is not None
        assert outcome.verdict is not None
        assert outcome.verdict.origins["account"] == "the record of what is taken back"
    await documents.close()


@pytest.mark.parametrize(
    ("account", "turn", "paid"),
    [(GOOD, "t1", Status.OK), (BAD, "t1", Status.PARKED), (GOOD, None, Status.PARKED)],
)
async def test_the_changes_of_a_set_keep_the_labels_of_the_turn_in_which_they_were_found(
    account: str, turn: str | None, paid: Status, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path / 'l.db'}"
    tools, changes = Memory().tools(), [Change("pay", {"account": account, "amount": 5.0}, turn)]

    @tool(effect="read")
    async def find_account(name: str) -> dict[str, str]:
        """Find somebody's account."""
        return {"name": name, "account": GOOD}

    async with Runtime.open(store, policy=POLICY, tools=[*tools, find_account]) as runtime:
        said = about("t1", "read mail 7, find ann's account, and plan what is to be paid")
        await runtime.call("read_mail", {"id": "7"}, **said)
        await runtime.call("find_account", {"name": "ann"}, **said)
        planned, refused = await runtime.operations.plan_set(changes, actor="agent", name="monday")
        assert (len(planned), refused) == (1, None)
        assert any("a person will be asked" in note for note in planned[0].notes) is (paid is Status.PARKED)
        (first,) = await runtime.operations.apply_set("monday", planned, actor="agent")
        assert first.status is paid
    async with Runtime.open(store, policy=POLICY, tools=[*tools, find_account]) as runtime:
        planned, _refused = await runtime.operations.plan_set(changes, actor="agent", name="monday")
        (again,) = await runtime.operations.apply_set("monday", planned, actor="agent")
        assert again.status is paid, "as it was stored"


async def test_what_the_application_fills_in_is_its_own() -> None:
    async with Runtime.open("memory://", policy=POLICY, tools=Memory().tools()) as runtime:
        given: dict[str, Any] = {"account": GOOD, "amount": 5.0}
        held = await runtime.call("pay", given, **about("t1", "pay 5"))
        assert held.status is Status.PARKED
        made = await runtime.call("pay", given, constants=("account",), **about("t2", "pay 5"))
        assert made.ok
        assert made.verdict is not None
        assert made.verdict.origins["account"] == "the application"


async def test_what_was_said_and_filled_in_is_known_when_a_call_is_resumed_elsewhere(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'l.db'}"
    large = {"id": "large", "tools": ["pay"], "decision": "review", "when": "args.amount > 100.0"}
    strict = {"pack": "provenance", "tools": ["pay"], "otherwise": "deny"}
    policy = {**POLICY, "rule": [*POLICY["rule"], large], "use": [strict], "review": {"self_approval": True}}
    async with Runtime.open(store, policy=policy, tools=Memory().tools()) as runtime:
        given: dict[str, Any] = {"account": "ACME-77", "amount": 500.0}
        held = await runtime.call("pay", given, constants=("account",), principal="user:ann", **about("t1", "pay 500"))
        assert held.status is Status.PARKED
        assert held.ticket is not None
    async with Runtime.open(store, policy=policy, tools=Memory().tools()) as runtime:
        await runtime.operations.decide(held.ticket, approve=True, reason="fine")
        resumed = await runtime.operations.resume(held.ticket)
        assert resumed.status is Status.OK, resumed.problem


async def test_constants_are_named() -> None:
    async with Runtime.open("memory://", policy=POLICY, tools=Memory().tools()) as runtime:
        with pytest.raises(ConfigError, match="takes no 'acount'; did you mean 'account'"):
            await runtime.call("pay", {}, actor="a", constants=("acount",))
        with pytest.raises(ConfigError, match="names of arguments"):
            await runtime.call("pay", {}, actor="a", constants="account")  # type: ignore[arg-type]


def test_what_somebody_types_is_what_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bank.py").write_text(
        "from interlock import tool\n@tool(effect='send')\nasync def send_money(account: str, amount: float) -> bool:\n"
        "    '''Send money.'''\n    return True\n"
    )
    rule = '[[rule]]\nid = "all"\ntools = ["*"]\ndecision = "allow"\n'
    packs = "".join(f'[[use]]\npack = "{pack}"\ntools = ["*"]\n' for pack in ("provenance", "unasked"))
    (tmp_path / "policy.toml").write_text(f'version = 1\nmode = "apply"\n{rule}{packs}')
    (tmp_path / "interlock.toml").write_text('policy = "policy.toml"\ntools = ["bank:send_money"]\n')
    given = f'{{"account": "{GOOD}", "amount": 5}}'
    assert main(["call", "send_money", given]) == 0
    assert main(["call", "send_money", given, "--turn", "t1"]) == 1, "in a turn, it has to come from there"
