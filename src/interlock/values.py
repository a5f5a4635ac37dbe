"""The frozen values that travel the one path: Call, Verdict, Plan, Outcome, Record.

A stage takes one of them and returns the next; none is ever changed in place. Times are whole microseconds since the
epoch, durations whole microseconds, money whole micro-dollars, so that nothing depends on how a float was printed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec

from interlock.reasons import FieldReason, Reason

Json = Any
"""A JSON value: None, bool, int, float, str, list of Json, dict of str to Json."""


T = TypeVar("T")


class Value(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A frozen fact. Written with keywords; on the one path by position, which is much cheaper."""


_SUMMARY_CHARS = 160
_encode = msgspec.json.Encoder(order="deterministic").encode


def one_line(value: Json) -> str:
    """One line that shows a value, or its beginning."""
    line = " ".join(value[: _SUMMARY_CHARS * 4].split()) if isinstance(value, str) else _encode(value).decode()
    return line if len(line) <= _SUMMARY_CHARS else line[: _SUMMARY_CHARS - 1] + "…"


def shorten(text: str, most: int = 80) -> str:
    """The beginning of a text for a sentence about it: what somebody wrote must not make the sentence long."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def clean(text: str) -> str:
    """Text that can be written down: no lone surrogates. Found in a secret, they are redacted in this form too."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def name_some(names: Sequence[str], shown: int = 8) -> str:
    """Names for a sentence about them, a few in full: a, b and 3 more."""
    some = ", ".join(shorten(name) for name in names[:shown])
    return f"{some} and {len(names) - shown:,} more" if len(names) > shown else some


class Effect(StrEnum):
    """What a tool does to the world."""

    READ = "read"
    WRITE = "write"
    SEND = "send"


class Mode(StrEnum):
    """How far a call may go."""

    APPLY = "apply"
    DRY_RUN = "dry_run"
    SHADOW = "shadow"


class Trust(StrEnum):
    """Whether what a tool returns may be believed or merely quoted."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"


class Status(StrEnum):
    """How a call ended: a closed set, matched to the end everywhere."""

    OK = "ok"
    NO_DATA = "no_data"
    FAILED = "failed"
    INPUT_REQUIRED = "input_required"
    """Nothing was done: the tool has to be told something first."""
    DENIED = "denied"
    PARKED = "parked"
    UNKNOWN = "unknown"
    PLANNED = "planned"


class Decision(StrEnum):
    """What policy says: deny beats review beats allow."""

    ALLOW = "allow"
    DENY = "deny"
    REVIEW = "review"


class Lock(Value, frozen=True):
    """A lease that its holder has for longer than one call: the claim that stands for it, its key and fencing token."""

    name: str
    holder: str
    key: str
    token: int


class Call(Value, frozen=True):
    """What somebody proposes to do."""

    call_id: str
    tool: str
    arguments: Json
    actor: str
    principal: str
    id_is_ours: bool = False
    """The call id was made for this call alone; one that a caller gives may repeat, and is its idempotency key."""
    mode: Mode = Mode.APPLY
    is_bare: bool = False
    """Nothing is said but tool, arguments and actor, and it is to be done: there is nothing else to record."""
    on_behalf_of: str | None = None
    turn: str | None = None
    run: str | None = None
    parent: str | None = None
    evidence: tuple[str, ...] = ()
    confidence: float | None = None
    ticket: str | None = None
    plan: str | None = None
    """The digest of the plan that was looked at: this plan is performed, or none."""
    undoes: str | None = None
    """The idempotency key of the change that this one takes back."""
    replays: bool = False
    """An operator has this call made again: what was undone or failed is tried, not answered from the record."""
    claim: str | None = None
    """Of a call that is made again from its record: the claim that stands there. Under another it is another change."""
    offered: tuple[str, ...] = ()
    """The tools that the caller's turn offers at this point; empty: all that policy allows."""
    withheld: dict[str, str] = {}
    """Tools that may not be called in the caller's turn, each with why."""
    budgets: tuple[Budget, ...] = ()
    """Budgets of the turn's own, beside those of the policy."""
    root_turn: str | None = None
    """The outermost turn of a delegation, whose budget is spent; None: the call's own turn."""
    question: str | None = None
    """What the user has said, where no turn was opened with it: values that stand in it are the user's own."""
    constants: tuple[str, ...] = ()
    """Arguments that the application fills in itself: where they come from is not for a rule to ask."""
    edited: dict[str, str] = {}
    """Arguments that somebody has put in place of what a ticket asked about, and who."""
    parties: tuple[str, ...] = ()
    """Who had a part in it before that."""
    found_in: str | None = None
    """The turn in which its values were found, where it is made outside of that: they keep their labels."""
    locks: tuple[Lock, ...] = ()
    """Leases that the caller has: the call is made under them, or not at all."""
    lock_keys: tuple[str, ...] = ()
    """Keys that are locked for it beside those that its tool names: as for the change that it takes back or repeats."""
    overlay: dict[str, Json] | None = None
    """Of a call that is only planned: what keys are taken to be, as earlier changes of its set would leave them."""


class Rewrite(Value, frozen=True):
    """One argument that was changed on the way, by whom and from what."""

    field: str
    before: Json
    after: Json
    rule: str


class Verdict(Value, frozen=True):
    """What was decided, by which rule of which policy, in words a model and a person can act on."""

    decision: Decision
    rule: str
    policy_version: str
    reason: str
    rewrites: tuple[Rewrite, ...] = ()
    origins: dict[str, str] = {}
    """For each argument where its value came from, if a rule has asked."""
    sources: tuple[int, ...] = ()
    """The records of the results that values stand in which come from nowhere good."""
    instead: str = ""
    """What may be done instead of what is refused."""
    foreign: tuple[str, ...] = ()
    """Of a tool whose words another one recalls: digests of the values in them that come from nowhere good."""


class Versioned(Value, frozen=True):
    """A state with the version its resource gives it; without one, the digest of the state is its version."""

    value: Json
    version: str


class Plan(Value, frozen=True):
    """What a call will do: for a read only its digest; a write adds keys, snapshots and a diff.

    `before` and `after` are lists in the order of `keys`; None stands for a key that does not exist. `after` is None as
    a whole where nothing can say what it will be. The digest has three parts: what is asked, by which policy, on which
    versions.
    """

    digest: str
    keys: tuple[str, ...] = ()
    before: Json = None
    after: Json = None
    diff: str | None = None
    risk: str | None = None
    versions: tuple[str, ...] = ()
    key_versions: dict[str, str] = {}
    """Of a whole resource: the versions that it gives of the keys in it."""
    claim: str = ""
    generation: int = 0
    rests_on: tuple[int, ...] = ()
    """Records of planned calls of the same turn on the same keys: this plan cannot be applied without them."""

    @property
    def idempotency_key(self) -> str | None:
        """What is handed downstream: the same for the same change, another one after an undo."""
        return f"{self.claim}.{self.generation}" if self.claim else None


class FieldProblem(Value, frozen=True):
    """What is wrong with one argument."""

    field: str
    message: str
    reason: FieldReason = FieldReason.INVALID

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class Problem(Value, frozen=True):
    """Why a call did not succeed: a reason for programs, a sentence for people, a way on."""

    reason: Reason
    message: str
    hints: tuple[str, ...] = ()
    fields: tuple[FieldProblem, ...] = ()
    """The arguments that are at fault, if they are."""
    retry_after_s: float | None = None


class Attempt(Value, frozen=True):
    """One try inside PERFORM."""

    waited_us: int = 0
    duration_us: int = 0
    error: Reason | None = None


class Outcome(Value, frozen=True):
    """How a call ended and what it brought."""

    call_id: str
    tool: str
    status: Status
    value: Json = None
    said: str = ""
    attempts: tuple[Attempt, ...] = ()
    duration_us: int = 0
    verdict: Verdict | None = None
    plan: Plan | None = None
    record: int | None = None
    # So far what every call has; from here on what only some have.
    problem: Problem | None = None
    snippets: tuple[str, ...] = ()
    metadata: dict[str, Json] = {}
    confidence: float | None = None
    sources: tuple[str, ...] = ()
    trust: Trust = Trust.TRUSTED
    undone: bool = False
    """Answered from the record of a change that was taken back since: it was made, and does not stand any more."""
    ticket: str | None = None
    deviates: tuple[str, ...] = ()
    """Keys that became something else than was planned: the change was made, not as planned."""
    repeats: int | None = None
    """The record that answers this call, made before for the same call or the same change; None if it was made now."""

    @property
    def ok(self) -> bool:
        """Only `ok` satisfies a requirement."""
        return self.status is Status.OK

    @property
    def summary(self) -> str:
        """One line: what was said about the value, or else the value itself."""
        return self.said or one_line(self.value)


class Result(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """What a tool may return when it has more to say than a bare value: every field has a default."""

    value: T | None = None
    summary: str = ""
    snippets: tuple[str, ...] = ()
    metadata: dict[str, Json] = {}
    confidence: float | None = None
    sources: tuple[str, ...] = ()
    cost_usd: float | None = None
    no_data: bool = False


NOT_THERE = "absent"
"""The version of a key that does not exist."""


class Context(Value, frozen=True):
    """What a tool may ask for about its own call, by a parameter of this type."""

    call_id: str
    actor: str
    attempt: int
    turn: str | None = None
    idempotency_key: str | None = None
    tokens: dict[str, int] = {}
    """The fencing token of each leased key: a resource that can refuses a write with a lower one."""
    ledger: str = ""
    """Where the tokens come from: those of another ledger say nothing."""
    versions: dict[str, str] = {}
    """The version that each key had when the change was planned (`absent`: it was not there), where its resource gives
    one: a resource that can refuses to write another one. Whoever has written a key notes its new version here. Where a
    change may touch everything in its resource, `*` stands for every key that is not named."""
    written: dict[str, Versioned | None] = {}
    """What this call itself has left of each RESOURCE/KEY so far, as the resource noted it (`wrote`); None where it
    cannot say at which version. What is there at another version when the call ends is somebody else's."""

    def wrote(self, resource: str, key: str, left: Versioned | None) -> None:
        """For a resource that has just written a key for this call: note the state and the version that it has now
        (a value of None: removed); None where it cannot say which version that is."""
        now = None if left is None else NOT_THERE if left.value is None else left.version
        self.written[f"{resource}/{key}"] = left if left is None else Versioned(copy.deepcopy(left.value), str(now))
        if now is None:
            self.versions.pop(key, None)
        elif key in self.versions or "*" in self.versions:
            self.versions[key] = str(now)


EVERYONE = ("*",)


class Rate(Value, frozen=True):
    """A token bucket: so many calls a second on average, so many at once."""

    id: str
    tools: tuple[str, ...]
    per: tuple[str, ...]
    per_s: float
    burst: int
    actors: tuple[str, ...] = EVERYONE


class Budget(Value, frozen=True):
    """What may be spent within one turn, one run, by one actor or by all (in a window, where one is given).

    With `sum` it is not money that is counted but a number among the arguments, in millionths, too.
    """

    id: str
    per: str
    calls: int | None = None
    cost_micros: int | None = None
    ms: int | None = None
    actors: tuple[str, ...] = EVERYONE
    window_s: int | None = None
    tools: tuple[str, ...] = EVERYONE
    sum: str = ""
    """The argument whose values are added up."""

    @property
    def unit(self) -> str:
        """What `cost_micros` counts, in words."""
        return repr(self.sum) if self.sum else "micro-dollars"

    def spell(self, amount: int, unit: str) -> str:
        """An amount in words: of what is added up, not millionths but whole ones."""
        return f"{amount / 1_000_000:.12g}" if self.sum and unit == self.unit else str(amount)


class Grant(Value, frozen=True):
    """What an actor may use: capabilities and modes."""

    actor: str
    capabilities: frozenset[str] = frozenset()
    modes: frozenset[Mode] = frozenset(Mode)


class TurnView(Value, frozen=True):
    """What a rule may know about the turn a call belongs to: folded from its records."""

    calls: int = 0
    tools: tuple[str, ...] = ()
    untrusted: tuple[str, ...] = ()
    planned: Mapping[str, Sequence[int]] = {}
    """By key, the records of changes that the turn has only planned."""
