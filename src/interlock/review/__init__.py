"""Review: tickets, who may decide them, and what an approval is good for."""

from interlock.openings import ticket_digest
from interlock.review.evidence import (
    VOUCHES,
    approval_fault,
    chained_record,
    decision_of,
    decisions_fault,
    opening_fault,
    vouched_records,
)
from interlock.review.terms import Terms, key_faults, terms_of
from interlock.review.tickets import (
    denial_message,
    is_party,
    open_ticket,
    parties_of,
    rejection_reason,
    stamp,
    voice_of,
    waiting_message,
)

__all__ = [
    "VOUCHES",
    "Terms",
    "approval_fault",
    "chained_record",
    "decision_of",
    "decisions_fault",
    "denial_message",
    "is_party",
    "key_faults",
    "open_ticket",
    "opening_fault",
    "parties_of",
    "rejection_reason",
    "stamp",
    "terms_of",
    "ticket_digest",
    "voice_of",
    "vouched_records",
    "waiting_message",
]
