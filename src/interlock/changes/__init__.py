"""Changes: how an effect is named, planned, and known to have landed."""

from interlock.changes.images import Image, Sight, Unreadable, diff_of, look
from interlock.changes.landing import landed, landed_by_images
from interlock.changes.names import (
    ClaimName,
    claim_name,
    keys_of,
    local,
    moved,
    on_versions,
    plan_digest,
    undone,
    within_of,
)
from interlock.changes.plan import Expected, Planner

__all__ = [
    "ClaimName",
    "Expected",
    "Image",
    "Planner",
    "Sight",
    "Unreadable",
    "claim_name",
    "diff_of",
    "keys_of",
    "landed",
    "landed_by_images",
    "local",
    "look",
    "moved",
    "on_versions",
    "plan_digest",
    "undone",
    "within_of",
]
