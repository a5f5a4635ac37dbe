"""Review: tickets, who may decide them, and what an approval is good for."""

from interlock.review.terms import Terms, terms_of
from interlock.review.tickets import is_party, open_ticket, rejection_reason, voice_of

__all__ = ["Terms", "is_party", "open_ticket", "rejection_reason", "terms_of", "voice_of"]
