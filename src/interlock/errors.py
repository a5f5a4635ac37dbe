"""One error tree, split by who must act.

    InterlockError
    ├── ConfigError        the operator: interlock.toml, environment, command line
    ├── ContractError      the tool's author: a contract that cannot be registered
    ├── PolicyError        the policy's author: a rule file that cannot be used
    ├── NotAllowed         whoever decides: a ticket, halt or undo that cannot be decided so
    ├── Locked             whoever wants a lock: somebody else has it, and did not let go in time
    ├── StoreError         the operator: the store cannot be read or written
    │   ├── StoreBusy          somebody else holds it; try again
    │   ├── StoreFull          no room, or not writable
    │   ├── StoreCorrupt       the file is not what was written
    │   ├── PayloadUnreadable  a payload is there, and the key for it is not
    │   └── StoreTooNew        made by a newer version of Interlock
    └── ToolError          raised by tools (or mapped by adapters) to say what kind of failure it was
        ├── Transient          it may work later: a read is retried; a write or send may have landed
        │   ├── RateLimited        the other side refuses for now (retry_after_s): retried
        │   ├── Unavailable        the other side is down, or its answer was lost
        │   │   └── NothingLanded      nothing has left, or it was rolled back: a write or send is retried too
        │   └── TimedOut           no answer in time
        ├── InDoubt            for write and send: it may have landed, and nobody knows
        ├── InputRequired      nothing was done: somebody has to say something first
        └── Permanent          trying again will not help: never retried
            ├── InvalidInput       the other side refuses these arguments
            ├── Ambiguous          somebody has to say which is meant: the turn asks
            ├── NotFound           there is no such thing: recorded as no_data
            ├── Forbidden          not allowed there
            ├── Conflict           the thing moved meanwhile
            └── TooLarge           the result is over the tool's max_bytes

Retries are decided by these classes, never by words in a message. What may have landed is never tried again, unless the
tool declares that the other side honours the idempotency key (`idempotent=True`). `reason` is what records carry.
"""

from __future__ import annotations

from interlock.reasons import Reason


def install_hint(extra: str) -> str:
    """How one of our extras is installed, from a clone or from a release."""
    return f"pip install '.[{extra}]' in a clone of Interlock, pip install 'interlock[{extra}]' of a release"


class InterlockError(Exception):
    """Everything that Interlock raises."""


class ConfigError(InterlockError):
    """A setting is wrong; the message names it and the way out."""


class ContractError(InterlockError):
    """A tool cannot be registered as it is written."""


class PolicyError(InterlockError):
    """A policy cannot be used; `problems` lists every finding with its place."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problems))


class NotAllowed(InterlockError):
    """A decision that may not be taken, or not by this person; the message says why."""

    def __init__(self, message: str, *, instead: str = "") -> None:
        super().__init__(message)
        self.instead = instead
        """What stands in its place: the ticket that is open already."""


class StoreError(InterlockError):
    """The store cannot be used."""


class Locked(InterlockError):
    """Somebody else holds what was to be held, and did not let go in time."""


class StoreBusy(StoreError):
    """Another process holds the store for longer than we may wait."""


class StoreSilent(StoreError):
    """The store took a batch and gave no answer in time: nobody knows whether it will land."""


class StoreFull(StoreError):
    """No room on the disk, or the file may not be written."""


class StoreCorrupt(StoreError):
    """The file is damaged or is not a ledger of ours."""


class PayloadUnreadable(StoreError):
    """A payload is encrypted, and its key is not here; the message says which file is needed."""

    def __init__(self, message: str, *, key: str = "", lost: bool = False) -> None:
        super().__init__(message)
        self.key = key
        """The id of the key."""
        self.lost = lost
        """Whether the file of keys says that this one is gone for good."""


class StoreTooNew(StoreError):
    """The store was written by a newer version."""


class ToolError(InterlockError):
    """What a tool raises to say how it failed."""

    reason = Reason.TOOL_ERROR
    traceback = ""
    """Of the exception of the tool's own that this one stands for, where it does."""

    def __init__(self, message: str, *, hints: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.hints = hints


class Transient(ToolError):
    """A later try may work. Of a write or send it is not known whether it landed."""

    reason = Reason.TRANSIENT

    def __init__(self, message: str, *, hints: tuple[str, ...] = (), retry_after_s: float | None = None) -> None:
        super().__init__(message, hints=hints)
        self.retry_after_s = retry_after_s


class RateLimited(Transient):
    """The other side asks us to wait."""

    reason = Reason.RATE_LIMITED


class Unavailable(Transient):
    """The other side is down, cannot be reached, or its answer was lost."""

    reason = Reason.UNAVAILABLE


class NothingLanded(Unavailable):
    """Provably nothing happened: no byte of the request left, or the transaction was rolled back."""

    reason = Reason.NOTHING_LANDED


class TimedOut(Transient):
    """No answer in time."""

    reason = Reason.TIMEOUT


class InDoubt(ToolError):
    """The effect may have landed, and nobody knows."""

    reason = Reason.IN_DOUBT


class InputRequired(ToolError):
    """Nothing was done, and nothing will be before somebody has said something: the message is what is asked for.

    The call ends as `input_required` and holds nothing; the same call may be made once the answer is there. `requests`,
    what the other side wants to know in its own form, is in the outcome as `metadata["requests"]`.
    """

    reason = Reason.INPUT_REQUIRED

    def __init__(self, message: str, *, requests: object = None, hints: tuple[str, ...] = ()) -> None:
        super().__init__(message, hints=hints)
        self.requests = requests


class Permanent(ToolError):
    """Trying again will not help."""

    reason = Reason.PERMANENT


class InvalidInput(Permanent):
    """The other side refuses these arguments."""

    reason = Reason.INVALID_INPUT


class Ambiguous(Permanent):
    """The arguments fit several things; the message is the question that somebody has to answer."""

    reason = Reason.AMBIGUOUS


class NotFound(Permanent):
    """There is no such thing: an honest nothing, recorded as `no_data`."""

    reason = Reason.NOT_FOUND


class Forbidden(Permanent):
    """Not allowed there."""

    reason = Reason.FORBIDDEN


class Conflict(Permanent):
    """The thing moved meanwhile."""

    reason = Reason.CONFLICT


class TooLarge(Permanent):
    """The result is larger than the tool's contract allows."""

    reason = Reason.TOO_LARGE


_BY_STATUS: dict[int, type[Permanent]] = {
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: NotFound,
    412: Conflict,
    413: TooLarge,
}


def from_http_status(status: int, message: str, *, retry_after_s: float | None = None) -> ToolError:
    """The error class for an HTTP answer of 400 or above."""
    if status == 429:
        return RateLimited(message, retry_after_s=retry_after_s)
    if status in (408, 504):
        return TimedOut(message, retry_after_s=retry_after_s)
    if status >= 500:
        return Unavailable(message, retry_after_s=retry_after_s)
    return _BY_STATUS.get(status, InvalidInput)(message)


def from_exception(error: BaseException, *, reads: bool = True) -> ToolError:
    """The error class for an exception that a tool let through: classes of the standard library only.

    What a tool that changes the world lets through says nothing about whether it landed, not even that a connection was
    refused: it may have been the second one.
    """
    if isinstance(error, ToolError):
        return error
    message = safe_message(error)
    if not reads:
        return InDoubt(message)
    if isinstance(error, TimeoutError):
        return TimedOut(message)
    if isinstance(error, ConnectionError):
        return Unavailable(message)
    if isinstance(error, PermissionError):
        return Forbidden(message)
    if isinstance(error, FileNotFoundError):
        return NotFound(message)
    return Permanent(message)


WHERE_LOGGED = "(logger interlock; a command shows it with --verbose)"


def safe_message(error: BaseException) -> str:
    """What may be said of an exception to whoever made the call: our own sentences, and of others the class alone.

    What others say was written for nobody in particular: it quotes paths, addresses, queries, keys.
    """
    if isinstance(error, InterlockError):
        return str(error)
    return f"it raised {type(error).__name__}, whose traceback is in the log {WHERE_LOGGED}"
