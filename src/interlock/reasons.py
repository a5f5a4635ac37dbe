"""Why something did not go its way, as closed sets that programs match on; sentences are for people."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a call did not succeed, or (`answer_lost`) what is not known of one that did."""

    # what was asked for
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGUMENTS = "invalid_arguments"
    AMBIGUOUS = "ambiguous"
    NOT_OFFERED = "not_offered"
    WITHHELD = "withheld"
    CALL_ID_REUSED = "call_id_reused"
    NO_CALL_ID = "no_call_id"
    REPEATED_CALL = "repeated_call"
    # what was decided
    DENIED = "denied"
    HALTED = "halted"
    NEEDS_REVIEW = "needs_review"
    NOT_APPROVED = "not_approved"
    INVARIANT = "invariant"
    COOLDOWN = "cooldown"
    BUDGET_EXHAUSTED = "budget_exhausted"
    RATE_LIMITED = "rate_limited"
    PLAN_MOVED = "plan_moved"
    ROLLED_BACK = "rolled_back"
    NOT_AS_PLANNED = "not_as_planned"
    # what stood in the way
    BUSY = "busy"
    BLOCKED = "blocked"
    MOVED = "moved"
    IN_PROGRESS = "in_progress"
    OVERLOADED = "overloaded"
    CIRCUIT_OPEN = "circuit_open"
    UNREADABLE = "unreadable"
    STORE_UNAVAILABLE = "store_unavailable"
    LEASE_LOST = "lease_lost"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    # what the tool said or did
    TOOL_ERROR = "tool_error"
    TRANSIENT = "transient"
    UNAVAILABLE = "unavailable"
    NOTHING_LANDED = "nothing_landed"
    TIMEOUT = "timeout"
    IN_DOUBT = "in_doubt"
    ANSWER_LOST = "answer_lost"
    PERMANENT = "permanent"
    INVALID_INPUT = "invalid_input"
    INPUT_REQUIRED = "input_required"
    NOT_FOUND = "not_found"
    FORBIDDEN = "forbidden"
    CONFLICT = "conflict"
    TOO_LARGE = "too_large"
    BAD_RESULT = "bad_result"
    REPORTED_FAILURE = "reported_failure"


class FieldReason(StrEnum):
    """What is wrong with one argument."""

    MISSING = "missing"
    UNKNOWN = "unknown"
    INVALID = "invalid"


class RefusalKind(StrEnum):
    """Why a store refused a batch."""

    BUDGET = "budget"
    RATE = "rate"
    CONFLICT = "conflict"
    CLAIMED = "claimed"
    DONE = "done"
    IN_DOUBT = "in_doubt"
    REUSED = "reused"
    LEASED = "leased"
    LOST = "lost"
    SETTLED = "settled"
    UNDONE = "undone"
    ASKED = "asked"
    TICKET = "ticket"
    HALT = "halt"
    HALTED = "halted"
