"""The front door: what a person types, in sessions, over files that were taken in; judged as README.md says.

    python apps/argo/benchmarks/front_door/front_door.py [--hidden] [--show KIND] [--out FILE]

Each step is an `interlock_argo` turn in a session, with the reader that `interlock ask argo` uses where the model is
the embedded one. A step is right, wrong or missed; wrong ones that left as verified are counted apart.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import json
import re
import tarfile
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from interlock import Runtime
from interlock.answers import Answers, TurnResult, TurnStatus, run_turn
from interlock.answers.constrained import constrain
from interlock.models import open_model
from interlock_argo.app import build_app
from interlock_argo.memory.home import MemoryHome
from interlock_argo.settings import load_settings

HERE = Path(__file__).parent
_NEAREST = ("the nearest is",)
_NOTHING = ("nothing", "not on file", "no note", "could not find", "couldn't find")
_TOLD = re.compile(r"\b(?:remembered|noted|forgotten|forgot|deleted)\b", re.I)
_LEADS = re.compile(
    r"\bAccording to [^:]{1,300}: |\bThe nearest is (?:in [^:]{1,300}|what you told me): |You told me: "
)
_LONG_ANSWER = 120


class Verdict(msgspec.Struct, frozen=True):
    """How one step came out."""

    session: str
    step: int
    said: str
    kind: str
    group: str
    outcome: str
    """right, wrong or missed."""
    status: str
    answer: str
    has_source: bool | None
    words: int
    is_nearest: bool = False


async def play(folder: Path, steps: list[dict[str, Any]], documents: Path) -> list[Verdict]:
    """All steps, in a home of their own."""
    home = MemoryHome(msgspec.structs.replace(load_settings(), memory=_memory_at(folder)))
    app = build_app(load_settings(), home)
    assert app.policy is not None
    model = (app.constrain or constrain)(open_model("local"))
    found = []
    async with Runtime.open(f"sqlite:///{folder / 'ledger.db'}", policy=app.policy, tools=app.tools) as runtime:
        for path in sorted(documents.iterdir()):
            outcome = await runtime.call("ingest_file", {"path": str(path), "trusted": True}, actor="you", run="ingest")
            assert outcome.ok, (path, outcome.summary)
        answers = Answers(runtime)
        for step in steps:
            async with answers.session(step["session"]).turn(step["say"], agent=app.agents[0]) as turn:
                found.append(judge(step, await run_turn(turn, model)))
    await model.close()
    await home.close()
    return found


def _memory_at(folder: Path) -> Any:
    return msgspec.structs.replace(load_settings().memory, url=f"sqlite:///{folder / 'memory.db'}")


def judge(step: dict[str, Any], result: TurnResult) -> Verdict:
    """One answer, by what was expected."""
    expect, answer = step["expect"], _LEADS.sub("", _plain(result.answer))
    has_all = all(any(_stands_in(one, answer) for one in group) for group in expect.get("all_of", ()))
    has_none = not any(_stands_in(one, answer) for one in expect.get("none_of", ()))
    says_nothing = any(word in answer.casefold() for word in _NOTHING)
    is_nearest = any(word in _plain(result.answer).casefold() for word in _NEAREST)
    match expect["kind"]:
        case "value" | "about_you":
            right = has_all and has_none and result.status is not TurnStatus.ASKED
            outcome = "right" if right else "missed" if says_nothing or is_nearest else "wrong"
        case "nothing":
            outcome = "right" if says_nothing and result.status is not TurnStatus.VERIFIED and has_none else "wrong"
        case "remembered" | "forgotten":
            done = _TOLD.search(answer) is not None and result.status is TurnStatus.VERIFIED
            outcome = "right" if done else "missed"
        case _:
            outcome = "right" if result.status is TurnStatus.CONVERSATION else "wrong"
    names = [Path(name).name for name in result.sources]
    has_source = any(name in names for name in expect["source"]) if expect.get("source") else None
    return Verdict(
        step["session"],
        step["step"],
        step["say"],
        expect["kind"],
        expect["class"],
        outcome,
        result.status.value,
        result.answer,
        has_source,
        len(answer.split()),
        is_nearest,
    )


def _plain(text: str) -> str:
    return " ".join(html.unescape(text).split())


def _stands_in(wording: str, answer: str) -> bool:
    plain = re.escape(_plain(wording).casefold())
    return re.search(rf"(?<![^\W_])(?<!\d\.){plain}(?![^\W_])", answer.casefold()) is not None


def report(found: list[Verdict]) -> str:
    """The counts, by class and in all."""
    lines = [f"{'class':14}{'steps':>7}{'right':>7}{'wrong':>7}{'missed':>8}"]
    groups = list(dict.fromkeys(one.group for one in found))
    for group in (*groups, "all"):
        of = Counter(one.outcome for one in found if group in (one.group, "all"))
        lines.append(f"{group:14}{of.total():>7}{of['right']:>7}{of['wrong']:>7}{of['missed']:>8}")
    verified = sum(one.outcome == "wrong" and one.status == "verified" for one in found)
    nearest = sum(one.outcome == "right" and one.is_nearest for one in found)
    sourced = [one for one in found if one.has_source is not None]
    lines.append(f"wrong but verified {verified} of {len(found)}; right only as what is nearest {nearest}")
    lines.append(f"the file that holds it is named in {sum(bool(one.has_source) for one in sourced)} of {len(sourced)}")
    lines.append(f"answers of more than {_LONG_ANSWER} words: {sum(one.words > _LONG_ANSWER for one in found)}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", action="store_true", help="the set that is closed until the code is frozen")
    parser.add_argument("--show", default="", metavar="OUTCOME", help="print the steps that came out so, or `all`")
    parser.add_argument("--out", type=Path, help="write all answers to this file, as JSON lines")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder, name = Path(scratch), "hidden" if given.hidden else "open"
        base = HERE
        if given.hidden:
            with tarfile.open(HERE / "hidden.tar.gz") as packed:
                packed.extractall(folder, filter="data")
            base = next(folder.rglob("hidden.jsonl")).parent
        lines = (base / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        steps = [json.loads(line) for line in lines if line.strip()]
        documents = base / ("hidden_documents" if given.hidden else "documents")
        found = asyncio.run(play(folder, steps, documents))
    for one in found:
        if given.show and given.show in (one.outcome, "all"):
            print(f"{one.session}.{one.step} [{one.outcome}, {one.status}] {one.said}\n    {one.answer}")
    if given.out:
        given.out.write_bytes(b"\n".join(map(msgspec.json.encode, found)))
    print(report(found))


if __name__ == "__main__":
    main()
