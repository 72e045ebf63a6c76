"""Scores answers by a function of the user, or by a column with the expected value.

The third scorer, an agent as judge, is in `judge`. Expected values come from frames, with types,
while answers are texts or JSON; so `equal` compares more than equality does.

Rule: wrong columns and wrong signatures are reported before the first request.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Protocol

from ...agent import OutputType
from ...errors import UsageError, did_you_mean
from ...record import digest_value
from ...tools import ProjectSearch
from ...wire import cut_end, nearest_json
from .scores import SCORE, UNSCORED, Candidate, Score, Scores

#: argument that a score function may take by name -> the function that reads it from a candidate
ARGUMENTS: dict[str, Callable[[Candidate], Any]] = {
    "answer": lambda c: c.value,
    "text": lambda c: c.result.answer,
    "row": lambda c: c.row,
    "prompt": lambda c: c.prompt,
}
_IN_ORDER = ("answer", "row")  # positional arguments of a function with other argument names
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_LONGEST_ERROR = 500  # characters
_AT_ONCE = 10  # the most scores that are awaited at once
LARGEST_SCORE = 1e100  # sums of squares stay finite


class Scorer(Protocol):
    """Scores answers. `title` names it."""

    title: str

    def inputs(self, candidates: Sequence[Candidate]) -> dict[str, Any] | None:
        """Return digests of what scores depend on beside the answers, for the record of the map.

        None: the scores have a record of their own.
        """

    async def score(self, candidates: Sequence[Candidate]) -> Scores:
        """Return the scores, in the order of the candidates."""


class FunctionScore:
    """Scores by a function of the user, which returns a number, a bool, or an awaitable of either.

    Raises UsageError if the function cannot be called. If it raises, that answer gets an error that
    names the row; the others are still scored. Only if it returns nothing but bools are its scores
    known to lie within 0 to 1.
    """

    def __init__(self, function: Callable[..., Any], folder: str = ".") -> None:
        """`folder`: the notebook's; a change of code in it that the function uses is noticed."""
        self._folder = folder
        self.title = f"function {getattr(function, '__name__', type(function).__name__)}"
        self._function = function
        self._names, self._by_name = _choose_arguments(function, self.title)
        self._only_bools = True  # so far the function has returned nothing but bools

    def inputs(self, candidates: Sequence[Candidate]) -> dict[str, Any]:
        """Return the digest of the function's code."""
        return {"code": ProjectSearch.read(self._function, self._folder, earlier=True).digest}

    async def score(self, candidates: Sequence[Candidate]) -> Scores:
        """Return the scores; a function that is awaited runs for several answers at once."""
        slots = asyncio.Semaphore(_AT_ONCE)

        async def score_in_slot(candidate: Candidate) -> Score:
            async with slots:
                await asyncio.sleep(0)  # a long list of quick scores does not block the loop
                return await self._score_one(candidate)

        self._only_bools = True
        scores = await asyncio.gather(*(score_in_slot(c) for c in candidates))
        return Scores(scores, self._only_bools)

    async def _score_one(self, candidate: Candidate) -> Score:
        values = [ARGUMENTS[name](candidate) for name in self._names]
        try:
            named = dict(zip(self._names, values, strict=True))
            result = self._function(**named) if self._by_name else self._function(*values)
            value = await result if inspect.isawaitable(result) else result
            if type(value).__name__ not in ("bool", "bool_"):  # `bool_` is the bool of NumPy
                self._only_bools = False
            return _to_score(candidate, value)
        except Exception as error:  # the user's code
            return failed_score(candidate, f"{type(error).__name__}: {error}")


class ColumnScore:
    """Scores 1 for answers equal to a column's value, else 0.

    If the answer is typed, its field with the column's name is compared, else its only field.
    Raises UsageError for an unknown column, and for a typed answer whose field is not clear.
    """

    def __init__(self, column: str, columns: Sequence[str], output: OutputType | None) -> None:
        if column not in columns:
            raise UsageError(
                f"score={column!r} names no column.{did_you_mean(column, columns)} Columns: {', '.join(columns)}."
                " Give the name of the column with the expected value, a function, or an agent as judge."
            )
        self.title = f"equal to column {column!r}"
        self._column = column
        self._field = _choose_field(column, output)

    def inputs(self, candidates: Sequence[Candidate]) -> dict[str, Any]:
        """Return the digests of the expected values."""
        expected = (_unwrap_expected(c.row.get(self._column)) for c in candidates)
        return {"expected": [digest_value(nearest_json(value)[0]) for value in expected]}

    async def score(self, candidates: Sequence[Candidate]) -> Scores:
        """Return 1.0 or 0.0 for each candidate."""
        return Scores([self._score_one(c) for c in candidates], True)

    def _score_one(self, candidate: Candidate) -> Score:
        expected = candidate.row.get(self._column)
        if expected is None:
            return failed_score(candidate, f"the column {self._column!r} holds no expected value")
        answer = candidate.result.output
        if answer is None:
            answer = candidate.result.answer
        if self._field and isinstance(answer, Mapping):
            answer = answer.get(self._field)
        return Score(float(equal(answer, expected)))


def equal(answer: Any, expected: Any) -> bool:
    """Return whether an answer is the expected value.

    Texts are compared exactly, apart from white space around them. A text is compared as a number
    with an expected number, as a time with an expected time (midnight: also a date), and as `true`
    or `false`, in any case, with an expected bool.
    """
    expected = _unwrap_expected(expected)
    if isinstance(expected, Decimal):  # as databases give numbers
        expected = float(expected)
    if isinstance(answer, str) and isinstance(expected, bool):
        return answer.strip().casefold() == str(expected).casefold()
    if isinstance(answer, str) and isinstance(expected, int | float | datetime):
        read = datetime.fromisoformat if isinstance(expected, datetime) else float
        try:
            return bool(read(answer.strip()) == expected)
        except ValueError:
            return False
    if isinstance(answer, str):
        return answer.strip() == str(expected).strip()
    # in Python True equals 1
    if isinstance(answer, bool) != isinstance(expected, bool):
        return False
    return bool(answer == nearest_json(expected)[0])


def _unwrap_expected(expected: Any) -> Any:
    """Return the value of an Enum, an array as a list, and other values as they are."""
    if isinstance(expected, Enum):
        expected = expected.value
    # a list column of a frame that was read from Parquet holds arrays
    return expected.tolist() if type(expected).__name__ == "ndarray" else expected


def failed_score(candidate: Candidate, why: str) -> Score:
    """Return the score of an answer that could not be scored; the message names the row."""
    repeat = f", repeat {candidate.repeat}" if candidate.repeat else ""
    message = f"row {candidate.position}{repeat}{UNSCORED}{why}"
    return Score(None, SCORE, cut_end(message, _LONGEST_ERROR))


def _to_score(candidate: Candidate, value: Any) -> Score:
    """Return a function's result as a score."""
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if abs(number) <= LARGEST_SCORE:
        return Score(number)
    advice = f"return a number up to {LARGEST_SCORE:g}, or a bool"
    return failed_score(candidate, f"the function returned {cut_end(repr(value), 80)}; {advice}")


def _choose_arguments(function: Callable[..., Any], title: str) -> tuple[tuple[str, ...], bool]:
    """Return which of `ARGUMENTS` to call a function with, and whether to pass them by name.

    They go by name if the function takes some of `ARGUMENTS` and requires no others; else by
    position: the answer, and the row if it requires two. Raises UsageError for more, or none.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a built-in that does not say
        return _IN_ORDER[:1], False
    needed = [p for p in parameters if p.default is p.empty and p.kind not in _VARIADIC]
    unnamed = (inspect.Parameter.POSITIONAL_ONLY, *_VARIADIC)
    named = [p.name for p in parameters if p.name in ARGUMENTS and p.kind not in unnamed]
    if named and all(p.name in named for p in needed):
        return tuple(named), True
    # an argument that can be passed by name only would have to be among `ARGUMENTS`
    by_name_only = any(p.kind is p.KEYWORD_ONLY for p in needed)
    if by_name_only or len(needed) > len(_IN_ORDER) or not parameters:
        raise UsageError(
            f"The {title} cannot be called with an answer and a row. Write it as `def score(answer, row)`; it may also take `text` and `prompt`."
        )
    return _IN_ORDER[: max(len(needed), 1)], False


def _choose_field(column: str, output: OutputType | None) -> str:
    """Return the field of a typed answer that is compared; "": all of it. Raises UsageError."""
    if output is None or output.wrapped:
        return ""
    fields: list[str] = [*output.schema.get("properties", {})]
    if column in fields:
        return column
    if len(fields) < 2:
        return fields[0] if fields else ""
    raise UsageError(
        f"{output.name} has the fields {', '.join(fields)}; none is called {column!r}, so it is not known which to compare."
        f" Call the column like the field, or give a function: score=lambda answer, row: answer.{fields[0]} == row[{column!r}]."
    )
