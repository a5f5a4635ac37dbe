"""What tests of RANGER share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import date

from interlock import Outcome

TODAY = date(2026, 11, 15)
Call = Callable[..., Awaitable[Outcome]]
