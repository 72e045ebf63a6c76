"""Reads the typed answer of a run from its log: as plain JSON, a value of its type, or a frame.

Because it is in the log, replayed and loaded runs have it too. No type is imported by its recorded
name: for a value, the caller passes the type.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...errors import UsageError
from ...events import Event, RunStart, make_answer_frame, read_answer_type, read_field_order
from ...wire import lenient_loads
from .output_type import InvalidOutput, OutputType

if TYPE_CHECKING:
    import pandas as pd


def find_answer(log: Iterable[Event]) -> tuple[str, Any] | None:
    """Return the name of the type and the plain JSON of a run's answer.

    The answer is the newest text of the run itself that is marked as typed; a text without the mark
    is never read as JSON. None: the run has no typed answer, or its text is not JSON.
    """
    texts = [e for e in log if read_answer_type(e) and not e.span]
    if not texts:
        return None
    last: Any = texts[-1]
    try:
        return read_answer_type(last), lenient_loads(last.content)
    except ValueError:  # a record that was changed, or cut to its size limit
        return None


def convert_answer(log: Iterable[Event], kind: OutputType | None) -> Any:
    """Return the answer as a value of `kind`, as plain JSON if None; None without an answer.

    Raises UsageError if the type does not take it.
    """
    answer = find_answer(log)
    if answer is None:
        return None
    return answer[1] if kind is None else _to_value(answer, kind)


def output_as(log: Iterable[Event], kind: Any) -> Any:
    """Return the answer as a value of the type `kind`.

    Raises UsageError without an answer, or if the type does not take it.
    """
    return _to_value(_require_answer(log), OutputType(kind))


def make_frame(log: Iterable[Event]) -> pd.DataFrame:
    """Return the answer as a data frame. Raises UsageError without an answer."""
    run = list(log)
    start = RunStart.first_in(run)
    return make_answer_frame(_require_answer(run)[1], read_field_order(start.settings))


def _require_answer(log: Iterable[Event]) -> tuple[str, Any]:
    answer = find_answer(log)
    if answer is None:
        raise UsageError(
            "The run has no typed answer. Give the agent a type, Agent(output=Row), or the cell --output Row."
        )
    return answer


def _to_value(answer: tuple[str, Any], kind: OutputType) -> Any:
    name, document = answer
    try:
        return kind.validate(document).value
    except InvalidOutput as fault:
        was = f" (recorded as {name})" if name != kind.name else ""
        raise UsageError(f"{fault}{was}\nThe plain JSON is run.answer.") from None
