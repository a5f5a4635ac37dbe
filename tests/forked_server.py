"""What the process that children are forked from loads: the library too loads much of itself only when it is used."""

from __future__ import annotations

import threading

from interlock import Runtime
from interlock.policy import parse_policy
from tests.killing import POLICY, Cell, tools

# Declaring tools and compiling conditions load what they need; whoever forks may not have started a thread.
Runtime.open("memory://", policy=parse_policy(POLICY), tools=tools(Cell("write", True, "memory://", "", 0), None))
assert threading.active_count() == 1
