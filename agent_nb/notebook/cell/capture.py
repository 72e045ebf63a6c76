"""Capture the output of code that a tool runs on the main thread, and of tqdm bars in any tool.

Why: the output of code that a model runs belongs into the card of its call, not below it, and its
traceback must not fail the cell. Printed text becomes the tool's progress; the value of the last
expression and errors become its result.

Rules
- A job is one run of a tool's code. Only output in its context is captured: a context variable
  marks it. Other tasks and threads write as before.
- Pictures (figures, images, displays with a PNG or JPEG) belong to the call: they stand in its
  card, not below it. Other explicit displays stay in the cell's output, redacted; the tool receives
  their plain text. In a terminal a display is printed, and so captured as text.
- The picture of an interactive display (HTML, a widget, a chart) belongs to the call, and the
  display stays in the cell too.
- The data of a figure are kept when it is formatted: `plt.show()` displays it and closes it.
- `clear_output` of captured code forgets its pictures; it does not clear the card.
- Every hook is restored when the job ends, unless other code has replaced it meanwhile; then the
  hook stays in the chain and passes everything through.
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
_runs_with_bars = 0  # runs within `show_progress_bars` now
_current: contextvars.ContextVar[Capture | None] = contextvars.ContextVar(
    "agent_nb_capture", default=None
)


class Capture:
    """The output of one job, while it is `open`.

    `on_text` receives text at once, `figures` the pictures. `value`: that of the last expression
    which was not None.
    """

    def __init__(self, shell: Any, on_text: Callable[[str], None], figures: Figures) -> None:
        self.on_text = on_text
        self.value: Any = None
        self.figures = figures
        self.open = True
        self._shell = shell

    def show(self, value: Any) -> None:
        """Keep the value of an expression; called in place of `sys.displayhook`."""
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

    def show_picture(self, data: dict[str, Any], display_id: str, *, update: bool) -> bool:
        """Keep the picture of a mime bundle for the call; return whether there is one.

        `update`: the display with this id shows another picture; only one of the call is kept.
        """
        picture = self.figures.find_picture(data)
        if picture is None or (update and not self.figures.has(display_id)):
            return False
        name = self.figures.add(picture, display_id)
        if not update:
            self.on_text(f"{name}\n")
        return True


def _open_capture() -> Capture | None:
    """Return the open capture of the running context; a task may outlive its job's capture."""
    capture = _current.get()
    return capture if capture is not None and capture.open else None


def is_capturing() -> bool:
    """Return whether the output of the running context is captured for a tool."""
    return _open_capture() is not None


@contextmanager
def capture_job(
    shell: Any,
    on_text: Callable[[str], None],
    after: Callable[[], None],
    clean: Callable[[Any], Any] = lambda data: data,
    figures: Figures | None = None,
) -> Iterator[Capture]:
    """Capture the output of the current context's code on this thread, within the context.

    `on_text` receives printed text, `figures` the pictures. `after` is called after each write.
    `clean` returns a displayed mime bundle without secrets.
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
            # The second alone would do; the first saves a tenth of a second of formatting.
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
    """Within the context, show the progress of a tqdm bar inside a tool on the card of its call."""
    global _runs_with_bars  # noqa: PLW0603  (runs overlap: the last one to end removes the formatter)
    formatter = shell.display_formatter.ipython_display_formatter
    _runs_with_bars += 1
    formatter.for_type_by_name(*TQDM, lambda box: _show_bar(box, shell))
    try:
        yield
    finally:
        _runs_with_bars -= 1
        if not _runs_with_bars:
            formatter.pop(".".join(TQDM), None)


def _show_bar(box: Any, shell: Any) -> None:
    """Report updates of the bar in `box` to the tool of this context; without a tool display it."""

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


def _wrap_format(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `format` that keeps the data of figures for the open capture."""

    def format_value(value: Any, *args: Any, **options: Any) -> Any:
        formatted = original(value, *args, **options)
        capture = _open_capture()
        if capture is not None and formatted:
            capture.figures.note_figure(value, formatted[0])
        return formatted

    return format_value


def _wrap_showtraceback(original: Callable[..., None]) -> Callable[..., None]:
    """Return a `showtraceback` that shows nothing while a capture is open."""

    def show(*args: Any, **options: Any) -> None:
        if _open_capture() is None:
            original(*args, **options)

    return show


def _wrap_publish(original: Callable[..., Any], clean: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a `publish` that gives the open capture what is displayed, cleaned.

    A picture that is not interactive is displayed on the card only.
    """

    def publish(data: Any, *args: Any, **options: Any) -> Any:
        capture = _open_capture()
        if capture is not None and isinstance(data, dict) and not is_publishing():
            (data, text), update = Figures.read_display(data, clean), bool(options.get("update"))
            display_id = str((options.get("transient") or {}).get("display_id") or "")
            if capture.show_picture(data, display_id, update=update):
                if not data.keys() & INTERACTIVE and not any(map(_is_chart, data)):
                    return None
            elif not update:
                capture.on_text(text)
        return original(data, *args, **options)

    return publish


def _is_chart(mime: str) -> bool:
    """Return whether a MIME type is a vendor's own, as those of Plotly and Vega are."""
    return str(mime).startswith("application/vnd.")


def _wrap_clear_output(original: Callable[..., None]) -> Callable[..., None]:
    """Return a `clear_output` that forgets the pictures of the open capture instead."""

    def clear(*args: Any, **options: Any) -> None:
        capture = _open_capture()
        if capture is None:
            original(*args, **options)
        else:
            capture.figures.clear()

    return clear
