"""Images of a resource before and after: reading, foreseeing, and how risky the difference is."""

from __future__ import annotations

import copy
from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec

from interlock.canonical import WHATEVER, Refusal, canonical
from interlock.changes.keys import Digest, local_key
from interlock.errors import ToolError, safe_message
from interlock.ports import ClaimStore, Faults, Resource
from interlock.resilience import Deadlines, Expired
from interlock.state import is_wildcard, overlap, wildcard
from interlock.tools import Tool, redactor_of
from interlock.tools.tracebacks import log_traceback
from interlock.values import NOT_THERE, Effect, Json, Plan, Versioned

_DIGEST = "digest:"


class Unreadable(Exception):
    """A resource that cannot be read: nothing is planned or done on it. `seen` is what was read of it, and may be
    quoted."""

    def __init__(self, message: str, *seen: Json) -> None:
        super().__init__(message)
        self.seen = seen


class Snapshot(msgspec.Struct, frozen=True):
    """The state of one key, and the version it has.

    Where its resource gives none, its digest and the token of the last recorded change stand for it: a state that was
    left and come back to is not the same version.
    """

    state: Json
    version: str
    key_versions: dict[str, str] = {}
    """Of a whole resource: the versions that it gives of the keys in it, as it knows them."""


class SnapshotReader(msgspec.Struct, frozen=True):
    """How resources are looked at: digests for versions, fault points, a time limit, and what was changed last."""

    digest: Digest
    faults: Faults | None
    deadlines: Deadlines
    claims: ClaimStore


def given_version(version: str) -> str | None:
    """The version as its resource knows it (`absent` where there is nothing); None where we made it up."""
    if version.startswith(f"{NOT_THERE}@"):
        return NOT_THERE
    return None if version.startswith(_DIGEST) else version


def is_same_version(one: str, other: str) -> bool:
    """Whether two versions of a key are the same, but for the last recorded change where we made them up: that may have
    been one of the whole resource, which left the key alone."""
    given = given_version(one)
    if given is not None or given_version(other) is not None:
        return given == given_version(other)
    return one.rpartition("@")[0] == other.rpartition("@")[0]


def planned_versions(plan: Plan) -> dict[str, str]:
    """The versions that a tool is handed, by key as its resource knows it: those that the resource gave.

    Of a whole resource that gives one for everything in it, a key that it did not name was not there.
    """
    if plan.keys and is_wildcard(plan.keys[0]):
        complete = plan.key_versions.keys() == (plan.before[0] or {}).keys()
        return {**plan.key_versions, "*": NOT_THERE} if complete else dict(plan.key_versions)
    pairs = zip(plan.keys, plan.versions, strict=False)
    given = {local_key(key): given_version(version) for key, version in pairs}
    return {key: version for key, version in given.items() if version is not None}


async def read_snapshots(
    tool: Tool,
    keys: tuple[str, ...],
    snapshot_reader: SnapshotReader,
    changed: Mapping[str, int] | None = None,
) -> tuple[Snapshot, ...]:
    """The states of the keys now, in their order; each within the tool's time limit.

    `changed` are the tokens of the last change of each key, where the caller has just made it.
    """
    if tool.resource is None:
        return ()
    if len(keys) == 1 and not is_wildcard(keys[0]):  # most changes have one key
        (key,) = keys
        state = await _read(tool.resource.read_state(local_key(key)), key, tool, snapshot_reader)
        if changed is None and not isinstance(state, Versioned):
            changed = await _last_changes(keys, snapshot_reader)
        return (_snapshot_of_key(state, key, changed.get(key, 0) if changed else 0, snapshot_reader.digest),)
    states = await _read_states(tool.resource, keys, tool, snapshot_reader)
    if changed is None and not all(isinstance(state, Versioned) for state in states):
        changed = await _last_changes(keys, snapshot_reader)
    pairs = zip(keys, states, strict=True)
    return tuple([_snapshot_of(state, key, (changed or {}).get(key, 0), snapshot_reader) for key, state in pairs])


def lay_over(
    keys: tuple[str, ...], snapshots: tuple[Snapshot, ...], overlay: Mapping[str, Json]
) -> tuple[Snapshot, ...]:
    """The snapshots with other states for the keys of the overlay, alone or as parts of their whole resource."""
    found = []
    for key, snapshot in zip(keys, snapshots, strict=False):  # what has no resource has keys and no snapshots
        if is_wildcard(key):
            parts = {local_key(name): state for name, state in overlay.items() if overlap(key, name)}
            whole = {**(snapshot.state or {}), **parts}
            state: Json = {name: part for name, part in whole.items() if part is not None}
        else:
            state = overlay.get(key, snapshot.state)
        found.append(Snapshot(state, snapshot.version, snapshot.key_versions))
    return tuple(found)


async def _read_states(
    resource: Resource, keys: tuple[str, ...], tool: Tool, snapshot_reader: SnapshotReader
) -> list[Any]:
    together = getattr(resource, "read_states", None)
    if together is not None and len(keys) > 1:
        held = await _read(together([local_key(key) for key in keys]), ", ".join(keys), tool, snapshot_reader)
        return [held.get(local_key(key)) for key in keys]
    found = []
    for key in keys:
        reading = _read_whole(resource) if is_wildcard(key) else resource.read_state(local_key(key))
        found.append(await _read(reading, key, tool, snapshot_reader))
    return found


def _read_whole(resource: Any) -> Coroutine[Any, Any, Any]:
    """Everything in a resource: with versions where it can say them."""
    reading: Coroutine[Any, Any, Any] = getattr(resource, "versioned_snapshot", resource.snapshot)()
    return reading


async def _last_changes(keys: tuple[str, ...], snapshot_reader: SnapshotReader) -> dict[str, int]:
    """For each key the token of the last change that landed, on it alone or on its whole resource."""
    if snapshot_reader.faults is not None:
        snapshot_reader.faults.at("change.leases")
    leases = await snapshot_reader.claims.leases(keys)
    if not leases:
        return {}
    changed = {lease.key: lease.changed for lease in leases}
    last = {key: max(changed.get(key, 0), changed.get(wildcard(key), 0)) for key in keys}
    for key in keys:
        if is_wildcard(key):  # the whole of a resource is as new as the newest of its parts; a call has one such key
            last[key] = max([last[key], *(lease.changed for lease in leases if lease.key.startswith(key[:-1]))])
    return last


async def _read(reading: Coroutine[Any, Any, Any], what: str, tool: Tool, snapshot_reader: SnapshotReader) -> Any:
    """What a resource says, within the tool's time limit; `Unreadable` if it does not."""
    if snapshot_reader.faults is not None:
        snapshot_reader.faults.at("change.look")
    try:
        return await snapshot_reader.deadlines.within(tool.timeout_s, reading)
    except Expired:
        raise Unreadable(f"{what!r} cannot be read: no answer within {tool.timeout_s:g} s") from None
    except ToolError as error:
        raise Unreadable(f"{what!r} cannot be read: {error}") from None
    except Exception as error:  # noqa: BLE001 - a resource is somebody else's code
        shown, asked = error, repr(what)
        if tool.redact:  # what stands in the resource is not known here: what is raised may quote it, and so do keys
            hidden = f"{type(error).__name__}, of which the text is not shown, as the tool redacts"
            shown, asked = RuntimeError(hidden).with_traceback(error.__traceback__), "a key that the record names"
        log_traceback(f"the resource of {tool.name!r}, asked for {asked},", shown, None)
        raise Unreadable(f"{what!r} cannot be read: {safe_message(error)}") from None


def own_copy(value: Any) -> Any:
    """A copy of JSON that whoever gets it may change: through text, which is much quicker than `deepcopy`."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (msgspec.MsgspecError, OverflowError, TypeError):
        return copy.deepcopy(value)


def _snapshot_of(state: Json, key: str, changed: int, snapshot_reader: SnapshotReader) -> Snapshot:
    if not is_wildcard(key):
        return _snapshot_of_key(state, key, changed, snapshot_reader.digest)
    if not isinstance(state, Mapping):
        raise Unreadable(f"the snapshot of {key!r} is not one of states by key, but of type {_type(state)}")
    try:
        return whole_snapshot(state, changed, snapshot_reader.digest)
    except Refusal as refusal:
        raise Unreadable(f"the state of {key!r} is not JSON: {refusal}") from None


def _type(value: Json) -> str:
    return type(value).__name__


def whole_snapshot(states: Mapping[str, Json], changed: int, digest: Digest) -> Snapshot:
    """A document that was left and come back to has another version, and so has the whole of which it is a part."""
    versions = {key: str(state.version) for key, state in states.items() if isinstance(state, Versioned)}
    plain = {key: state.value if isinstance(state, Versioned) else state for key, state in states.items()}
    made = digest(canonical([plain, versions] if versions else plain, WHATEVER))
    return Snapshot(plain, f"{_DIGEST}{made}@{changed}", versions)


def _snapshot_of_key(state: Json, key: str, changed: int, digest: Digest) -> Snapshot:
    if state is None:
        return Snapshot(None, f"{NOT_THERE}@{changed}")
    try:
        if isinstance(state, Versioned):
            canonical(state.value, WHATEVER)
            return Snapshot(state.value, str(state.version))
        return Snapshot(state, f"{_DIGEST}{digest(canonical(state, WHATEVER))}@{changed}")
    except Refusal as refusal:
        raise Unreadable(f"the state of {key!r} is not JSON: {refusal}") from None


def simulate(
    tool: Tool, keys: tuple[str, ...], snapshots: tuple[Snapshot, ...], arguments: dict[str, Json]
) -> list[Json] | None:
    """The states after the call, where the tool can say; `Unreadable` if it fails to."""
    if tool.simulate is None:
        return None
    try:
        pairs = zip(keys, snapshots, strict=True)
        after = [tool.simulate(own_copy(snapshot.state), arguments, local_key(key)) for key, snapshot in pairs]
        canonical(after, WHATEVER)
    except Exception as error:  # noqa: BLE001 - the tool's own function
        states = [snapshot.state for snapshot in snapshots]
        log_traceback(f"simulate of {tool.name!r}", error, redactor_of(tool, arguments, states))
        raise Unreadable(f"{tool.name!r} cannot say what it would do: {safe_message(error)}", states) from None
    if keys and is_wildcard(keys[0]) and not isinstance(after[0], dict):
        wanted = f"it may touch anything, so simulate returns states by key, not a value of type {_type(after[0])}"
        raise Unreadable(f"{tool.name!r} cannot say what it would do: {wanted}")
    return after


def risk_of(effect: Effect, before: list[Json], after: list[Json] | None, *, whole: bool = False) -> str:
    """From the difference alone: a send cannot be taken back, a removal loses most, a creation loses nothing."""
    if effect is Effect.SEND:
        return "high"
    if after is None:
        return "medium"
    if len(before) == 1 and isinstance(before[0], dict) and whole:
        names = sorted({*before[0], *(after[0] or {})})
        before, after = [before[0].get(name) for name in names], [(after[0] or {}).get(name) for name in names]
    risk = "none"
    for old, new in zip(before, after, strict=True):
        if old is None:
            risk = "low" if risk == "none" and new is not None else risk
        elif new is None:
            return "high"
        elif old != new:
            risk = "medium"
    return risk
