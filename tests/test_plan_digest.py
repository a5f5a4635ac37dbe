"""`PlanDigest`: the three parts of a plan's digest, read back as they were written, and what is said of a difference."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.changes.keys import PlanDigest, mark_undone, on_versions, plan_difference, plan_digest, read_digest
from interlock.transitions import MarkUndone

PARTS = st.text("0123456789abcdef", min_size=1, max_size=16)
DIGESTS = st.builds(PlanDigest, request=PARTS, policy=PARTS, versions=PARTS, rests_on=st.integers(0, 99))


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def make(tool: str = "title", id: str = "a", policy: str = "p1", versions: tuple[str, ...] = ("1",)) -> str:
    return plan_digest(digest, tool, (f"shelf/{id}",), {"id": id}, policy, versions)


@given(DIGESTS)
def test_a_digest_survives_being_written_and_read(parts: PlanDigest) -> None:
    assert read_digest(str(parts)) == parts


def test_what_it_rests_on_stands_behind_it_only_where_there_is_something() -> None:
    assert str(PlanDigest("r", "p", "v")) == "r.p.v"
    assert str(PlanDigest("r", "p", "v", 2)) == "r.p.v+2"


@pytest.mark.parametrize("text", ["", "abc", "a.b", "a.b.c.d", "a.b.c+x", "a.b.c+-1", "a.b.c+1.5"])
def test_what_is_no_digest_is_none(text: str) -> None:
    assert read_digest(text) is None


@given(st.text(max_size=60))
def test_any_text_is_a_digest_or_none(text: str) -> None:
    found = read_digest(text)
    assert found is None or found.rests_on >= 0


def test_each_part_moves_with_what_it_is_made_of() -> None:
    first = read_digest(make())
    assert first is not None
    for changed, same in (
        (make(tool="other"), ("policy", "versions")),
        (make(id="b"), ("policy", "versions")),
        (make(policy="p2"), ("request", "versions")),
        (make(versions=("2",)), ("request", "policy")),
    ):
        found = read_digest(changed)
        assert found is not None
        assert found != first
        assert [getattr(found, name) for name in same] == [getattr(first, name) for name in same]


def test_the_same_plan_on_other_versions() -> None:
    assert on_versions(digest, make(), ("2",)) == make(versions=("2",))
    resting = str(msgspec.structs.replace(PlanDigest("r", "p", "v"), rests_on=2))
    assert on_versions(digest, resting, ("2",)).endswith("+2")
    with pytest.raises(ValueError, match="'nonsense' is no digest of a plan"):
        on_versions(digest, "nonsense", ("2",))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (make(), None),
        (make(id="b"), "the arguments changed since the plan was looked at"),
        (make(policy="p2"), "the policy changed since the plan was looked at"),
        (make(versions=("2",)), "the resource changed since the plan was looked at"),
        (make(id="b", policy="p2"), "the arguments and the policy changed since the plan was looked at"),
        (
            f"{make()}+2",
            "the plan rests on 2 other planned call(s) of its turn, and is applied with them as a plan set",
        ),
    ],
)
def test_what_differs_is_said(found: str, said: str | None) -> None:
    assert plan_difference(make(), found) == said


def test_a_plan_that_never_was_is_said() -> None:
    said = plan_difference("nonsense", make())
    assert said is not None
    assert said.startswith("there is no plan 'nonsense'; make one with mode=dry_run")
    assert len(plan_difference("x" * 10_000, make()) or "") < 200
    assert (
        plan_difference(make(), make(id="b"), since="approved") == "the arguments changed since the plan was approved"
    )


def test_the_claim_of_a_change_is_closed_by_its_idempotency_key() -> None:
    assert mark_undone("abc.2") == MarkUndone("abc", 2)
    assert mark_undone("a.b.12") == MarkUndone("a.b", 12)
