"""Conversation is a closed kind: what is in the table and nothing else, with an answer that says nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from interlock import Runtime, tool
from interlock.answers import Agent, Answers, Intent, TurnOutcome, TurnResult, TurnStatus, all_of, run_turn
from interlock.answers.constrained import constrain
from interlock.answers.conversation import ChatPhrases, TalkKind, phrases, read_table, talk_words
from interlock.answers.small_talk import fixed_reply, says_nothing
from interlock.errors import ConfigError
from interlock.models import Proposal, Reply, Request
from interlock.policy import parse_policy
from interlock.testing import FirstChoice
from tests.growth import LINEAR, growth
from tests.test_turns import AGENT, NAMES, OPEN, opened, tools


class Order(BaseModel):
    well: bool


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("hi", "greeting"),
        ("Hello there!!", "greeting"),
        ("HEYYYY", "greeting"),
        ("goooood morning, everyone ☀️", "greeting"),
        ("Thanks a lot, team!", "thanks"),
        ("thaaanks sooo much 🙏🙏", "thanks"),
        ("hi! thanks for the help, bye", "greeting thanks farewell"),
        ("thank you very much for your quick response :)", "thanks"),
        ("ok, got it. Bye!", "reaction farewell"),
        ("What can you do?", "about"),
        ("who are you", "about"),
        ("can you help me please?", "about"),
        ("how's it going?", "wellbeing"),
        ("lol", "reaction"),
        ("¡Hola! ¿Qué tal?", "greeting"),
        ("Muchísimas gracias por tu ayuda, hasta luego", "thanks farewell"),
        ("¿Qué puedes hacer?", "about"),
        ("Guten Morgen, wie geht's?", "greeting wellbeing"),
        ("Vielen Dank für die schnelle Antwort, schönes Wochenende!", "thanks farewell"),
        ("Was kannst du alles?", "about"),
        ("Bonjour ! Qu'est-ce que tu peux faire ?", "greeting about"),
        ("Merci beaucoup, bonne journée", "thanks farewell"),
        ("Oi, tudo bem?", "greeting wellbeing"),
        ("Muito obrigada pela ajuda, tchau", "thanks farewell"),
        ("Buongiorno, chi sei?", "greeting about"),
        ("Grazie mille, arrivederci", "thanks farewell"),
        ("Hoi, dank je wel", "greeting thanks"),
        ("Здравствуйте, спасибо!", "greeting thanks"),
        ("你好", "greeting"),
    ],
)
def test_what_is_said_to_somebody_is_conversation(text: str, kinds: str) -> None:
    found = phrases().recognise(text)
    assert found is not None
    assert " ".join(found.kinds) == kinds


@pytest.mark.parametrize(
    "text",
    [
        "So it's safe then?", "lol is it closed", "is that safe?", "What can you tell me about Waldo Lake?", "ok?", "perfect?",
        "really?", "yes", "no", "go on", "do it", "and Bobby Lake?", "hello, how bad is it?", "thanks, and the other one?",
        "¿Está cerrado el sendero?", "Ist der Weg gesperrt?", "hola, ¿está abierto?", "Danke, und der andere?", "c'est ouvert ?",
        "thanks for the trail report", "hi 42", "hi, order #12", "see https://example.org", "thanks $5", "please", "team",
        "a lot", "for your help", "?", "!!!", "👍", "", "   ", "all clear?", "no problem there", "what is it", "how are they?",
        "Können Sie mir helfen, den Weg zu finden?", "хорошо, а дорога закрыта?", "open", "thank", "th4nks", "hi\x00", "are you open?",
        "hello " * 80, "who is Waldo?", "what do you know about fires?", "it is fine", "cancel", "stop", "wait, refund it",
    ],
)  # fmt: skip
def test_everything_else_is_a_question(text: str) -> None:
    assert phrases().recognise(text) is None


def test_the_table_is_well_formed() -> None:
    table = read_table()
    assert {"english", "spanish", "german", "french", "portuguese", "italian"} <= set(table)
    for language, given in table.items():
        assert set(given["phrases"]) == {kind.value for kind in TalkKind}, language
        assert {*TalkKind, "can"} - {TalkKind.ABOUT} == set(given["replies"]), language
        for text in given["replies"].values():
            assert not any(letter.isdigit() for letter in text)
    # No phrase is a single letter more than the table says: what begins a question alone is none.
    for word in (
        "is",
        "it",
        "the",
        "are",
        "what",
        "how",
        "yes",
        "no",
        "and",
        "ist",
        "est",
        "e",
        "es",
        "sono",
        "closed",
        "open",
    ):
        assert phrases().recognise(word) is None, word


@pytest.mark.parametrize("more", ["", "?", "42", "hi (there"])
def test_phrases_of_an_application_are_words(more: str) -> None:
    with pytest.raises(ConfigError, match="no phrase of conversation"):
        ChatPhrases([more])


def test_an_application_adds_phrases_of_its_own() -> None:
    agent = Agent(name="a", tools=(), chat=("dia duit", "slan"))
    assert agent.classifier().classify("Dia duit, slán!").chat
    assert not Agent(name="a", tools=()).classifier().classify("Dia duit, slán!").chat


def test_words_are_read_without_case_accents_and_ornaments() -> None:
    assert talk_words("  “Ça VA”… — très bien ! ") == ("ca", "va", "tres", "bien")
    assert talk_words("d’accord ❤️") == ("daccord",)
    assert talk_words("ﬁne　ok") == ("fine", "ok")
    assert talk_words("half a \ud83d") is None


@pytest.mark.parametrize("part", ["hi ", "a", "h", "hi? ", "thanks a lot ", "😀", "ah "])
def test_a_long_text_is_no_conversation_and_takes_no_time(part: str) -> None:
    assert growth(lambda size: phrases().recognise(part * (size // len(part))), 5000) < LINEAR
    assert phrases().recognise(part * 1000) is None


CLOSURE = Intent(name="closure_status", requires="classify_damage", keywords=("closed", "how many", "welcome centre"))
TRAILS = Agent(
    name="trails", tools=NAMES, intents=(*AGENT.intents, CLOSURE), semantic=False,
    purpose="You are the guide of four lakes: you answer for their paths. Be brief.",
)  # fmt: skip


def test_the_fixed_reply_is_made_of_the_agents_own_description() -> None:
    assert fixed_reply(TRAILS, "hello, what can you do?") == (
        "Hello. I am the guide of four lakes: I answer for their paths. I can be asked about damage, closure status."
    )
    assert fixed_reply(TRAILS, "thank you, bye") == "You are welcome. Goodbye."
    assert fixed_reply(TRAILS, "Danke schön!") == "Gern geschehen."
    assert fixed_reply(TRAILS, "¿Quién eres?").endswith("Se me puede preguntar sobre damage, closure status.")
    assert fixed_reply(Agent(name="bare", tools=()), "anything") == "I am bare."


@pytest.mark.parametrize(
    "draft",
    ["You are welcome!", "Hello! How can I help you today?", "Let me know if you need anything else.", "Gern geschehen!",
     "De nada, ¡hasta luego!", "I'm glad that was helpful. Have a nice day! 😊"],
)  # fmt: skip
def test_small_talk_that_says_nothing_may_leave(draft: str) -> None:
    assert says_nothing(TRAILS, tools(), draft)


@pytest.mark.parametrize(
    "draft",
    ["Hello! It is ready and it is free of course.", "See you tomorrow at one.", "You are welcome, it is well."],
)
def test_small_talk_that_says_something_does_not(draft: str) -> None:
    @tool(effect="read")
    async def look(order: str) -> Order:
        return Order(well=True)

    assert not says_nothing(Agent(name="shop", tools=("look",)), [look], draft)


@pytest.mark.parametrize("text", ["Hello! 🆆🅰🅻🅳🅾 🅸🆂 🅾🅿🅴🅽", "Hi 🔟", "thanks 🇴🇵🇪🇳"])
def test_letters_in_boxes_are_letters(text: str) -> None:
    assert phrases().recognise(text) is None
    assert not says_nothing(TRAILS, tools(), text)


@pytest.mark.parametrize(
    "draft",
    ["Waldo Lake is fine.", "You are welcome! It is closed.", "It is safe.", "You are welcome, 12 of them.", "Twelve trees.",
     "I have sent it.", "Done!", "I booked it for you.", "De nada, está cerrado.", "Es ist gesperrt.", "Welcome! The damage?",
     "Welcome centre!", "It's open on Sunday.", "Sure, I will refund you.", "你好，关闭了", "See example.org", "", "class 9",
     "I checked: all good.", "You are welcome. " * 100],
)  # fmt: skip
def test_small_talk_that_says_anything_does_not(draft: str) -> None:
    assert not says_nothing(TRAILS, tools(), draft)


def test_a_name_on_file_is_no_small_talk_and_no_greeting() -> None:
    @tool(effect="read", known_values={"client": {"c-1": "Good Evening", "c-2": "Morning Star"}})
    async def look_up(client: str) -> str:
        """Look a client up."""
        return client

    agent = Agent(name="clients", tools=("look_up",), intents=(Intent(name="who", requires="look_up"),), semantic=False)
    assert not says_nothing(agent, [look_up], "Good Evening!")
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[look_up])
    answers = Answers(runtime)
    assert answers.classify(agent, "good morning").chat
    found = answers.classify(agent, "Good Evening")
    assert (found.chat, found.by) == (False, "default")


class Says:
    """A model that says the same to everything."""

    name, instructable = "says", True

    def __init__(self, text: str, instructable: bool = True) -> None:
        self.text, self.calls, self.instructable = text, 0, instructable

    async def reply(self, request: Request) -> Reply:
        self.calls += 1
        return Reply(self.text)

    async def close(self) -> None:
        return


async def ask(question: str, model: Any, agent: Agent = TRAILS, **details: Any) -> TurnResult:
    runtime = opened()
    async with Answers(runtime).turn(question, agent=agent, **details) as turn:
        result = await run_turn(turn, model)
    await runtime.close()
    return result


async def test_conversation_is_answered_and_never_called_verified() -> None:
    result = await ask("thanks a lot!", Says("You are welcome."))
    assert (result.answer, result.outcome) == ("You are welcome.", TurnOutcome.SKIPPED_NO_REQUIREMENTS)
    assert (result.status, result.verified) == (TurnStatus.CONVERSATION, False)


@pytest.mark.parametrize(
    "draft", ["Welcome! 4,200 acres burned.", "You are welcome. Waldo Lake is closed.", "I have told the crew.", ""]
)
async def test_a_draft_that_says_anything_is_replaced_at_once(draft: str) -> None:
    model = Says(draft)
    result = await ask("thanks a lot!", model)
    assert (result.answer, result.status, model.calls) == ("You are welcome.", TurnStatus.CONVERSATION, 1)


async def test_a_model_that_can_only_choose_says_the_fixed_text_and_is_not_asked() -> None:
    inner = Says("Waldo Lake is lovely in spring.", instructable=False)
    result = await ask("hi, what can you do?", constrain(inner))
    assert (result.answer, inner.calls) == (fixed_reply(TRAILS, "hi, what can you do?"), 0)
    assert result.status is TurnStatus.CONVERSATION


@pytest.mark.parametrize(
    "question",
    ["So it's safe then?", "lol is it closed", "¿Está cerrado el sendero?", "What can you tell me about Waldo Lake?"],
)
async def test_a_question_in_the_tone_of_conversation_needs_its_tool(question: str) -> None:
    result = await ask(question, Says("Yes, all of it is perfectly safe."))
    assert (result.status, result.verified) == (TurnStatus.ESCALATED, False)
    assert "perfectly safe" not in result.answer


async def test_a_call_does_not_make_conversation_verified() -> None:
    runtime = opened()
    async with Answers(runtime).turn("hello", agent=TRAILS) as turn:
        await turn.propose([Proposal("list_trails", {})])
        result = await turn.finish("There is waldo-lake-3536.")
    assert isinstance(result, TurnResult)
    assert (result.status, result.verified) == (TurnStatus.CONVERSATION, False)
    assert "3536" not in result.answer
    await runtime.close()


async def test_where_nothing_is_required_only_what_rests_on_results_is_verified() -> None:
    """An agent without intents, and a caller who says that nothing is needed."""
    bare = msgspec.structs.replace(TRAILS, intents=())
    cases: list[tuple[Agent, dict[str, Any]]] = [(bare, {}), (TRAILS, {"requires": all_of()})]
    for agent, details in cases:
        result = await ask("Is it safe up there?", Says("Yes, perfectly safe."), agent, **details)
        assert (result.status, result.verified) == (TurnStatus.CONVERSATION, False)
        assert "safe" not in result.answer
        runtime = opened()
        async with Answers(runtime).turn("Which are there?", agent=agent, **details) as turn:
            await turn.call("list_trails", {})
            found = await turn.finish("There is waldo-lake-3536, for one.")
        assert isinstance(found, TurnResult)
        assert (found.status, found.verified) == (TurnStatus.VERIFIED, True)
        await runtime.close()


async def test_observing_lets_small_talk_out_as_it_came() -> None:
    agent = msgspec.structs.replace(TRAILS, enforcement="observe")
    result = await ask("thanks!", Says("4,200 acres burned."), agent)
    assert result.status is TurnStatus.UNVERIFIED
    assert "4,200 acres burned." in result.answer


async def test_the_embedded_kind_of_model_works_on_questions_as_before() -> None:
    result = await ask("What is the damage on Bobby Lake?", constrain(FirstChoice()))
    assert result.verified
    assert result.tools == ("classify_damage",)
