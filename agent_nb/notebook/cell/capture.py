"""Capture the output of code that a tool runs on the main thread, and of tqdm bars in any tool.

Why: the output of code that a model runs belongs in the card of its call, not below it, and its
traceback must not fail the cell. Only output in a job's own context is captured.

Rules
- The data of figures and charts are read while they are formatted, because `plt.show()` closes a
  figure after displaying it.
- A hook that other code has wrapped cannot be removed: it stays, and passes everything through.
"""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...tools import CallDisplays, Outcome, OutputCapture
from .publish import is_publishing

TQDM = ("tqdm.notebook", "TqdmHBox")  # module and class of the widget of a bar
_runs_with_bars = 0  # runs that are within `show_in_cards` now
_current: contextvars.ContextVar[Capture | None] = contextvars.ContextVar(
    "agent_nb_capture", default=None
)


class Capture:
    """The output of one job, while it is `open`.

    `displays` receives what the job shows. `value`: the value of the last expression whose value
    was not None; None: no such expression ran.
    """

    def __init__(self, shell: Any, displays: CallDisplays) -> None:
        self.value: Any = None
        self.open = True
        self._displays = displays
        self._shell = shell

    def show(self, value: Any) -> None:
        """Keep the value of an expression; called in place of `sys.displayhook`."""
        if value is not None:
            self.value = value

    def outcome(self, code: str) -> Outcome:
        """Return the value as text, JSON or a mime bundle, bounded, and all that was shown.

        A semicolon at the end of `code` keeps the value from being shown, as in any cell.
        """
        data: dict[str, Any] = {}
        quiet = self._shell.displayhook.semicolon_at_end_of_expression(code)
        # formatting may display a value, so after a semicolon only a figure is formatted: its
        # picture is shown anyway
        if self.value is not None and not (quiet and not hasattr(type(self.value), "savefig")):
            data, _ = self._shell.display_formatter.format(self.value)
        return self._displays.convert_value(self.value, data, quiet=quiet)


def _open_capture() -> Capture | None:
    """Return the open capture of the running context; a task may outlive its job's capture."""
    capture = _current.get()
    return capture if capture is not None and capture.open else None


def is_capturing() -> bool:
    """Return whether the output of the running context is captured for a tool."""
    return _open_capture() is not None


@contextmanager
def capture_job(
    shell: Any, on_text: Callable[[str], None], after: Callable[[], None], displays: CallDisplays
) -> Iterator[Capture]:
    """Until the `with` block ends, capture what this context's code shows on this thread.

    `on_text` receives printed text and `after` is called behind it; `displays` receives displays.
    """

    def write(text: str) -> None:
        on_text(text)
        after()

    capture = Capture(shell, displays)
    streams = sys.stdout, sys.stderr  # the code may leave others, which would hide later prints
    token = _current.set(capture)
    hook_displays(shell)
    # IPython sets its own display hook on the first entry only: ours goes above it.
    with OutputCapture(write, displays=displays), shell.display_trap:
        replace = OutputCapture.replace_attribute
        undo = [
            replace(sys, "displayhook", _wrap_displayhook(sys.displayhook)),
            replace(shell, "ask_exit", sys.exit),  # `exit()` ends the code, not the user's kernel
            # what `set_next_input` would have the front end write into the notebook
            replace(shell.payload_manager, "write_payload", lambda *_, **__: None),
            # Replacing `_showtraceback` alone would do; `showtraceback` saves 0.1 s of formatting.
            replace(shell, "showtraceback", _wrap_showtraceback(shell.showtraceback)),
            replace(shell, "_showtraceback", _wrap_showtraceback(shell._showtraceback)),  # noqa: SLF001  (what syntax errors go through)
        ]
        try:
            yield capture
        finally:
            capture.open = False
            sys.stdout, sys.stderr = streams
            _current.reset(token)
            for restore in reversed(undo):
                restore()


def hook_displays(shell: Any) -> None:
    """From now on, pass what a tool displays to its call; in a terminal formatted values alone."""
    OutputCapture.hook(shell.display_formatter, "format", _wrap_format)
    if hasattr(shell, "kernel"):
        OutputCapture.hook(shell.display_pub, "publish", _wrap_publish)
        OutputCapture.hook(shell.display_pub, "clear_output", _wrap_clear_output)


@contextmanager
def show_in_cards(shell: Any) -> Iterator[None]:
    """Within the context, show what a tool displays, and its tqdm bars, on the card of its call."""
    global _runs_with_bars  # noqa: PLW0603  (runs overlap: the last one to end removes the formatter)
    formatter = shell.display_formatter.ipython_display_formatter
    _runs_with_bars += 1
    hook_displays(shell)
    formatter.for_type_by_name(*TQDM, lambda box: _show_bar(box, shell))
    try:
        yield
    finally:
        _runs_with_bars -= 1
        if not _runs_with_bars:
            formatter.pop(".".join(TQDM), None)


def _show_bar(box: Any, shell: Any) -> None:
    """Report updates of the bar in `box` to the tool that runs here; without one, display it."""

    def report(*_: Any) -> bool:
        """Write the bar as text to the stderr of the tool; return whether a tool runs here."""
        if (capture := OutputCapture.current()) is None:
            return False
        capture.err(f"\r{box!r}")
        return True

    if report():
        # the label right of the bar changes with every update, so observing it is enough
        box.children[-1].observe(report, "value")
    else:
        shell.display_pub.publish(data=box._repr_mimebundle_())


def _wrap_displayhook(original: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a display hook that passes values to the open capture, if there is one."""

    def show(value: Any) -> None:
        capture = _open_capture()
        (original if capture is None else capture.show)(value)

    return show


def _current_displays() -> Any:
    """Return the `CallDisplays` that receive the displays of this context.

    None stands for code outside tools, and for this package's own displays (`publish_display`).
    """
    capture = OutputCapture.current()
    return None if capture is None or is_publishing() else capture.displays


def _wrap_format(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `format` that, inside a tool, keeps charts as JSON and the data of figures."""

    def format_value(value: Any, *args: Any, **options: Any) -> Any:
        formatted = original(value, *args, **options)
        displays = _current_displays()
        if displays is None or not isinstance(formatted, tuple) or not formatted:
            return formatted
        return (displays.format_value(value, formatted[0]), *formatted[1:])

    return format_value


def _wrap_showtraceback(original: Callable[..., None]) -> Callable[..., None]:
    """Return a `showtraceback` that shows nothing while a capture is open."""

    def show(*args: Any, **options: Any) -> None:
        if _open_capture() is None:
            original(*args, **options)

    return show


def _wrap_publish(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `publish` that gives a tool's displays to its call."""

    def publish(data: Any, *args: Any, **options: Any) -> Any:
        displays = _current_displays()
        if displays is not None and isinstance(data, dict):
            display_id = str((options.get("transient") or {}).get("display_id") or "")
            data = displays.keep(data, display_id, update=bool(options.get("update")))
            if data is None:  # only the card of the call shows it
                return None
        return original(data, *args, **options)

    return publish


def _wrap_clear_output(original: Callable[..., None]) -> Callable[..., None]:
    """Return a `clear_output` that, inside a tool, drops what the tool displayed."""

    def clear(*args: Any, **options: Any) -> None:
        displays = _current_displays()
        if displays is None:
            original(*args, **options)
        else:
            displays.clear()

    return clear
