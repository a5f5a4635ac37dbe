"""What a server writes to its standard error: for the log, and the end of it for whoever asks why it did not start."""

from __future__ import annotations

import logging
import os
import threading
from types import TracebackType

_log = logging.getLogger("interlock.mcp")
_KEPT = 2_000
_CHUNK = 4_096


class ErrorOutput:
    """Read as it comes, so that a server which writes a great deal neither stops nor fills a disk."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._kept = b""
        reading, writing = os.pipe()
        self.file = os.fdopen(writing, "w")
        """What the server writes into."""
        self._thread = threading.Thread(target=self._read, args=(reading,), daemon=True, name=f"mcp-{server}-stderr")

    def __enter__(self) -> ErrorOutput:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.file.close()

    def tail(self) -> str:
        """The last that it wrote, on one line."""
        return " ".join(self._kept.decode(errors="replace").split())

    def _read(self, reading: int) -> None:
        with os.fdopen(reading, "rb", buffering=0) as stream:
            while chunk := stream.read(_CHUNK):
                self._kept = (self._kept + chunk)[-_KEPT:]
                _log.debug("%s: %s", self._server, chunk.decode(errors="replace").rstrip())
