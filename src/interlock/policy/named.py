"""The names that a policy has rules about, and those that only look like one of them.

Rules and grants compare names letter by letter. A rule about `intern` says nothing about `Intern`, which is not
what whoever wrote it meant: such a name is refused where a call comes in.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from interlock.errors import ConfigError
from interlock.policy.model import Policy
from interlock.principals import check_actor, normal_name

_WHO = re.compile(r"\b(?:actor|principal|on_behalf_of)\b")
# A comment, or a text as CEL and Python both write it: raw, in one or three quotes of either kind, with escapes.
_TEXT = re.compile(r"//[^\n]*|(?P<text>[rR]?(?P<quote>\'\'\'|\"\"\"|'|\")(?:\\.|(?!(?P=quote)).)*+(?P=quote))", re.S)


class NamedInPolicy:
    """What the names of a policy are in the form in which people compare them."""

    def __init__(self, policy: Policy) -> None:
        self._spelled: dict[str, set[str]] = {}
        lists = [item.actors for item in policy.rates] + [item.actors for item in policy.budgets]
        lists += [item.actors for item in policy.cooldowns]
        for name in (*policy.grants, *(name for names in lists for name in names), *_in_conditions(policy)):
            self._spelled.setdefault(normal_name(name), set()).add(name)

    def check_actor(self, name: str) -> None:
        """Refuse the name of an actor that reads as another one, or that the policy has in other letters only."""
        check_actor(name)
        self.refuse_respelled(name)

    def refuse_respelled(self, name: str) -> None:
        """Refuse a name that the policy has in other letters only."""
        known = self._spelled.get(normal_name(name)) if self._spelled else None
        if known is not None and name not in known:
            raise ConfigError(
                f"the policy has {sorted(known)[0]!r}, and names are compared letter by letter, so that its rules would"
                f" not be about {name!r}: write the name as the policy does"
            )


def _in_conditions(policy: Policy) -> list[str]:
    """The texts of conditions that look at who calls."""
    rules = (*policy.rules, *policy.risks)
    conditions = [rule.when for rule in rules if rule.when is not None and _WHO.search(rule.when)]
    return [text for condition in conditions for text in _texts(condition)]


def _texts(condition: str) -> Iterator[str]:
    for match in _TEXT.finditer(condition):
        if match["text"]:
            try:
                yield str(ast.literal_eval(match["text"]))
            except (SyntaxError, ValueError):  # an escape that only CEL has
                yield match["text"].strip("rR'\"")
