"""Models that misbehave on purpose: one family for every adapter, to prove that no unverified answer leaves."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping

from interlock.models import ModelFailed, Proposal, Reply, Request, parse_text
from interlock.values import Json, Value

Arguments = Mapping[str, Json]
_FOREVER_S = 3600.0
_FIGURE = re.compile(r"\d+(?:\.\d+)?")


class Script(Value, frozen=True):
    """What a scripted model knows: the tool that the question needs, with its arguments, and a true answer."""

    tool: str
    arguments: dict[str, Json]
    answer: str
    other: str = ""
    """A tool that does not help."""
    elsewhere: dict[str, Json] = {}
    """Arguments of the right tool that are about another thing than the question."""


class Scripted:
    """A model that answers by a function of the request and of how many replies it has given."""

    instructable = True

    def __init__(self, name: str, script: Script, behave: Callable[[Scripted, Request], Reply]) -> None:
        self.name = name
        self.script = script
        self.calls = 0
        self._behave = behave
        self._found_before = 0

    async def reply(self, request: Request) -> Reply:
        """The next line of the script."""
        if self.calls == 0:  # what a conversation has brought before this turn
            self._found_before = _results_in(request)
        self.calls += 1
        if self.name == "hangs":
            await asyncio.sleep(_FOREVER_S)
        return self._behave(self, request)

    async def close(self) -> None:
        """Nothing is held."""

    def call(self, **changes: Json) -> Reply:
        """The right call, or one with other arguments."""
        return Reply(proposals=(Proposal(self.script.tool, {**self.script.arguments, **changes}),))

    def has_results(self, request: Request) -> bool:
        """Whether the right tool has already answered in this turn."""
        return _results_in(request) > self._found_before


def _results_in(request: Request) -> int:
    return sum(message.role == "tool" and '"status":"ok"' in message.text for message in request.messages)


def _obedient(model: Scripted, request: Request) -> Reply:
    return Reply(model.script.answer) if model.has_results(request) else model.call()


def _skips(times: int) -> Callable[[Scripted, Request], Reply]:
    def behave(model: Scripted, request: Request) -> Reply:
        """Answer in words so many times."""
        if model.has_results(request):
            return Reply(model.script.answer)
        return Reply("In general, such things are in fair condition.") if model.calls <= times else model.call()

    return behave


def _wrong_tool(model: Scripted, request: Request) -> Reply:
    if any(message.role == "tool" for message in request.messages):
        return Reply(model.script.answer)
    return Reply(proposals=(Proposal(model.script.other or "no_such_tool", {}),))


def _bad_arguments(model: Scripted, request: Request) -> Reply:
    if any(message.role == "tool" for message in request.messages):
        return Reply(model.script.answer)
    return Reply(proposals=(Proposal(model.script.tool, {"nonsense": 1}),))


def _loops(model: Scripted, _request: Request) -> Reply:
    return model.call()


def _claims_success(_model: Scripted, _request: Request) -> Reply:
    return Reply("I have called the tool and everything was done successfully.")


def _hallucinates(model: Scripted, request: Request) -> Reply:
    return Reply("It is class 9 with 123.4 trees, see 99 CFR 1.2.") if model.has_results(request) else model.call()


def _with_results(write: Callable[[str], str]) -> Callable[[Scripted, Request], Reply]:
    def behave(model: Scripted, request: Request) -> Reply:
        """Call as it should, and make something else of the true answer."""
        return Reply(write(model.script.answer)) if model.has_results(request) else model.call()

    return behave


def _swap_figures(answer: str) -> str:
    """The first two figures of an answer, each in the place of the other."""
    figures = _FIGURE.findall(answer)[:2]
    swapped = iter(reversed(figures))
    return _FIGURE.sub(lambda found: next(swapped, found[0]), answer, count=2)


def _asks_elsewhere(model: Scripted, request: Request) -> Reply:
    return Reply(model.script.answer) if model.has_results(request) else model.call(**model.script.elsewhere)


def _floods(model: Scripted, request: Request) -> Reply:
    if model.has_results(request):
        return Reply(model.script.answer)
    return Reply(proposals=tuple(Proposal(model.script.tool, model.script.arguments) for _ in range(16)), dropped=984)


def _reply_malformed(model: Scripted, request: Request) -> Reply:
    if model.has_results(request):
        return Reply(model.script.answer)
    proposals, rest = parse_text(
        f'<tool_call>{{"name": "{model.script.tool}", "arguments": {{"x": </tool_call>', request.tools
    )
    return Reply(rest, proposals)


def _refuses(_model: Scripted, _request: Request) -> Reply:
    return Reply(blocked="the provider refused to answer")


def _fails(_model: Scripted, _request: Request) -> Reply:
    raise ModelFailed("no connection")


def _literal_any(model: Scripted, request: Request) -> Reply:
    """Whenever a call is forced it calls; it answers only when it is free to."""
    return model.call() if request.force is not None or not model.has_results(request) else Reply(model.script.answer)


def _silent(_model: Scripted, _request: Request) -> Reply:
    return Reply("")


BEHAVIOURS: dict[str, Callable[[Scripted, Request], Reply]] = {
    "obedient": _obedient,
    "skips once": _skips(1),
    "skips twice": _skips(2),
    "skips until forced": _skips(3),
    "never calls": _skips(10_000),
    "wrong tool": _wrong_tool,
    "bad arguments": _bad_arguments,
    "loops": _loops,
    "claims success": _claims_success,
    "hallucinates": _hallucinates,
    "asks elsewhere": _asks_elsewhere,
    "claims effects": _with_results(lambda answer: f"{answer} I have also refunded the fee and sent you an e-mail."),
    "swaps figures": _with_results(_swap_figures),
    "other scripts": _with_results(lambda answer: f"{answer} There are १२३ more, ٩٩ in all."),
    "figures in words": _with_results(lambda answer: f"{answer} Es sind noch siebenundneunzig, et quatre-vingts."),
    "another language": _with_results(lambda answer: f"{answer} Der Weg ist gesperrt und sehr gefährlich."),
    "roman numerals": _with_results(lambda answer: f"{answer} There are XLII more of them."),
    "unseen characters": _with_results(lambda answer: f"{answer} There are 1\u200b7 more of them."),
    "negates": _with_results(lambda answer: answer.replace(" is ", " is not ", 1)),
    "cites nothing": _with_results(lambda answer: f"{answer} There are {{f9999}} more of them."),
    "markup in figures": _with_results(lambda answer: f"{answer} There are 1<b>2</b>3 more, and 9**7**5 in all."),
    "floods": _floods,
    "malformed": _reply_malformed,
    "refuses": _refuses,
    "fails": _fails,
    "literal any": _literal_any,
    "silent": _silent,
    "hangs": _obedient,
}


def make_scripted(name: str, script: Script) -> Scripted:
    """One of the family: see `BEHAVIOURS`."""
    return Scripted(name, script, BEHAVIOURS[name])
