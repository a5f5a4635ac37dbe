"""What a call itself left of its keys: what is there when it ends may be what somebody else has made of them since."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from interlock.changes.keys import Digest, local_key
from interlock.changes.snapshots import Snapshot, given_version, whole_snapshot
from interlock.state import is_wildcard, overlap
from interlock.tools import Tool
from interlock.values import NOT_THERE, Json, Plan, Versioned


class Left(msgspec.Struct, frozen=True):
    """The snapshots of keys as a call left them."""

    snapshots: tuple[Snapshot, ...]
    overtaken: tuple[str, ...] = ()
    """The keys that are something else already, made so by somebody else while the call ran."""


class _Image(msgspec.Struct, frozen=True):
    """A state, and the version that its resource gives it; None if it gives none."""

    state: Json
    version: str | None


Written = Mapping[str, Versioned | None]


def left_by_call(tool: Tool, plan: Plan, found: tuple[Snapshot, ...], written: Written, digest: Digest) -> Left:
    """What a call left of its keys, as far as its resource has noted that at the write.

    A key that it noted is what was noted, also if it was found at another version since. Where it notes writes at all,
    a key that it did not note was not written by the call. Everything else is taken as it was found.
    """
    if tool.resource is None or len(found) != len(plan.keys) or plan.before is None:
        return Left(found)
    place = f"{tool.resource.name}/"
    noted = written and any(key.startswith(place) for key in written)
    if not noted and not getattr(tool.resource, "notes_writes", False):
        return Left(found)
    if plan.keys and is_wildcard(plan.keys[0]):
        return _left_of_whole(plan, found[0], written, digest)
    left, overtaken = [], []
    for key, was, version, now in zip(plan.keys, plan.before, plan.versions, found, strict=True):
        before, here = _Image(was, given_version(version)), _Image(now.state, given_version(now.version))
        own = _own(key, before, here, written)
        if own is here:
            left.append(now)
            continue
        overtaken.append(key)
        left.append(Snapshot(was, version) if own is before else Snapshot(own.state, str(own.version)))
    return Left(tuple(left), tuple(overtaken))


def written_beside(tool: Tool, plan: Plan, written: Written) -> tuple[str, ...]:
    """What a call wrote in its resource beside the keys of its plan, as far as that was noted."""
    if tool.resource is None or not written:
        return ()
    place = f"{tool.resource.name}/"
    return tuple(
        sorted(key for key in written if key.startswith(place) and not any(overlap(key, own) for own in plan.keys))
    )


def _own(key: str, was: _Image, now: _Image, written: Written) -> _Image:
    """What a call left of a key: what is there now, unless that is somebody else's."""
    if key not in written:
        known = was.version is not None and now.version is not None
        return now if (was.version == now.version if known else was.state == now.state) else was
    noted = written[key]
    if noted is None or now.version is None:
        return now
    version = NOT_THERE if noted.value is None else noted.version
    return now if now.version == version else _Image(noted.value, version)


def _left_of_whole(plan: Plan, found: Snapshot, written: Written, digest: Digest) -> Left:
    everything, before, now = plan.keys[0][:-1], plan.before[0] or {}, found.state or {}
    noted = {local_key(key) for key in written if key.startswith(everything)}
    left: dict[str, Json] = {}
    overtaken = []
    for name in sorted({*before, *now, *noted}):
        here = _image(name, now, found.key_versions)
        own = _own(everything + name, _image(name, before, plan.key_versions), here, written)
        if own is not here:
            overtaken.append(everything + name)
        if own.state is not None:
            left[name] = own.state if own.version is None else Versioned(own.state, own.version)
    if not overtaken:
        return Left((found,))
    changed = int(found.version.rpartition("@")[2])
    return Left((whole_snapshot(left, changed, digest),), tuple(overtaken))


def _image(name: str, states: Mapping[str, Json], versions: Mapping[str, str]) -> _Image:
    return _Image(states[name], versions.get(name)) if name in states else _Image(None, NOT_THERE)
