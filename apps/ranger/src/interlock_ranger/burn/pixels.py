"""The rasters of a fire: dNBR from NBR before and after, and which sector each pixel lies in."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np
import rasterio
import shapely
from numpy.typing import NDArray
from pyproj import Transformer
from rasterio.features import rasterize

from interlock.errors import NotFound, Permanent
from interlock_ranger.fires import Fire

RASTERS = ("nbr_pre.tif", "nbr_post.tif")
OUTSIDE = -1


class Pixels(msgspec.Struct, frozen=True, kw_only=True):
    dnbr: NDArray[np.float64]
    known: NDArray[np.bool_]
    """False under clouds and where there is no data."""
    sector: NDArray[np.int64]
    """The place of the pixel's sector in the fire's sectors, or `OUTSIDE`."""


def has_rasters(fire: Fire) -> bool:
    return all(name in fire.digests for name in RASTERS)


def read_pixels(fire: Fire) -> Pixels:
    """The pixels of a fire; the same files are read once."""
    missing = [name for name in RASTERS if name not in fire.digests]
    if missing:
        raise NotFound(f"{fire.facts.name} has no raster {' and '.join(missing)} on file")
    sectors = tuple(sector.geometry for sector in fire.sectors.values())
    return _read(fire.folder, tuple(fire.digests[name] for name in RASTERS), sectors)


# The digests are part of the key: a file that was replaced is read again.
@lru_cache(maxsize=8)
def _read(folder: Path, _digests: tuple[str, ...], sectors: tuple[shapely.Geometry, ...]) -> Pixels:
    with rasterio.open(folder / RASTERS[0]) as pre, rasterio.open(folder / RASTERS[1]) as post:
        # Nothing is resampled: a difference of pixels means something only where both are the same piece of ground.
        if pre.crs != post.crs or pre.transform != post.transform or pre.shape != post.shape:
            raise Permanent(f"{folder.name}: the rasters before and after the fire do not lie on one grid")
        before, after = pre.read(1, masked=True), post.read(1, masked=True)
        known = ~np.ma.getmaskarray(before) & ~np.ma.getmaskarray(after)
        # Whole numbers with a scale (thousandths in the shipped files), which rasterio reads but does not apply.
        dnbr = before.filled(0) * pre.scales[0] - after.filled(0) * post.scales[0]
        # EPSG:4326 has latitude first by definition, GeoJSON has longitude first: hence always_xy.
        project = Transformer.from_crs("EPSG:4326", pre.crs, always_xy=True).transform
        projected = [(shapely.transform(s, project, interleaved=False), n) for n, s in enumerate(sectors)]
        # By the centre of a pixel, as all_touched is off: otherwise sectors would grow by the pixels along their edges.
        sector = rasterize(projected, pre.shape, fill=OUTSIDE, transform=pre.transform, dtype="int32")
    # With one scene alone there is no difference: the value is 0 there, and `known` says that it means nothing.
    return Pixels(dnbr=np.where(known, dnbr, 0.0), known=known, sector=sector.astype(np.int64))
