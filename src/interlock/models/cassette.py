"""Model answers kept in a file and given again: the same questions get the same answers, without the model."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from interlock.errors import ConfigError
from interlock.models.messages import Model, ModelFailed, Reply, Request
from interlock.values import Value

_encode = msgspec.json.Encoder(order="deterministic").encode


class _Line(Value, frozen=True):
    """One answer, the digest of the question that it answers, and who gave it."""

    asked: str
    reply: Reply
    by: str
    instructable: bool


def digest_of(request: Request) -> str:
    """What a question is known by: everything that the model is shown."""
    shown = [(card.name, card.description, card.parameters) for card in request.tools]
    # Not the task and the known values: they are not shown in words, and functions among them have no digest.
    plain = (request.instructions, request.messages, shown, request.force, request.grammar)
    return hashlib.sha256(_encode((*plain, request.max_tokens, request.temperature))).hexdigest()


class RecordingModel:
    """A model whose every answer is also written to a file, a line each."""

    def __init__(self, inner: Model, file: Path) -> None:
        self.name = inner.name
        self.instructable = inner.instructable
        self._inner = inner
        self._file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    async def reply(self, request: Request) -> Reply:
        """The model's own reply, once it is written down."""
        reply = await self._inner.reply(request)
        line = _encode(_Line(digest_of(request), reply, self.name, self.instructable)) + b"\n"
        with self._file.open("ab") as out:
            out.write(line)
        return reply

    async def close(self) -> None:
        await self._inner.close()


class ReplayModel:
    """The answers of a file; a question that it does not hold is one that the model did not answer.

    It goes by the name of the model that gave them, for they are that one's answers.
    """

    def __init__(self, file: Path) -> None:
        try:
            *whole, _cut = file.read_bytes().split(b"\n")  # a last line without its end was cut off
            lines = [msgspec.json.decode(line, type=_Line) for line in whole if line]
        except FileNotFoundError:
            raise ConfigError(f"{file}: there are no recorded answers; record some with a model first") from None
        except msgspec.DecodeError as error:
            raise ConfigError(f"{file}: is no file of recorded answers: {error}") from None
        names = sorted({line.by for line in lines})
        # The name and whether it follows instructions are properties of one model; a turn cannot have both.
        if len(names) > 1:
            raise ConfigError(
                f"{file}: holds answers of several models ({', '.join(names)}); record each in its own file"
            )
        self.name = names[0] if names else f"replay:{file.name}"
        self.instructable = all(line.instructable for line in lines)
        self._file = file
        self._held: dict[str, list[Reply]] = {}
        for line in lines:
            self._held.setdefault(line.asked, []).append(line.reply)

    async def reply(self, request: Request) -> Reply:
        """The recorded reply; asked the same thing several times, the replies in their order, then the last one."""
        held = self._held.get(digest_of(request))
        if not held:
            raise ModelFailed(f"{self._file.name} holds no answer to this question; record it again")
        return held.pop(0) if len(held) > 1 else held[0]

    async def close(self) -> None:
        """Nothing is held."""
