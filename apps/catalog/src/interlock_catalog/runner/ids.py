"""Names of runs: they sort by time, so that queues keep their order even where clocks tell whole seconds."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime


def new_run(by: str) -> str:
    """A name for a run that begins now."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{by}-{secrets.token_hex(2)}"
