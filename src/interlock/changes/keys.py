"""What a change is called: its keys, the claim that makes it happen once, and the digest of its plan."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from interlock.canonical import Refusal, encode_canonical
from interlock.openings import call_id_name, undo_name
from interlock.state import wildcard
from interlock.tools import KeyOf, Tool, redactor_of
from interlock.tools.normal_form import same_numbers
from interlock.tools.tracebacks import log_traceback
from interlock.transitions import MarkReturning, MarkStanding, MarkUndone, Transition
from interlock.values import Call, Effect, Json

Digest = Callable[[bytes], str]
_LONGEST_KEY = 512
_LONGEST_SHOWN = 120


class ClaimName(msgspec.Struct, frozen=True):
    """The name of a claim, and the digest of the request it stands for."""

    name: str
    request: str
    call_name: str = ""
    """What stands for the caller's own id, so that it is used for one claim; empty where the claim goes by it, or there
    is none. Of what takes a change back and has another name: what stands for its being that."""


def keys_of(tool: Tool, arguments: dict[str, Json]) -> tuple[str, ...]:
    """The keys a call changes, qualified and sorted; `Refusal` if the contract's key does not fit the arguments."""
    if tool.key is None:
        return () if tool.resource is None else (wildcard(tool.resource.name),)
    keys = _qualify(tool, tool.key, arguments)
    if not keys and tool.resource is not None:
        raise Refusal(f"the arguments name nothing that {tool.name!r} would change")
    return keys


def locks_of(tool: Tool, arguments: dict[str, Json]) -> tuple[str, ...]:
    """The keys that are held while a call changes anything, qualified and sorted."""
    return () if tool.locks is None else _qualify(tool, tool.locks, arguments)


def _qualify(tool: Tool, naming: KeyOf, arguments: dict[str, Json]) -> tuple[str, ...]:
    owner = tool.name if tool.resource is None else tool.resource.name
    try:
        found = naming(arguments)
    except Refusal:
        raise
    except Exception as error:  # noqa: BLE001 - the tool's own function, on arguments that passed its contract
        log_traceback(f"the key of {tool.name!r}", error, redactor_of(tool, arguments))
        raise Refusal(f"the key of {tool.name!r} cannot be told from the arguments ({type(error).__name__})") from None
    keys = (found,) if isinstance(found, str) else tuple(found)
    for key in keys:
        is_text = isinstance(key, str) and 0 < len(key) <= _LONGEST_KEY
        if not is_text or key.endswith("*") or not key.isprintable():
            raise Refusal(
                f"{_show_whole(key)} cannot be a key of {owner!r}: a key is printable text that does not end in '*',"
                f" of at most {_LONGEST_KEY} characters"
            )
    return (f"{owner}/{keys[0]}",) if len(keys) == 1 else tuple(sorted({f"{owner}/{key}" for key in keys}))


def _show_whole(key: object) -> str:
    """What is given in place of a key. Never a part of it: half a secret is harder to find than a whole one."""
    if not isinstance(key, str):
        return f"a value of type {type(key).__name__}"
    return repr(key) if len(key) <= _LONGEST_SHOWN else f"a text of {len(key):,} characters"


def local_key(key: str) -> str:
    """A key as its resource knows it."""
    return key.partition("/")[2]


def claim_name(digest: Digest, tool: Tool, keys: tuple[str, ...], arguments: Json, call: Call) -> ClaimName:
    """Same content within `once_per` is the same change, whatever the call id; where nothing wider is said, the call id
    is the caller's idempotency key. `arguments` are those that are compared, in one spelling for each value.

    Such a claim goes by the call id alone, so that an id that is used again for another request can be seen. So does
    that of a repeatable tool, each call of which is a change of its own.
    """
    arguments = same_numbers(arguments)
    request = digest(encode_canonical([tool.name, keys, arguments]))
    if call.undoes is not None:  # one change is taken back once, whoever asks for it how often
        return ClaimName(undo_name(digest, call.undoes), digest(encode_canonical(call.undoes)))
    scope = None if tool.repeatable else scope_of(tool.once_per, call)
    if scope is not None:
        name = digest(encode_canonical([tool.name, keys, arguments, tool.once_per, scope]))
    else:
        owner = [None] if call.turn is None else [call.turn, call.actor]  # in a turn an id is its actor's
        name = digest(encode_canonical([tool.name, "call", *owner, call.call_id]))
    if call.id_is_ours or (scope is None and call.turn is None):  # the name is that of its id
        return ClaimName(name, request)
    own = call_id_name(digest, tool=tool.name, turn=call.turn, actor=call.actor, call=call.call_id)
    return ClaimName(name, request, own if name != own else "")


def request_digest(digest: Digest, tool: str, keys: tuple[str, ...], arguments: Json, run: str | None = None) -> str:
    """What a call asks for, by value: of `arguments` in one spelling for each value; with the run, where only that says
    which calls are the same."""
    within = [] if run is None else [run]
    return digest(encode_canonical([tool, keys, same_numbers(arguments), *within]))


def compensation_name(
    digest: Digest, tool: Tool, keys: tuple[str, ...], arguments: Json, undoes: str
) -> ClaimName | None:
    """What a send that takes a change back is called where its tool makes the same one once ever: as it is when
    somebody makes it by hand. None where only what it takes back says what is the same."""
    if tool.effect is not Effect.SEND or tool.repeatable or tool.once_per != "ever":
        return None
    name = digest(encode_canonical([tool.name, keys, same_numbers(arguments), tool.once_per, []]))
    return ClaimName(name, request_digest(digest, tool.name, keys, arguments), undo_name(digest, undoes))


def scope_of(once_per: str, call: Call) -> list[str] | None:
    """Within what the same content is the same change; None where only the call id says what is the same."""
    match once_per:
        case "ever":
            return []
        case "actor":
            return ["actor", call.actor]
        case "run" if call.run is not None:
            return ["run", call.run]
    if call.turn is not None:
        return ["turn", call.turn]
    return ["run", call.run] if call.run is not None and call.id_is_ours else None


class PlanDigest(msgspec.Struct, frozen=True):
    """The digest of a plan in three parts, so that it can be said which of them moved."""

    request: str
    policy: str
    versions: str
    rests_on: int = 0
    """How many planned calls of the same turn it rests on: then it buys nothing alone."""

    def __str__(self) -> str:
        whole = f"{self.request}.{self.policy}.{self.versions}"
        return f"{whole}+{self.rests_on}" if self.rests_on else whole


def read_digest(text: str) -> PlanDigest | None:
    """The parts of a digest that somebody hands back; None if it is none."""
    whole, _, rests_on = text.partition("+")
    parts = whole.split(".")
    if len(parts) != 3 or (rests_on and not rests_on.isdecimal()):
        return None
    request, policy, versions = parts
    return PlanDigest(request, policy, versions, int(rests_on or 0))


def plan_digest(
    digest: Digest, tool: str, keys: tuple[str, ...], arguments: Json, policy: str, versions: tuple[str, ...]
) -> str:
    """The digest of a plan: what is asked, by which policy, on which versions."""
    request = digest(encode_canonical([tool, keys, arguments]))
    return f"{request}.{policy}.{digest(encode_canonical(versions))}"  # as `PlanDigest` is written


def on_versions(digest: Digest, plan: str, versions: tuple[str, ...]) -> str:
    """The digest of the same plan on other versions."""
    parts = read_digest(plan)
    if parts is None:
        raise ValueError(f"{plan!r} is no digest of a plan")
    return str(msgspec.structs.replace(parts, versions=digest(encode_canonical(versions))))


def plan_difference(wanted: str, found: str, *, since: str = "looked at") -> str | None:
    """What differs between two plans: a sentence, or None if they are the same plan."""
    if wanted == found:
        return None
    before, after = read_digest(wanted), read_digest(found)
    if before is None or after is None:
        return f"there is no plan {wanted[:80]!r}; make one with mode=dry_run and use its digest"
    parts = (
        ("the arguments", before.request, after.request),
        ("the policy", before.policy, after.policy),
        ("the resource", before.versions, after.versions),
    )
    differ = [name for name, one, other in parts if one != other]
    if not differ:
        count = before.rests_on or after.rests_on
        return f"the plan rests on {count} other planned call(s) of its turn, and is applied with them as a plan set"
    return f"{' and '.join(differ)} changed since the plan was {since}"


def mark_undone(idempotency_key: str) -> MarkUndone:
    """The transition that closes the claim of a change that was taken back."""
    return MarkUndone(*_split(idempotency_key))


def _split(idempotency_key: str) -> tuple[str, int]:
    name, _, generation = idempotency_key.rpartition(".")
    return name, int(generation)


class TakingBack(msgspec.Struct, frozen=True):
    """What becomes of other changes with one that takes one of them back: those that stand with that do not any more,
    and those that it had taken back do. By their idempotency keys; empty for a change that takes nothing back."""

    back: tuple[str, ...] = ()
    again: tuple[str, ...] = ()

    def begin(self) -> tuple[Transition, ...]:
        """With its intent: from here on nobody else makes again what is about to stand again."""
        if not self.again:
            return ()
        return tuple(MarkReturning(*_split(key)) for key in self.again)

    def close(self, *, landed: bool | None) -> tuple[Transition, ...]:
        """With its outcome; nothing where nobody knows that yet."""
        if landed is None or not (self.back or self.again):
            return ()
        if not landed:
            return tuple(map(mark_undone, self.again))
        return (*map(mark_undone, self.back), *(MarkStanding(*_split(key)) for key in self.again))
