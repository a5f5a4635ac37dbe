"""Children of tests, forked from one process that has loaded what they need: to load it takes longer than to die."""

from __future__ import annotations

import multiprocessing

# There is one such process for all tests of a worker: what the first of them asks for is what it has loaded.
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.forked_server"])
