"""The generated catalog: real exercises from tables in this folder, and the faults of the demonstration."""

from interlock_catalog.seed.build import build_clean_catalog
from interlock_catalog.seed.demonstration import build_demonstration

__all__ = ["build_clean_catalog", "build_demonstration"]
