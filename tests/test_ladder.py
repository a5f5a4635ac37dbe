"""The ladder: a pure function; from any state it ends within the bound, and nothing unverified passes."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from interlock.answers import Agent, TurnOutcome, TurnState, model_calls, next_step
from interlock.answers.ladder import Ask, Escalate, Force, Pass, Render, Retry, Stop, Wait
from interlock.answers.requirements import (
    AllOf,
    AnyOf,
    CallSeen,
    Need,
    all_of,
    any_of,
    find_unmet,
    leaves,
    met_at,
    need,
    next_needs,
)
from interlock.values import Status

NEED = need("a")
STATES = st.builds(
    TurnState,
    required=st.booleans(),
    missing=st.sampled_from([None, NEED, all_of("a", "b"), any_of("a", "b")]),
    failed=st.sampled_from(["", "a failed"]),
    empty=st.sampled_from(["", "nothing"]),
    ticket=st.sampled_from([None, "t"]),
    question=st.sampled_from(["", "which?"]),
    lacks=st.sampled_from(["", "say it"]),
    blocked=st.sampled_from(["", "no"]),
    no_reply=st.sampled_from(["", "no connection"]),
    late=st.booleans(),
    has_draft=st.booleans(),
    has_results=st.booleans(),
    unsupported=st.sampled_from([(), ("41",)]),
    irrelevant=st.booleans(),
    retries=st.integers(0, 3),
    max_retries=st.integers(0, 3),
    corrected=st.booleans(),
    forced=st.sampled_from([(), ("a",), ("a", "b")]),
    calls_left=st.integers(-1, 5),
)


@given(STATES)
def test_only_what_is_verified_passes(state: TurnState) -> None:
    step = next_step(state)
    if isinstance(step, Pass):
        assert state.missing is None
        assert state.has_draft
        assert not state.unsupported
        assert not state.irrelevant
        assert not state.blocked
        assert state.ticket is None
    if isinstance(step, Render):
        assert state.missing is None
        assert state.has_results or not state.no_reply
    if state.calls_left <= 0 or state.late or state.no_reply:
        assert not isinstance(step, Retry | Force)


@given(STATES)
def test_every_state_ends(state: TurnState) -> None:
    for _ in range(20):
        step = next_step(state)
        if isinstance(step, Pass | Ask | Render | Wait | Stop | Escalate):
            return
        state = msgspec.structs.replace(state, calls_left=state.calls_left - 1)
        if isinstance(step, Force):
            assert step.need.tool not in state.forced
            state = msgspec.structs.replace(state, forced=(*state.forced, step.need.tool))
        elif isinstance(step, Retry) and step.missing is not None:
            state = msgspec.structs.replace(state, retries=state.retries + 1)
        else:
            state = msgspec.structs.replace(state, corrected=True)
    raise AssertionError("it did not end")


def test_the_bound_is_derived() -> None:
    agent = Agent(name="a", tools=("a", "b", "c"))
    assert model_calls(agent, need("a")) == 5
    assert model_calls(agent, all_of()) == 5
    assert model_calls(agent, all_of("a", "b", "c")) == 7
    assert model_calls(msgspec.structs.replace(agent, max_retries=0), need("a")) == 3


def test_outcomes_of_passing() -> None:
    assert next_step(TurnState()) == Pass(TurnOutcome.PASSED)
    assert next_step(TurnState(retries=1)) == Pass(TurnOutcome.RETRY_SUCCEEDED)
    assert next_step(TurnState(forced=("a",), retries=2)) == Pass(TurnOutcome.FORCED)
    assert next_step(TurnState(required=False)) == Pass(TurnOutcome.SKIPPED_NO_REQUIREMENTS)


REQUIREMENTS = st.recursive(
    st.sampled_from("abc").map(lambda name: Need(tool=name)),
    lambda inner: st.one_of(
        st.builds(AllOf, parts=st.lists(inner, min_size=1, max_size=3).map(tuple), in_order=st.booleans()),
        st.builds(AnyOf, parts=st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)
CALLS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(list(Status))), max_size=8)


@given(REQUIREMENTS, CALLS)
def test_what_is_unmet_is_what_is_left(requirement: AllOf | AnyOf | Need, made: list[tuple[str, Status]]) -> None:
    calls = [CallSeen(record=n, tool=tool, status=status) for n, (tool, status) in enumerate(made)]
    left = find_unmet(requirement, calls)
    assert (left is None) is (met_at(requirement, calls) is not None)
    if left is not None:
        assert next_needs(left)
        extra = [
            CallSeen(record=100 + n, tool=leaf.tool, status=Status.OK) for n, leaf in enumerate(leaves(requirement))
        ]
        assert find_unmet(requirement, [*calls, *extra]) is None
    only_ok = [call for call in calls if call.status is Status.OK]
    assert (find_unmet(requirement, only_ok) is None) is (left is None)
