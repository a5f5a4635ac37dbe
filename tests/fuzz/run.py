"""`make fuzz`: every target for its share of FUZZ_SECONDS, each in a process with a bound on its memory."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time

from tests.fuzz import contracts, drafts, ledgers, policies, results
from tests.fuzz.target import LONGEST_S, Target, attack

TARGETS = (contracts.TARGET, policies.TARGET, results.TARGET, drafts.TARGET, ledgers.LEDGERS, ledgers.EXPORTS)
_MOST_BYTES = 6 * 2**30
"""Of addresses, of which the libraries alone take more than one: what grows without bound runs into it."""
_ROUND = 100


def fuzz(name: str, seconds: float) -> None:
    """One target until its time is up."""
    (target,) = (item for item in TARGETS if item.name == name)
    # What hangs inside of C hears no alarm: then the process ends, and says where it was.
    faulthandler.dump_traceback_later(seconds + 6 * LONGEST_S, exit=True)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    end, rounds = time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        while time.monotonic() < end:
            number = random.randrange(2**32)
            try:
                attack(target, _ROUND, number)
            except BaseException:
                print(f"{name}: a fault; attack(TARGET, {_ROUND}, {number}) shows it again", flush=True)
                raise
            rounds += 1
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{name}: {rounds * _ROUND} inputs in {seconds:.0f} s, at most {most} MB, no fault", flush=True)


def run(targets: tuple[Target, ...], seconds: float) -> int:
    """One after the other; how many had a fault."""
    spawn, faults = multiprocessing.get_context("spawn"), 0
    for target in targets:
        child = spawn.Process(target=fuzz, args=(target.name, seconds / len(targets)))
        child.start()
        child.join()
        faults += child.exitcode != 0
    return faults


if __name__ == "__main__":
    sys.exit(min(1, run(TARGETS, float(os.environ.get("FUZZ_SECONDS", "120")))))
