"""Changes: how an effect is named, planned, and known to have landed."""

from interlock.changes.differences import diff_of, show_difference
from interlock.changes.effect_status import contradicts_nothing, has_landed, landed_by_snapshots, moved_keys
from interlock.changes.kept_states import KeptStates, base_of, expand_states
from interlock.changes.keys import (
    ClaimName,
    TakingBack,
    claim_name,
    compensation_name,
    keys_of,
    local_key,
    locks_of,
    on_versions,
    plan_difference,
    plan_digest,
    read_digest,
    request_digest,
    scope_of,
)
from interlock.changes.left import Left, left_by_call, written_beside
from interlock.changes.plan import Expected, Planner
from interlock.changes.snapshots import (
    Snapshot,
    SnapshotReader,
    Unreadable,
    given_version,
    is_same_version,
    planned_versions,
    read_snapshots,
)
from interlock.changes.whole import states_by_key, touched_keys

__all__ = [
    "ClaimName",
    "Expected",
    "KeptStates",
    "Left",
    "Planner",
    "Snapshot",
    "SnapshotReader",
    "TakingBack",
    "Unreadable",
    "base_of",
    "claim_name",
    "compensation_name",
    "contradicts_nothing",
    "diff_of",
    "expand_states",
    "given_version",
    "has_landed",
    "is_same_version",
    "keys_of",
    "landed_by_snapshots",
    "left_by_call",
    "local_key",
    "locks_of",
    "moved_keys",
    "on_versions",
    "plan_difference",
    "plan_digest",
    "planned_versions",
    "read_digest",
    "read_snapshots",
    "request_digest",
    "scope_of",
    "show_difference",
    "states_by_key",
    "touched_keys",
    "written_beside",
]
