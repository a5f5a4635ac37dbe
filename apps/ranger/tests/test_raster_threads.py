"""Rasters are read by tools that run in threads."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

from rasterio.errors import NotGeoreferencedWarning

from interlock_ranger.intake.rasters import without_warning_of_place


def test_rasters_may_be_drawn_in_several_threads_at_once() -> None:
    """Filters of warnings are those of all threads: one that put them back took them away from another."""

    def draw(_number: int) -> None:
        for _ in range(200):
            with without_warning_of_place():
                warnings.warn("it has no place", NotGeoreferencedWarning, stacklevel=1)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(draw, range(8)))
