"""The templates of pages and pictures. Everything put into one is escaped: names and texts are somebody else's."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from interlock_ranger.view.figures import format_figure


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("interlock_ranger"),
        autoescape=True,
        undefined=StrictUndefined,  # a name that is misspelled fails in a test instead of leaving a gap in a page
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figure"] = format_figure
    return environment


def render(template: str, **values: Any) -> Markup:
    """A template with values; the result is safe to put into another."""
    return Markup(_environment().get_template(template).render(values))
