"""The terms of review as a policy sets them, ready to be put into tickets."""

from __future__ import annotations

from pathlib import Path

import msgspec

from interlock.errors import ConfigError
from interlock.policy import Policy
from interlock.state import ReviewTerms

_INLINE = "ed25519:"
_HEX = 64


class Terms(msgspec.Struct, frozen=True):
    """How long a question stays open, when it is put to more people, how often they are reminded, and who they are."""

    expires_us: int
    escalate_us: int
    remind_us: int = 0
    everywhere: ReviewTerms = ReviewTerms()
    by_rule: dict[str, ReviewTerms] = {}

    def of(self, rule: str) -> ReviewTerms:
        """Who decides what a rule leaves to people."""
        return self.by_rule.get(rule, self.everywhere)


def terms_of(policy: Policy) -> Terms:
    """What a policy says about review; `ConfigError` if a key that it names cannot be read."""
    spec = policy.review
    everywhere = ReviewTerms(
        approvers=spec.approvers,
        quorum=spec.quorum,
        self_approval=spec.self_approval,
        keys=tuple(_public_key(name, Path(policy.file).parent) for name in spec.keys),
        vouched=spec.vouched,
        delegations=spec.delegations,
    )
    own = {
        rule.id: msgspec.structs.replace(
            everywhere, approvers=rule.approvers or everywhere.approvers, quorum=rule.quorum or everywhere.quorum
        )
        for rule in policy.rules
        if rule.approvers or rule.quorum
    }
    for terms in (everywhere, *own.values()):
        if 0 < len(terms.approvers) < terms.quorum:
            few = ", ".join(terms.approvers)
            raise ConfigError(f"{policy.file}: {terms.quorum} approvals are wanted, and only {few} may give one")
    return Terms(spec.expires_s * 1_000_000, spec.escalate_s * 1_000_000, spec.remind_s * 1_000_000, everywhere, own)


def key_faults(policy: Policy) -> tuple[str, ...]:
    """Why keys that a policy names cannot be used; with one of them no runtime opens."""
    found = []
    for name in policy.review.keys:
        try:
            _public_key(name, Path(policy.file).parent)
        except ConfigError as error:
            found.append(f"{policy.file}: [review] keys: {error}")
    return tuple(found)


def _public_key(name: str, folder: Path) -> str:
    text = name.removeprefix(_INLINE)
    if text == name:
        from interlock.audit import load_public_key  # here: a policy without keys need not load cryptography

        return load_public_key(folder / Path(name).expanduser())
    if len(text) != _HEX or any(letter not in "0123456789abcdef" for letter in text):
        raise ConfigError(f"[review]: {name!r} is no key: write {_INLINE} and 64 hex digits, or the name of a PEM file")
    return text
