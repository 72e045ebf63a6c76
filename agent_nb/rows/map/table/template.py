"""Fills in the prompt of each row of a map, such as `Classify {{ text }}`.

    template = Template("Classify {{ text }}", namespace)
    template.fill(rows.values(0))       Filled(prompt, pictures)

Cells fill in their prompts by `agent/interpolate.py` alone; here an error must name its row, and
names are columns first, then `row` (the whole row: `row["any name"]`), then those of the notebook.

Rules
- Numbers, dates and the like are written as by `str`: `1.50` and not `Decimal('1.50')`. All other
  values are written as in the prompt of a cell.
- An expression sees a copy of the notebook's names, so that it cannot assign to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, time, timedelta
from numbers import Number
from pathlib import PurePath
from typing import Any
from uuid import UUID

import msgspec

from ....agent import PromptTemplate, pictures_of
from ....errors import UsageError
from ....wire import cut_end
from .rows import TEXT, Rows, RowValues, cell_value

# expressions of the user run here, so ■ may interrupt this module (notebook/cell/interrupts.py)
ACTS_FOR_USER = True
ROW = "row"  # the name of the whole row in expressions
# the name of a column, a function of the row, or pictures for all rows
Attachments = str | Callable[[Mapping[Any, Any]], Any] | Sequence[Any]
_FILTER = re.compile(r"\{\{[^{}|]*\|[^{}|]*\}\}")  # `{{ text|upper }}`, as other templates have it
_BUILTINS = "__builtins__"  # a column of that name would hide every builtin
#: Types whose values are written as `str` does.
_WRITTEN_BY_STR = (Number, date, time, timedelta, UUID, PurePath)


class Filled(msgspec.Struct, frozen=True):
    """The prompt of one row, and the pictures that go with it."""

    prompt: str
    pictures: tuple[dict[str, Any], ...] = ()


class Template:
    """A prompt with `{{ }}`, for any number of rows.

    `namespace`: the names of the notebook. `attachments`: the name of a column, a function of the
    row, or pictures that go with every row. Raises UsageError for an expression that is empty or
    invalid, and for attachments that cannot be sent.
    """

    def __init__(
        self,
        text: str,
        namespace: Mapping[str, Any] | None = None,
        attachments: Attachments | None = None,
    ) -> None:
        self.text = text
        self._template = _parse(text)
        self._names = self._template.names - {_BUILTINS}
        all_names = namespace or {}
        self._namespace = {name: all_names[name] for name in self._names if name in all_names}
        by_row = isinstance(attachments, str) or callable(attachments)
        self._row_attachments = attachments if by_row else None
        self._shared_pictures = () if by_row else pictures_of(_list_attachments(attachments))

    def check(self, rows: Rows) -> None:
        """Raise UsageError if several rows would have the same prompt and the same attachments.

        Also if `attachments` names no column.
        """
        if isinstance(self._row_attachments, str) and self._row_attachments not in rows:
            raise UsageError(
                f"attachments={self._row_attachments!r} does not name a column of the data. {rows.hint(self._row_attachments)}"
                f" For the same picture with every row write attachments=[{self._row_attachments!r}]."
            )
        constant = self._row_attachments is None and self._template.constant
        if constant and len(rows) > 1:
            name = next(rows.unique, TEXT)
            column = name if name.isidentifier() else f'row["{name}"]'
            start = cut_end(" ".join(self.text.split()), 60)
            raise UsageError(
                f"The prompt has no {{{{ }}}}, so all {len(rows):,} rows would be asked the same."
                f' Write where the row goes: "{start} {{{{ {column} }}}}". {rows.hint()}'
            )

    def fill(self, values: Mapping[Any, Any]) -> Filled:
        """Return the prompt of a row, given the values of its columns, and its pictures.

        The pictures of `attachments` come before those of `{{ }}`. Raises UsageError, with the
        row's position, if an expression or an attachment fails.
        """
        pictures: list[dict[str, Any]] = []
        try:
            attached = self._attached_pictures(values)
            scope = self._scope(values)
            prompt = self._template.fill(scope, pictures, as_str=_WRITTEN_BY_STR)
        except UsageError as fault:
            raise UsageError(_locate_fault(values, fault)) from fault.__cause__
        return Filled(prompt, (*attached, *pictures_of(pictures)))

    def _scope(self, values: Mapping[Any, Any]) -> dict[str, Any]:
        """Return the names that the expressions use, with their values for one row."""
        scope = {**self._namespace, ROW: values}
        for name in self._names:
            if name in values:
                try:
                    scope[name] = values[name]
                except LookupError as fault:  # several columns have this name
                    raise UsageError(f"{{{{ {name} }}}} failed: {fault}.") from fault
        return scope

    def _attached_pictures(self, values: Mapping[Any, Any]) -> tuple[dict[str, Any], ...]:
        """Return the pictures that `attachments` gives for one row."""
        if self._row_attachments is None:
            return self._shared_pictures
        by_row = self._row_attachments
        where = "The attachments function"
        if isinstance(by_row, str):
            where = f"The attachment in the column {by_row!r}"
        try:
            pictures = by_row(values) if callable(by_row) else values[by_row]
        except Exception as fault:
            raise UsageError(f"{where} failed: {type(fault).__name__}: {fault}"[:500]) from fault
        try:
            return pictures_of(_list_attachments(pictures))
        except UsageError as fault:
            raise UsageError(f"{where}: {fault}") from None


def _parse(text: str) -> PromptTemplate:
    """Return the parsed prompt. Raises UsageError with advice on names of columns."""
    try:
        return PromptTemplate(text)
    except UsageError as fault:
        if isinstance(fault.__cause__, SyntaxError):
            fault.args = (f'{fault} Write row["…"] for a column whose name is not a Python name.',)
        raise


def _list_attachments(attachments: Any) -> list[Any]:
    """Return None, one or several attachments as a list, without missing values."""
    is_single = isinstance(attachments, str | bytes | bytearray | memoryview)
    if is_single or not isinstance(attachments, Sequence):
        attachments = [attachments]
    return [each for each in attachments if cell_value(each) is not None]


def _locate_fault(values: Mapping[Any, Any], fault: UsageError) -> str:
    """Return the message of an error with its row, and with the columns if a name is unknown."""
    cause, message = fault.__cause__, str(fault)
    if isinstance(values, RowValues):
        message = f"Row {values.position}, counted from 0: {message}"
        if isinstance(cause, NameError):
            message += f" {values.hint(cause.name or '')}"
        elif isinstance(cause, KeyError):
            message += f" {values.hint(str(cause.args[0]) if cause.args else '')}"
    if isinstance(cause, NameError | TypeError) and _FILTER.search(message):
        message += " {{ }} takes Python, not filters: write text.upper() instead of text|upper."
    return message
