"""What a main-thread job prints, shows and raises, taken from the shell for the time of the job;
and the bars of tqdm in any tool.

Why: code that a model runs in the user's namespace must not scatter its output below our card, and
its traceback must not turn the cell red. Text goes to the tool as progress; the value of the last
expression and errors become its result.

Rules
- Only output of the job's own context is taken (a context variable says which); other tasks and
  threads write as before.
- What is displayed on purpose (`display()`, figures, widgets) stays in the cell's output, without
  secrets; its plain text is told to the tool.
- Everything is put back when the job ends, unless somebody has replaced it meanwhile: then it is
  theirs, and what we leave behind passes everything through.
- In a terminal a display is printed, and so taken as text anyway.
- A bar of `tqdm.notebook` (which `tqdm.auto` is in a kernel) is a widget; inside a tool it is not
  displayed, and each of its moves is told to the tool as the line that the text form would draw.
  Outside of tools it is displayed as ever.
"""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...tools.capture import captured, replace_attribute, say
from ...tools.display import bundle, without_hidden
from .publish import ours

WIDGET = "application/vnd.jupyter.widget-view+json"
TQDM = ("tqdm.notebook", "TqdmHBox")
_users = 0
_current: contextvars.ContextVar[Capture | None] = contextvars.ContextVar(
    "agent_nb_capture", default=None
)


class Capture:
    """The output of one job: `on_text` gets text at once, `value` is the last expression's value
    (None: there was none).
    """

    def __init__(self, shell: Any, on_text: Callable[[str], None]) -> None:
        self.on_text = on_text
        self.value: Any = None
        self.open = True
        self._shell = shell

    def show(self, value: Any) -> None:
        """Take the value of an expression, as `sys.displayhook` would."""
        if value is not None:
            self.value = value

    def bundle(self) -> dict[str, Any]:
        """Return the value as a bounded mime bundle ({} when there is none). A widget is also
        displayed in the cell.
        """
        if self.value is None:
            return {}
        data, metadata = self._shell.display_formatter.format(self.value)
        if WIDGET in data:
            self._shell.display_pub.publish(data=data, metadata=metadata)
        return bundle(data)


def _active() -> Capture | None:
    """Return the capture that the running context belongs to, unless it is over (a task that
    outlived its job).
    """
    capture = _current.get()
    return capture if capture is not None and capture.open else None


def active() -> bool:
    """Return whether what the running context shows is taken for a tool."""
    return _active() is not None


@contextmanager
def capturing(
    shell: Any,
    on_text: Callable[[str], None],
    after: Callable[[], None],
    clean: Callable[[Any], Any] = lambda data: data,
) -> Iterator[Capture]:
    """Capture the output of the current context's code on this thread.

    `after` is called after each write; `clean` takes the secrets out of a mime bundle that is
    displayed.
    """

    def write(text: str) -> None:
        on_text(text)
        after()

    capture = Capture(shell, on_text)
    token = _current.set(capture)
    # IPython sets its own display hook on the first entry only: ours is put above it.
    with captured(write), shell.display_trap:
        undo = [
            replace_attribute(sys, "displayhook", _displayhook(sys.displayhook)),
            # Both: the first, so that IPython does not take a tenth of a second to format what is
            # not shown.
            replace_attribute(shell, "showtraceback", _silent(shell.showtraceback)),
            replace_attribute(shell, "_showtraceback", _silent(shell._showtraceback)),  # noqa: SLF001  (what syntax errors go through)
        ]
        if hasattr(shell, "kernel"):
            undo.append(
                replace_attribute(
                    shell.display_pub, "publish", _telling(shell.display_pub.publish, clean)
                )
            )
        try:
            yield capture
        finally:
            capture.open = False
            _current.reset(token)
            for put_back in reversed(undo):
                put_back()


@contextmanager
def bars(shell: Any) -> Iterator[None]:
    """Have the bars that tqdm displays inside tools moved in their cards."""
    global _users  # noqa: PLW0603  (runs overlap, the formatter is one)
    formatter = shell.display_formatter.ipython_display_formatter
    _users += 1
    formatter.for_type_by_name(*TQDM, lambda box: _follow(box, shell))
    try:
        yield
    finally:
        _users -= 1
        if not _users:
            formatter.pop(".".join(TQDM), None)


def _follow(box: Any, shell: Any) -> None:
    """Tell the tool of this context how far the bar in `box` is, now and whenever it moves; without
    a tool display it.
    """

    def tell(*_: Any) -> bool:
        return say(f"\r{box!r}")

    if tell():
        # the figures right of the bar change with every move
        box.children[-1].observe(tell, "value")
    else:
        shell.display_pub.publish(data=box._repr_mimebundle_())


def _displayhook(original: Callable[[Any], None]) -> Callable[[Any], None]:
    def show(value: Any) -> None:
        capture = _active()
        (original if capture is None else capture.show)(value)

    return show


def _silent(original: Callable[..., None]) -> Callable[..., None]:
    def show(*args: Any, **options: Any) -> None:
        if _active() is None:
            original(*args, **options)

    return show


def _telling(original: Callable[..., Any], clean: Callable[[Any], Any]) -> Callable[..., Any]:
    def publish(data: Any, *args: Any, **options: Any) -> Any:
        capture = _active()
        if capture is not None and isinstance(data, dict) and not ours():
            data = clean(without_hidden(data))
            if not options.get("update"):
                capture.on_text(f"{data.get('text/plain', '[shown in the cell]')}\n")
        return original(data, *args, **options)

    return publish
