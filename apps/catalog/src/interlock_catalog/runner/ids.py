"""Ids of runs: they sort by time, so that queues keep their order even where clocks tell whole seconds."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime


def new_run_id() -> str:
    """An id for a run that begins now."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%d-%H%M%S}-{now.microsecond // 1000:03}-{secrets.token_hex(2)}"
