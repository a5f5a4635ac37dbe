"""A console that lets nothing through but printable text and what it writes itself: colours, the moves of a spinner."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from interlock.cli.terminal_text import show_controls


class HarmlessConsole(Console):
    """Also for what an application shows of its results, which it makes of texts that others wrote."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The parts of what is shown; those with a control code are rich's own."""
        for part in super().render(renderable, options):
            if part.control is None and not part.text.isprintable():
                yield Segment(show_controls(part.text, lines=True), part.style)
            else:
                yield part
