"""A judge holds back what the rules let out, and never the other way round; streamed text is checked text."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.answers import Agent, Answers, TurnOutcome, TurnStatus, run_turn
from interlock.answers.events import Judged, event_of
from interlock.answers.sentences import split_sentences
from interlock.errors import ConfigError
from interlock.models import Model, ModelFailed, Proposal, Reply, Request, Usage
from interlock.testing import FirstChoice, make_scripted
from tests.test_turns import AGENT, ANSWER, QUESTION, SCRIPT, as_kwargs, opened, own_records

COST = Usage(10, 1, 5)


class Judge:
    """Says what it was told to say of each sentence, and keeps what it was asked."""

    name, instructable = "judge", True

    def __init__(self, **says: str) -> None:
        self.says = says
        self.asked: list[str] = []

    async def reply(self, request: Request) -> Reply:
        text = request.messages[-1].text
        self.asked.append(text)
        sentence = text.partition("SENTENCE\n")[2]
        said = next((answer for word, answer in self.says.items() if word in sentence), "yes")
        if said == "fails":
            raise ModelFailed("no connection")
        if said == "raises":
            raise RuntimeError("boom")
        return Reply(said, usage=COST)

    async def close(self) -> None:
        return


class Drafts:
    """Calls the tool, then writes one draft after the other."""

    name, instructable = "drafts", True

    def __init__(self, *drafts: str) -> None:
        self._drafts = list(drafts)
        self.told: list[str] = []

    async def reply(self, request: Request) -> Reply:
        if not any(message.role == "tool" for message in request.messages):
            return Reply(proposals=(Proposal("classify_damage", {"trail_id": "Waldo Lake"}),))
        self.told.append(request.messages[-1].text)
        return Reply(self._drafts.pop(0) if len(self._drafts) > 1 else self._drafts[0])

    async def close(self) -> None:
        return


async def answer(judge: Any, model: Model, question: str = QUESTION, agent: Agent = AGENT, **more: Any) -> Any:
    runtime = opened()
    async with Answers(runtime, judge=judge).turn(question, agent=agent) as turn:
        result = await run_turn(turn, model, **more)
    events = [event for record in await own_records(runtime, turn.id) if isinstance(event := event_of(record), Judged)]
    await runtime.close()
    return result, events


async def test_what_the_judge_finds_in_the_results_leaves_and_its_cost_is_recorded() -> None:
    judge = Judge()
    result, events = await answer(judge, Drafts("Waldo Lake is class 3. It has 41.5 downed trees per mile."))
    assert result.status is TurnStatus.VERIFIED
    assert len(judge.asked) == 2
    assert "record 2 of classify_damage: $.value.downed_trees_per_mile = 41.5" in judge.asked[1]
    assert events == [Judged(by="judge", sentences=2, disputed=0, usage=Usage(20, 2, 10))]
    assert result.usage == Usage(20, 2, 10)
    assert result.model_calls == 2


@pytest.mark.parametrize("said", ["no", "No.", "perhaps", "", "yes, but", "YES and no", "fails", "raises"])
async def test_whatever_is_no_plain_yes_holds_the_answer(said: str) -> None:
    wrong = "Waldo Lake is class 3. Beavers count 41.5 downed trees per mile."
    model = Drafts(wrong)
    result, events = await answer(Judge(Beavers=said), model)
    assert result.status is TurnStatus.RENDERED
    assert "Beavers" not in result.answer
    assert "the judge does not find in the results: Beavers" in result.reason
    assert [event.disputed for event in events] == [1, 1]
    assert "A second reading finds that the results do not say 'Beavers" in model.told[1]


async def test_a_corrected_draft_is_judged_again() -> None:
    result, events = await answer(Judge(Beavers="no"), Drafts("Beavers make it class 3.", ANSWER))
    assert (result.status, result.outcome) == (TurnStatus.VERIFIED, TurnOutcome.RETRY_SUCCEEDED)
    assert [event.disputed for event in events] == [1, 0]


async def test_what_the_rules_have_held_is_not_judged() -> None:
    judge = Judge()
    result, events = await answer(judge, make_scripted("hallucinates", SCRIPT))
    assert (result.status, judge.asked, events) == (TurnStatus.RENDERED, [], [])
    result, events = await answer(judge, make_scripted("never calls", SCRIPT))
    assert (result.status, judge.asked, events) == (TurnStatus.ESCALATED, [], [])


async def test_small_talk_is_not_judged() -> None:
    judge = Judge()
    result, events = await answer(judge, make_scripted("claims success", SCRIPT), "hello")
    assert (result.verified, judge.asked, events) == (False, [], [])


async def test_a_judge_is_off_unless_it_is_named() -> None:
    result, events = await answer("", Drafts(ANSWER))
    assert (result.status, events) == (TurnStatus.VERIFIED, [])


async def test_an_answer_of_very_many_sentences_is_not_judged_and_does_not_leave() -> None:
    judge = Judge()
    result, _events = await answer(judge, Drafts("It is class 3. " * 41))
    assert (result.status, judge.asked) == (TurnStatus.RENDERED, [])


JUDGE = Judge(Beavers="no")


async def test_an_agent_names_its_judge() -> None:
    agent = Agent(**{**as_kwargs(AGENT), "judge": "python:tests.test_judge:JUDGE"})
    result, events = await answer("", Drafts("Beavers make it class 3."), agent=agent)
    assert (result.status, len(events)) == (TurnStatus.RENDERED, 2)


async def test_a_model_that_can_only_choose_cannot_judge() -> None:
    runtime = opened()
    for judge in ("local", FirstChoice()):
        with pytest.raises(ConfigError, match="cannot judge"):
            Answers(runtime, judge=judge)
    with pytest.raises(ConfigError, match="nonsense"):
        Answers(runtime, judge="nonsense")
    await runtime.close()


@pytest.mark.parametrize(
    "text",
    [
        "It has 41.5 trees. It is e.g. closed! Is it? Yes.",
        "one\ntwo\n\nthree",
        "[record 3]\nplace: Waldo Lake\n\nNote: as of 14:05 UTC.",
        "",
        "\n\n",
        "no end",
        "  leading. white ",
        "." * 100 + " a",
    ],
)
def test_sentences_together_are_the_text(text: str) -> None:
    pieces = split_sentences(text)
    assert "".join(pieces) == text
    assert "It has 41.5 trees. " in pieces or not text.startswith("It has")


async def test_of_a_draft_that_is_replaced_nothing_is_shown() -> None:
    """The second sentence of the first draft is invented: the first one, which was right, is not shown either."""
    shown: list[str] = []
    first, right = (
        "Waldo Lake is class 3. It has 99.9 downed trees per mile.",
        "It is class 3. It has 41.5 trees per mile.",
    )
    result, _events = await answer("", Drafts(first, right), on_text=shown.append)
    assert (result.status, shown) == (TurnStatus.VERIFIED, ["It is class 3. ", "It has 41.5 trees per mile."])
    shown.clear()
    result, _events = await answer("", Drafts(first), on_text=shown.append)
    assert (result.status, "".join(shown)) == (TurnStatus.RENDERED, result.answer)
    assert not any("99.9" in text or "Waldo Lake is class 3" in text for text in shown)
