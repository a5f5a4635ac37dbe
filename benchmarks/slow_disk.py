"""Governed writes against bare commits where a flush takes as long as on a common disk: the delay is added to both."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import effects

HERE = Path(__file__).parent
ROUNDS = 3


def measure(flush_us: int) -> dict[str, float]:
    """Seconds for a governed write and for two bare commits, in a child whose flushes take so much longer."""
    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as folder:
        shim = f"{folder}/slow_disk.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", shim, str(HERE / "slow_disk.c"), "-ldl"], check=True)
        environment = os.environ | {"LD_PRELOAD": shim, "FLUSH_US": str(flush_us)}
        child = subprocess.run([sys.executable, __file__], env=environment, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(child.stdout)
    return found


def _compare() -> dict[str, float]:
    logging.getLogger("interlock").setLevel(logging.ERROR)
    pairs = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="interlock-bench-") as folder:
            pairs.append((asyncio.run(effects.sequential(folder))[0], effects.bare(folder)))
    ratio = median(ours / theirs for ours, theirs in pairs)
    return {"ours": median(a for a, _ in pairs), "bare": median(b for _, b in pairs), "ratio": ratio}


if __name__ == "__main__":
    print(json.dumps(_compare()))
