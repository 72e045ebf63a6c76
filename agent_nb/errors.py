"""The package's own errors, as one hierarchy, and the wording of unknown names.

    AgentError
    ├── UsageError       a wrong option, name, value or missing extra; the message says what to do
    │   ├── MissingExtra   an optional package is not installed; carries the install command
    │   ├── PluginError    a plug-in of another package cannot be used; names the package
    │   ├── NotReplayed    a run has no record here; carries how it differs from the newest one
    │   └── NotAllowed     a run needs what the notebook's folder offers and the user has not
    │                      allowed it; carries the offer
    ├── WireError        bytes or text that break a protocol (position and raw text kept)
    ├── ModelError       the provider refused, failed or broke off (status, retryable, retry_after)
    ├── ToolError        a tool failed in a way the model should read
    ├── HubAway          the store through which processes share their runs does not answer
    ├── RunFailed        a run ended with status `error` (the run, with all its events)
    └── Cancelled        the run was stopped (reason: user, timeout or limit)

    KeyboardInterrupt, asyncio.CancelledError
    └── AgentStopped     the run that a cell waited for was stopped (by, run)

Rule: a message is one or two sentences, says what was wrong and then what to do, and contains no
secret.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterable, Sequence
from typing import Any


class AgentError(Exception):
    """Root of this package's errors, except `AgentStopped`."""


class UsageError(AgentError):
    """The caller asked for something impossible; the message says what to change."""


class MissingExtra(UsageError):  # noqa: N818  (the name says what is missing, as ModuleNotFoundError's users expect)
    """An optional package is absent.

    `what` is the feature, `install` the exact command that provides it.
    """

    def __init__(self, what: str, install: str) -> None:
        super().__init__(f"{what} is not installed. Install it with: {install}")
        self.what, self.install = what, install

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make it again, in a worker's parent process."""
        return type(self), (self.what, self.install)


class PluginError(UsageError):
    """A plug-in that another package installed cannot be used."""


class NotReplayed(UsageError):  # noqa: N818  (it names what did not happen)
    """A run has no record, and only recorded runs may be played.

    `differences` are lines that say how the run differs from the newest record.
    """

    def __init__(self, message: str, differences: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.differences = tuple(differences)


class NotAllowed(UsageError):  # noqa: N818  (it names what the user did not do)
    """A run needs what the notebook's folder offers, and the user has not allowed it.

    `offer` is a `host.trust.Offer`.
    """

    def __init__(self, message: str, offer: object) -> None:
        super().__init__(message)
        self.offer = offer

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make it again, in a worker's parent process."""
        return type(self), (str(self), self.offer)


class WireError(AgentError):
    """Bytes or text that break their protocol, at `position` (from 0) of `raw`."""

    def __init__(self, message: str, *, raw: str = "", position: int = 0) -> None:
        super().__init__(message)
        self.raw = raw
        self.position = position


class ModelError(AgentError):
    """The model's provider refused, failed or broke off.

    - `status`: the HTTP status, 0 without one
    - `retryable`: whether the same request may succeed later
    - `retry_after`: the seconds that the server asked to wait; None if it named none
    - `code`: the kind of fault for the event log, stable between versions
    - `raw`: the server's reply
    - `context`: the most tokens that the model takes, if the request was longer and the server says
      so (0: unknown)
    - `brief`: what happened in a few words; by default the first sentence of the message
    - `shared`: the endpoint refused other requests at the same time; such a failure does not count
      as an attempt of the request
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        retryable: bool = False,
        retry_after: float | None = None,
        code: str = "provider",
        raw: str = "",
        context: int = 0,
        brief: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.code = code
        self.raw = raw
        self.context = context
        self.brief = brief or message.partition(". ")[0].rstrip(".")
        self.shared = False

    def final(self) -> ModelError:
        """Mark the error as not retryable, because part of the answer was used, and return it."""
        self.retryable = False
        return self

    def advise(self, advice: str) -> None:
        """Append a sentence to the message: what the user can do."""
        self.args = (f"{str(self).rstrip()} {advice}",)


class ToolError(AgentError):
    """Raise it in a tool to give the model a message without a traceback."""


class HubAway(AgentError):  # noqa: N818  (it names what happened, as TimeoutError's users expect)
    """The store of a hub does not answer now; it may later."""


class RunFailed(AgentError):  # noqa: N818  (it names what failed)
    """A run ended with status `error`; `run` is that run, None if the error was pickled."""

    def __init__(self, message: str, run: Any = None) -> None:
        super().__init__(message)
        self.run = run

    def __reduce__(self) -> tuple[type[RunFailed], tuple[str]]:
        return type(self), (str(self),)


class Cancelled(AgentError):  # noqa: N818  (a request that was honoured, not a fault)
    """The run was stopped; `reason` is one of `user`, `timeout`, `limit`."""

    def __init__(self, reason: str = "user", detail: str = "") -> None:
        super().__init__(detail or f"stopped ({reason})")
        self.reason = reason
        self.detail = detail


class AgentStopped(CancelledError, KeyboardInterrupt):  # noqa: N818  (as KeyboardInterrupt)
    """The run that a notebook cell waited for was stopped by a person.

    Raised after its cards, record and conversation are finished. `by` says how (`kernel interrupt`,
    `stop button`, …), `run` is the run or None.

    As a KeyboardInterrupt, it makes IPython fail the cell and drop the cells queued behind it. As a
    CancelledError, it does not end the kernel: asyncio re-raises any other KeyboardInterrupt of a
    task in the event loop.
    """

    def __init__(self, by: str = "kernel interrupt", run: Any = None) -> None:
        super().__init__(by, run)
        self.by = by
        self.run = run

    def __str__(self) -> str:
        return f"stopped ({self.by}); what is queued behind this cell does not run"

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows instead of a traceback."""
        return [f"agent: {self}"]


def did_you_mean(
    name: str,
    known: Iterable[str],
    most: int = 1,
    *,
    cutoff: float = 0.6,
    written: Callable[[str], str] = str,
) -> str:
    """Return " Did you mean A or B?" with up to `most` names close to `name`, "" if none is close.

    `cutoff` is difflib's similarity, 0 to 1, in any case; `written` formats a name, such as `repr`.
    """
    import difflib

    forms = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), forms, most, cutoff)
    return f" Did you mean {' or '.join(written(forms[form]) for form in close)}?" if close else ""


def unknown_name(
    what: str, name: object, known: Iterable[str], *, hint: str = "", label: str = "Known"
) -> str:
    """Return the message for an unknown name: the name, an optional hint and the known names.

    `what` is the kind of thing ("framing", "limit named"), `hint` the text of `did_you_mean`.
    """
    return f"There is no {what} {name!r}.{hint} {label}: {', '.join(known) or 'none'}."
