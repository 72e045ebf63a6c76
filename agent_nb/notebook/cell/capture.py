"""Capture the output of code that a tool runs on the main thread, and of tqdm bars in any tool.

Why: code that a model runs in the user's namespace must not scatter its output below the card, and
its traceback must not turn the cell red. Printed text becomes the tool's progress; the value of the
last expression and errors become its result.

Rules
- Only output of the context of the job (the run of the tool's code) is captured: a context variable
  marks it. Other tasks and threads write as before.
- Pictures (figures, images, displays with a PNG or JPEG) belong to the call: they stand in its
  card, not below it. Other explicit displays stay in the cell's output, redacted; the tool receives
  their plain text. In a terminal a display is printed, and so captured as text.
- A picture of an interactive display (HTML, a widget, a chart) goes to the call, and the display
  stays in the cell too.
- The data of a figure are taken when it is formatted: `plt.show()` displays it and closes it.
- `clear_output` of captured code forgets its pictures; it does not clear the card.
- Every hook is restored when the job ends, unless other code has replaced it meanwhile; then the
  hook left behind passes everything through.
- A bar of `tqdm.notebook` (`tqdm.auto` in a kernel) is a widget. Inside a tool it is not displayed;
  each update reaches the tool as the line that the text bar would draw.
"""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...tools import (
    Figures,
    Outcome,
    OutputCapture,
    convert_formatted,
)
from .publish import is_publishing

WIDGET = "application/vnd.jupyter.widget-view+json"
# displays that are more than their picture
INTERACTIVE = frozenset({WIDGET, "text/html", "application/javascript"})
TQDM = ("tqdm.notebook", "TqdmHBox")  # module and class of the widget of a bar
_users = 0  # runs that show the progress of bars now
_current: contextvars.ContextVar[Capture | None] = contextvars.ContextVar(
    "agent_nb_capture", default=None
)


class Capture:
    """The output of one job, while it is `open`.

    `on_text` receives text at once, `figures` the pictures; `value` is that of the last expression.
    """

    def __init__(self, shell: Any, on_text: Callable[[str], None], figures: Figures) -> None:
        self.on_text = on_text
        self.value: Any = None
        self.figures = figures
        self.open = True
        self._shell = shell

    def show(self, value: Any) -> None:
        """Keep the value of an expression; stands in for `sys.displayhook`."""
        if value is not None:
            self.value = value

    def outcome(self) -> Outcome:
        """Return the value as text, JSON or a mime bundle, bounded, and all pictures.

        A widget is also displayed in the cell.
        """
        data: dict[str, Any] = {}
        if self.value is not None:
            data, metadata = self._shell.display_formatter.format(self.value)
            if WIDGET in data:
                self._shell.display_pub.publish(data=data, metadata=metadata)
        return convert_formatted(self.value, data, self.figures)

    def show_picture(self, data: dict[str, Any], key: str, *, update: bool) -> bool:
        """Keep the picture of a mime bundle; return whether it belongs to the call.

        `key`: the id of its display. An update of a display that is not the call's is not kept.
        """
        picture = self.figures.find_picture(data)
        if picture is None or (update and not self.figures.has(key)):
            return False
        text = self.figures.add(picture, key)
        if not update:
            self.on_text(f"{text}\n")
        return True


def _active() -> Capture | None:
    """Return the open capture of the running context; a task may outlive its job's capture."""
    capture = _current.get()
    return capture if capture is not None and capture.open else None


def is_capturing() -> bool:
    """Return whether the output of the running context is captured for a tool."""
    return _active() is not None


@contextmanager
def capture_job(
    shell: Any,
    on_text: Callable[[str], None],
    after: Callable[[], None],
    clean: Callable[[Any], Any] = lambda data: data,
    figures: Figures | None = None,
) -> Iterator[Capture]:
    """Capture the output of the current context's code on this thread.

    `on_text` receives printed text, `figures` the pictures. `after` is called after each write;
    `clean` removes secrets from displayed mime bundles.
    """

    def write(text: str) -> None:
        on_text(text)
        after()

    capture = Capture(shell, on_text, Figures() if figures is None else figures)
    formatter = shell.display_formatter
    token = _current.set(capture)
    # IPython sets its own display hook on the first entry only: ours goes above it.
    with OutputCapture(write), shell.display_trap:
        replace = OutputCapture.replace_attribute
        undo = [
            replace(sys, "displayhook", _wrap_displayhook(sys.displayhook)),
            replace(formatter, "format", _wrap_format(formatter.format)),
            # Both; the first saves IPython a tenth of a second of formatting what is not shown.
            replace(shell, "showtraceback", _wrap_showtraceback(shell.showtraceback)),
            replace(shell, "_showtraceback", _wrap_showtraceback(shell._showtraceback)),  # noqa: SLF001  (what syntax errors go through)
        ]
        if hasattr(shell, "kernel"):
            publisher = shell.display_pub
            undo += [
                replace(publisher, "publish", _wrap_publish(publisher.publish, clean)),
                replace(publisher, "clear_output", _wrap_clear_output(publisher.clear_output)),
            ]
        try:
            yield capture
        finally:
            capture.open = False
            _current.reset(token)
            for put_back in reversed(undo):
                put_back()


@contextmanager
def show_progress_bars(shell: Any) -> Iterator[None]:
    """Show the progress of tqdm bars inside tools on the cards of these, within the context."""
    global _users  # noqa: PLW0603  (runs overlap: the last one to end removes the formatter)
    formatter = shell.display_formatter.ipython_display_formatter
    _users += 1
    formatter.for_type_by_name(*TQDM, lambda box: _show_bar(box, shell))
    try:
        yield
    finally:
        _users -= 1
        if not _users:
            formatter.pop(".".join(TQDM), None)


def _show_bar(box: Any, shell: Any) -> None:
    """Report updates of the bar in `box` to the tool of this context; without a tool display it."""

    def report(*_: Any) -> bool:
        if (capture := OutputCapture.current()) is None:
            return False
        capture.err(f"\r{box!r}")
        return True

    if report():
        # the figures right of the bar change with every update
        box.children[-1].observe(report, "value")
    else:
        shell.display_pub.publish(data=box._repr_mimebundle_())


def _wrap_displayhook(original: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a display hook that gives values to the open capture."""

    def show(value: Any) -> None:
        capture = _active()
        (original if capture is None else capture.show)(value)

    return show


def _wrap_format(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `format` that keeps the data of figures for the open capture."""

    def format_value(value: Any, *args: Any, **options: Any) -> Any:
        formatted = original(value, *args, **options)
        capture = _active()
        if capture is not None and formatted:
            capture.figures.note_figure(value, formatted[0])
        return formatted

    return format_value


def _wrap_showtraceback(original: Callable[..., None]) -> Callable[..., None]:
    """Return a `showtraceback` that shows nothing while a capture is open."""

    def show(*args: Any, **options: Any) -> None:
        if _active() is None:
            original(*args, **options)

    return show


def _wrap_publish(original: Callable[..., Any], clean: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a `publish` that gives the open capture what is displayed, cleaned.

    A picture that is not interactive is displayed on the card only.
    """

    def publish(data: Any, *args: Any, **options: Any) -> Any:
        capture = _active()
        if capture is not None and isinstance(data, dict) and not is_publishing():
            (data, text), update = Figures.read_display(data, clean), bool(options.get("update"))
            key = str((options.get("transient") or {}).get("display_id") or "")
            if capture.show_picture(data, key, update=update):
                if not data.keys() & INTERACTIVE and not any(map(_is_chart, data)):
                    return None
            elif not update:
                capture.on_text(text)
        return original(data, *args, **options)

    return publish


def _is_chart(mime: str) -> bool:
    return str(mime).startswith("application/vnd.")


def _wrap_clear_output(original: Callable[..., None]) -> Callable[..., None]:
    """Return a `clear_output` that forgets the pictures of the open capture instead."""

    def clear(*args: Any, **options: Any) -> None:
        capture = _active()
        if capture is None:
            original(*args, **options)
        else:
            capture.figures.clear()

    return clear
