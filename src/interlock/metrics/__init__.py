"""Metrics and logs: computed from records, changing nothing."""
