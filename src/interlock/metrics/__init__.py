"""Metrics and logs: computed from records, changing nothing."""

from interlock.metrics.events import log_record, span_observer
from interlock.metrics.fold import Line, Metrics, fold
from interlock.metrics.prometheus import exposition

__all__ = ["Line", "Metrics", "exposition", "fold", "log_record", "span_observer"]
