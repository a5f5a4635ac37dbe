"""Rasters are read by tools that run in threads."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from rasterio.errors import NotGeoreferencedWarning

from interlock_ranger.intake.rasters import without_warning_of_place

_UNSEEN_S = 0.5
"""How long is waited for what must not happen."""


def test_a_thread_that_is_done_leaves_the_filters_of_another_alone() -> None:
    """Filters of warnings are those of all threads: one that put its own back took them away from the other."""
    inside, left = threading.Event(), threading.Event()

    def draw() -> None:
        with without_warning_of_place():
            inside.set()
            left.wait()
            warnings.warn("it has no place", NotGeoreferencedWarning, stacklevel=1)

    with ThreadPoolExecutor(1) as thread:
        try:
            with without_warning_of_place():
                drawn = thread.submit(draw)
                assert not inside.wait(_UNSEEN_S), "the other waits until this one is done"
        finally:
            left.set()
        assert drawn.result() is None
    with pytest.raises(NotGeoreferencedWarning):  # as warnings are errors here, and the filters were put back
        warnings.warn("it has no place", NotGeoreferencedWarning, stacklevel=1)
