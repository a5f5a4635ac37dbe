"""Review: tickets, who may decide them, and what an approval is good for."""

from interlock.review.tickets import Terms, open_ticket, rejection_reason

__all__ = ["Terms", "open_ticket", "rejection_reason"]
