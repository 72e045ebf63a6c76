"""Send mime bundles to the front end, and keep the marks of our records from being forged.

Why not IPython's display objects: they open a file if a text equals its name, so text of models and
tools must never reach them.

Rule: only `publish_display` shows records. From everything else that a guarded shell displays, the
mime type of records and our key in metadata are removed, so that no tool can forge a run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ..runner_options import RunnerOptions

_publishing: ContextVar[bool] = ContextVar("agent_nb_publishing", default=False)


def publish_display(
    data: dict[str, Any], metadata: dict[str, Any], transient: dict[str, Any], update: bool
) -> None:
    """Show `data` in the running cell; `update` replaces the display `transient["display_id"]`."""
    from IPython.display import publish_display_data

    token = _publishing.set(True)
    try:
        publish_display_data(data, metadata, transient=transient, update=update)
    finally:
        _publishing.reset(token)


def reply_numbers(shell: Any, options: RunnerOptions, numbers: dict[str, Any]) -> bool:
    """Send the numbers of a run with the reply to the cell's request, for our runner in a test.

    Return False if the kernel or the runner does not support this; then a display must carry the
    numbers. Why not always a display: it is one more message, which waits for all that was printed.
    """
    from ...record import METADATA_KEY

    zmqshell = sys.modules.get("ipykernel.zmqshell")  # other kernels may drop payloads
    if (
        zmqshell is None
        or not isinstance(shell, zmqshell.ZMQInteractiveShell)
        or not (options.get("replies") is True and options.get("unshown") is True)
    ):
        return False
    # single=False keeps the numbers of other runs in this reply
    shell.payload_manager.write_payload({"source": METADATA_KEY, "numbers": numbers}, single=False)
    return True


def is_publishing() -> bool:
    """Return whether the running display call comes from `publish_display`."""
    return _publishing.get()


def is_captured() -> bool:
    """Return whether `%%capture` takes all displays, ours too, and runs its cell as one inside."""
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.getipython import get_ipython

    return isinstance(getattr(get_ipython(), "display_pub", None), CapturingDisplayPublisher)


class _Guarded:
    """Replaces a method of a shell through which displays pass; `original` is that method.

    `is_own`: other code has put the original on the instance itself.
    """

    def __init__(self, original: Callable[..., Any], is_own: bool) -> None:
        self.original, self.is_own = original, is_own

    def __call__(self, data: Any, metadata: Any = None, *args: Any, **options: Any) -> Any:
        from ...record import METADATA_KEY, RECORD_MIME

        if not is_publishing():
            data, metadata = _without_key(data, RECORD_MIME), _without_key(metadata, METADATA_KEY)
        return self.original(data, metadata, *args, **options)


def guard_displays(shell: Any) -> None:
    """Remove our marks from all displays of a shell but ours; guarding twice changes nothing.

    What other code has wrapped around the guard is guarded again: it may show more than it gets.
    """
    for owner, method in _list_display_methods(shell):
        if not isinstance(vars(owner).get(method), _Guarded):
            setattr(owner, method, _Guarded(getattr(owner, method), method in vars(owner)))


def unguard_displays(shell: Any) -> None:
    """Remove the guard from each method, unless other code has wrapped it: then it stays below."""
    for owner, method in _list_display_methods(shell):
        guard = vars(owner).get(method)
        if not isinstance(guard, _Guarded):
            continue
        if guard.is_own:
            setattr(owner, method, guard.original)
        else:
            delattr(owner, method)


def _list_display_methods(shell: Any) -> list[tuple[Any, str]]:
    """Return the methods that receive displays and the values of cells, each with its owner."""
    methods = (("display_pub", "publish"), ("displayhook", "write_format_data"))
    return [(getattr(shell, owner), method) for owner, method in methods if hasattr(shell, owner)]


def _without_key(bundle: Any, key: str) -> Any:
    if isinstance(bundle, dict) and key in bundle:
        return {k: v for k, v in bundle.items() if k != key}
    return bundle
