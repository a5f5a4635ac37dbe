"""`python -m interlock`, and the program `interlock`."""

from __future__ import annotations

import os
import sys

from interlock.cli.main import main
from interlock.cli.parser import INTERRUPTED


def start() -> None:
    """Run the command line of this process and end the process."""
    code = main()
    if code == INTERRUPTED:
        # At its end Python waits for every thread, also for one that only reads or asks a model, and by now nobody
        # wants its answer. What changes the world was waited for before this.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    start()
