"""The generated catalog: real exercises from tables in this folder, and faults that are planted in them on purpose."""

from interlock_catalog.seed.build import clean_catalog
from interlock_catalog.seed.plant import Planted, plant

__all__ = ["Planted", "clean_catalog", "plant"]
