"""The species that can be cruised, and which volume equation each takes on which side of the Cascades."""

from __future__ import annotations

from interlock_ranger.records import Region, Species

NAMES = {
    Species.PSME: "Douglas-fir",
    Species.TSHE: "western hemlock",
    Species.THPL: "western redcedar",
    Species.PIPO: "ponderosa pine",
    Species.PICO: "lodgepole pine",
    Species.ABGR: "grand fir",
    Species.ABCO: "white fir",
    Species.TSME: "mountain hemlock",
    Species.ABLA: "subalpine fir",
}
_WEST = {
    Species.PSME: 1,
    Species.TSHE: 6,
    Species.THPL: 9,
    Species.PIPO: 4,
    Species.PICO: 15,
    Species.ABGR: 11,
    Species.ABCO: 11,
    Species.TSME: 17,
    Species.ABLA: 11,
}
# Only these five have another equation east of the Cascades; pines and hemlocks have one for both sides.
_EAST = {
    **_WEST,
    Species.PSME: 2,
    Species.THPL: 8,
    Species.ABGR: 10,
    Species.ABCO: 10,
    Species.ABLA: 10,
}


def equation_number(species: Species, region: Region) -> int:
    """Of the PNW-FIA volume equation."""
    return (_EAST if region == Region.EAST else _WEST)[species]
