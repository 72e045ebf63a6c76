"""A run as users see it: the log of one prompt, with properties and views derived from it.

Live, replayed, loaded and imported runs offer the same properties.

Rule: everything is computed from the log on access, which may be partial or empty.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import RunFailed
from ..events import Counts, End, Error, EventLog, Interrupt, Metric, User, answer_text
from ..wire import Unpicklable
from .typed import typed_answer
from .typed.output_type import OutputType

if TYPE_CHECKING:
    import pandas as pd

    from ..view import Timeline


class Run(Unpicklable):
    """One run of an agent: prompt, answer, status, usage and every event.

    `cell`, `notebook`: the id of the cell and the path of the notebook that hold its record, "" if
    unknown. `seen` returns whether the running cell shows the run already; the run then displays
    itself as one line. `output`: the type of the answer, if known; the attribute `type` holds it.
    """

    _instead = "Send its events: run.log.to_ndjson(), or the file of run.save(path)."

    def __init__(
        self,
        log: EventLog,
        *,
        cell: str = "",
        notebook: str = "",
        seen: Callable[[], bool] = lambda: False,
        output: OutputType | None = None,
    ) -> None:
        self.log: EventLog = log
        self.cell = cell
        self.notebook = notebook
        self.seen = seen
        self.type = output

    @property
    def id(self) -> str:
        """The run's id."""
        return self.log.run

    @property
    def events(self) -> EventLog:
        """The whole event log, a sequence."""
        return self.log

    @property
    def prompt(self) -> str:
        """The first message of the user."""
        return next((e.content for e in self.log if isinstance(e, User)), "")

    @property
    def answer(self) -> str:
        """The answer: the text of the last turn that answered, "" for none (see `events.text`)."""
        return answer_text(self.log)

    @property
    def output(self) -> Any:
        """The typed answer: a value of the type, or plain JSON where the type is not known.

        None for a run without a type, or without a valid answer yet. Raises UsageError if the type
        no longer takes the recorded answer.
        """
        return typed_answer.convert_answer(self.log, self.type)

    def output_as(self, kind: Any) -> Any:
        """Return the answer as a value of the type `kind`, also of a loaded record.

        Raises UsageError if the run has no typed answer, or the answer does not fit the type.
        """
        return typed_answer.output_as(self.log, kind)

    def output_frame(self) -> pd.DataFrame:
        """Return the typed answer as a frame: one row per object of a list, or one row.

        Values that are not objects are a column `value`. Raises UsageError without a typed answer.
        """
        return typed_answer.make_frame(self.log)

    @property
    def status(self) -> str:
        """`ok`, `error`, `interrupted`, `limit`, `awaiting`, or `running` until the run ends."""
        last = self.log[-1] if len(self.log) else None
        return last.status if isinstance(last, End) else "running"

    @property
    def usage(self) -> Counts:
        """Tokens, times (s) and cost of the whole run."""
        metrics = [e for e in self.log if isinstance(e, Metric) and not e.span]
        return metrics[-1].total if metrics else Counts()

    @property
    def error(self) -> str:
        """The message of the last error if the run's status is `error`, else ""."""
        errors = [e.message for e in self.log if isinstance(e, Error)]
        return errors[-1] if errors and self.status == "error" else ""

    @property
    def reason(self) -> str:
        """Why the run did not end `ok`: the error, or what stopped it; "" if it did, or unknown."""
        stops = [e.detail or e.reason for e in self.log if isinstance(e, Interrupt) and not e.span]
        return self.error or (stops[-1] if stops and self.status != "ok" else "")

    def raise_for_status(self) -> Run:
        """Return the run itself, or raise RunFailed if its status is `error`.

        A run that was stopped or hit a limit did not fail.
        """
        __tracebackhide__ = True
        if self.status == "error":
            raise RunFailed(f"The run failed: {self.reason or 'it ended in an error'}", self)
        return self

    def to_frame(self, columns: Any = None) -> pd.DataFrame:
        """Return one row per event; see `agent_nb.events.frame`."""
        from ..events import Place, to_frame

        return to_frame(list(self.log), columns, places={self.id: Place(self.cell, self.notebook)})

    def timeline(self) -> Timeline:
        """Return the waterfall of model, tools and waiting; it displays in cells and prints."""
        from ..view import Timeline

        return Timeline(self.log)

    def messages(self) -> list[dict[str, Any]]:
        """Return the conversation as role and content pairs, written in the `xml` dialect."""
        from ..host import load_plugin
        from .history import write_messages

        built = write_messages(load_plugin("dialects", "xml"), [list(self.log)])
        return [{"role": m.role, "content": m.text} for m in built]

    def show(self, view: str = "auto") -> None:
        """Show the run here as a live view, with buttons while it runs.

        `view`: auto, widgets, html or text. Raises UsageError for an unknown view.
        """
        from .display import show_run

        show_run(self, view)

    def save(self, path: str | Path) -> Path:
        """Write the events as NDJSON to `path` and return it. Raises OSError as `open` does."""
        target = Path(path)
        target.write_text(self.log.to_ndjson(), encoding="utf-8", newline="\n")
        return target

    def __repr__(self) -> str:
        why = f" ({self.reason[:200]!r})" if self.reason else ""
        count = f"{len(self.log)} event{'' if len(self.log) == 1 else 's'}"
        answer = f", {self.answer[:60]!r}" if self.answer or not why else ""
        return f"<Run {self.id}: {self.status}{why}, {count}{answer}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from ..view import make_bundle

        if self.seen():
            return {"text/plain": repr(self)}
        return make_bundle(list(self.log))
