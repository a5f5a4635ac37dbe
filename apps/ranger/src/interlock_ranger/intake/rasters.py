"""Rasters of NBR: values as the file scales them, checked to be NBR, with where they lie."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.errors import NotGeoreferencedWarning, RasterioError

from interlock.errors import InvalidInput

RASTERS = ("nbr_pre.tif", "nbr_post.tif")
_FILTERING = threading.Lock()
_ROUNDING = 1e-6
"""What scaling may add to a value of exactly 1."""


class NbrRaster(msgspec.Struct, frozen=True, kw_only=True):
    """One scene."""

    nbr: NDArray[np.float64]
    known: NDArray[np.bool_]
    """False under clouds and where there is no number."""
    crs: Any
    transform: Any
    label: str | None
    """What its tag SYNTHETIC says, if it has one."""

    def lies_on(self, other: NbrRaster) -> bool:
        """Whether both have the same pixels of ground."""
        same_place = self.crs == other.crs and self.transform == other.transform
        return bool(same_place and self.nbr.shape == other.nbr.shape)


@contextmanager
def without_warning_of_place() -> Iterator[None]:
    """While a sheet without a place is opened; one thread at a time, as all of them have the same filters."""
    with _FILTERING, warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        yield


def read_nbr(file: Path) -> NbrRaster:
    """A scene, refused if it does not say where it lies, or holds what cannot be NBR."""
    try:
        with without_warning_of_place(), rasterio.open(file) as raster:  # that is told below, in a sentence
            if raster.count != 1:
                raise InvalidInput(f"it has {raster.count} bands; NBR is one")
            if raster.crs is None or raster.transform.is_identity:
                raise InvalidInput("it does not say where it lies; save it with its projection and position")
            band, scale, offset = raster.read(1, masked=True), raster.scales[0], raster.offsets[0]
            crs, transform, label = raster.crs, raster.transform, raster.tags().get("SYNTHETIC")
    except RasterioError as error:
        raise InvalidInput(f"it is no raster that can be read ({error})") from None
    # rasterio reads the scale (thousandths in the shipped files) and the offset, but does not apply them.
    nbr = band.filled(0).astype(np.float64) * scale + offset
    known = ~np.ma.getmaskarray(band) & np.isfinite(nbr)
    _check_range(nbr[known], scale)
    return NbrRaster(nbr=np.where(known, nbr, 0.0), known=known, crs=crs, transform=transform, label=label)


def _check_range(nbr: NDArray[np.float64], scale: float) -> None:
    outside = nbr[np.abs(nbr) > 1 + _ROUNDING]
    if outside.size:
        raise InvalidInput(
            f"{outside.size:,} of {nbr.size:,} pixels are no NBR, which lies between -1 and 1: they run from"
            f" {outside.min():g} to {outside.max():g} with the scale of {scale:g} that it states; state the right scale"
            " in the file (0.001 for thousandths), or mask what was not measured"
        )
