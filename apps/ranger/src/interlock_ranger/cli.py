"""`interlock ranger`: the briefing, exports, rules and data of RANGER. What is heavy is imported when it is needed."""

from __future__ import annotations

import argparse
from typing import Any


def register(commands: Any, common: Any) -> None:
    """Add the command to `interlock`."""
    return
