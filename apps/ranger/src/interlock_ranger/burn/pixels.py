"""The rasters of a fire: dNBR from NBR before and after, and which sector each pixel lies in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import Transformer
from rasterio.features import rasterize

from interlock.errors import InvalidInput, NotFound, Permanent
from interlock_ranger.intake.rasters import RASTERS, NbrRaster, read_nbr, without_warning_of_place
from interlock_ranger.records import Fire

OUTSIDE = -1


class Pixels(msgspec.Struct, frozen=True, kw_only=True):
    dnbr: NDArray[np.float64]
    known: NDArray[np.bool_]
    """False under clouds and where there is no data."""
    sector: NDArray[np.int64]
    """The place of the pixel's sector in the fire's sectors, or `OUTSIDE`."""
    wanted: NDArray[np.int64]
    """How many pixels each sector would have if the rasters covered all of it."""


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
    try:
        before, after = (read_nbr(folder / name) for name in RASTERS)
    except InvalidInput as error:
        raise Permanent(f"{folder.name}: a raster cannot be read: {error}") from None
    # Nothing is resampled: a difference of pixels means something only where both are the same piece of ground.
    if not before.lies_on(after):
        raise Permanent(f"{folder.name}: the rasters before and after the fire do not lie on one grid")
    known = before.known & after.known
    # EPSG:4326 has latitude first by definition, GeoJSON has longitude first: hence always_xy.
    project = Transformer.from_crs("EPSG:4326", before.crs, always_xy=True).transform
    projected = [shapely.transform(sector, project, interleaved=False) for sector in sectors]
    # By the centre of a pixel, as all_touched is off: otherwise sectors would grow by the pixels along their edges.
    places = [(shape, n) for n, shape in enumerate(projected)]
    with without_warning_of_place():  # the sheet that is drawn on in memory gets its place from `transform`
        drawn = rasterize(places, known.shape, fill=OUTSIDE, transform=before.transform, dtype="int32")
    sector = drawn.astype(np.int64)
    return Pixels(
        # With one scene alone there is no difference: the value is 0 there, and `known` says that it means nothing.
        dnbr=np.where(known, before.nbr - after.nbr, 0.0),
        known=known,
        sector=sector,
        wanted=_count_wanted(projected, sector, before),
    )


def _count_wanted(
    sectors: Sequence[shapely.Geometry], sector: NDArray[np.int64], raster: NbrRaster
) -> NDArray[np.int64]:
    """How many pixels each sector has, counting those of ground that the raster does not reach."""
    rows, columns = raster.nbr.shape
    corners = [raster.transform @ corner for corner in ((0, 0), (columns, 0), (columns, rows), (0, rows))]
    reached = shapely.Polygon(corners)
    pixel = abs(raster.transform.determinant)
    inside = np.bincount(sector[sector != OUTSIDE], minlength=len(sectors))
    return np.array(
        [
            count if reached.contains(shape) else max(count, round(shape.area / pixel))
            for shape, count in zip(sectors, inside, strict=True)
        ]
    )
