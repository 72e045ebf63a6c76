r"""Replaces `{{ expression }}` in a prompt by the value of a Python expression.

A value is inserted as a short text for the model, so that a DataFrame of a million rows costs a few
hundred tokens. A text is inserted whole; a figure or an image is sent as a picture.

Rules
- Only `{{ … }}` is special; `\{{` is a literal `{{`; every other brace stays as typed. What a value
  contains is not interpolated again.
- All expressions are compiled before one is evaluated, and evaluated before a model is called.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from types import CodeType
from typing import Any

import msgspec

from ..errors import UsageError
from ..tools import Figures, parse_quietly
from ..wire import cut_middle, describe_picture

ACTS_FOR_USER = True  # runs the user's code: ■ may interrupt it (notebook/cell/interrupts.py)
LONGEST_VALUE = 4000  # characters of a value in the prompt
LONGEST_NAME = 40  # characters of a picture's name
MOST_CLOSINGS = 200  # `}}` that are tried as the end of one expression
MOST_ROWS, MOST_COLUMNS, MOST_ITEMS = 5, 30, 20  # shown of one value
_OPEN, _CLOSE, _LITERAL = "{{", "}}", "\\{{"
_NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)  # or nested too deeply


class PromptTemplate:
    """A prompt with `{{ }}`, whose expressions are compiled once for any number of namespaces.

    `names`: the names that its expressions look up, and those that they bind themselves. Raises
    UsageError for an expression that is empty or invalid.
    """

    def __init__(self, text: str) -> None:
        self._pieces = [
            piece if literal else _compile_expression(piece)
            for literal, piece in _split_literals(text)
        ]
        self._expressions = [piece for piece in self._pieces if isinstance(piece, _Expression)]
        self.names: frozenset[str] = frozenset().union(*(e.names for e in self._expressions))

    @property
    def written(self) -> str:
        """The literal text of the prompt, with an empty `{{}}` in place of each expression."""
        return "".join(p if isinstance(p, str) else _OPEN + _CLOSE for p in self._pieces)

    @property
    def constant(self) -> bool:
        """Whether the prompt has no expression."""
        return not self._expressions

    def fill(
        self,
        namespace: dict[str, Any],
        pictures: list[dict[str, Any]] | None = None,
        as_str: tuple[type, ...] = (),
    ) -> str:
        """Return the prompt with each expression replaced by its value in `namespace`.

        `describe_value` writes the values, `str` those of the types `as_str`. A figure or an image
        is replaced by a caption and added to `pictures`, with its expression as its name. Raises
        UsageError for an expression that raises or has no readable value.
        """
        figures: list[dict[str, Any]] = [] if pictures is None else pictures
        return "".join(
            piece if isinstance(piece, str) else piece.fill(namespace, figures, as_str)
            for piece in self._pieces
        )


class _Expression(msgspec.Struct, frozen=True):
    """The expression between `{{` and `}}`: its text and its compiled code."""

    text: str
    code: CodeType

    @property
    def names(self) -> frozenset[str]:
        tree = parse_quietly(self.text, "eval")
        return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))

    def fill(
        self, namespace: dict[str, Any], pictures: list[dict[str, Any]], as_str: tuple[type, ...]
    ) -> str:
        """Return the value of the expression as text; see `PromptTemplate.fill`."""
        try:
            # Names bound with := go into a separate dict: a prompt changes nothing in the kernel.
            value = eval(self.code, namespace, {})  # noqa: S307  (the user's own code)
            picture = None if type(value) is str else Figures.draw(value)
            if picture is None:
                return str(value) if isinstance(value, as_str) else describe_value(value)
            name = cut_middle(" ".join(self.text.split()), LONGEST_NAME, "…")
            pictures.append({**picture, "name": name})
            return describe_picture(name, picture)
        except Exception as fault:
            raise _make_error(self.text, fault, "Nothing was sent to a model.") from fault


def _split_literals(text: str) -> Iterator[tuple[bool, str]]:
    """Yield (is literal, text): "Sum {{ a }}!" gives (True, "Sum "), (False, "a"), (True, "!")."""
    position = 0
    while (start := text.find(_OPEN, position)) >= 0:
        if text.startswith(_LITERAL, start - 1) and start > position:
            yield True, text[position : start - 1] + _OPEN
            position = start + len(_OPEN)
            continue
        end = _find_close(text, start + len(_OPEN))
        if end < 0:
            break
        yield True, text[position:start]
        yield False, text[start + len(_OPEN) : end].strip()
        position = end + len(_CLOSE)
    yield True, text[position:]


def _find_close(text: str, start: int) -> int:
    """Return where the `}}` that closes the expression begins, -1 if there is none.

    This is the first `}}` after a valid expression, of the first `MOST_CLOSINGS`. If no expression
    is valid, it is the first `}}` of all, so that the user sees the syntax error.
    """
    first = end = text.find(_CLOSE, start)
    for _ in range(MOST_CLOSINGS):
        if end < 0 or _is_expression(text[start:end].strip()):
            break
        end = text.find(_CLOSE, end + 1)
    else:
        end = -1
    return first if end < 0 else end


def _is_expression(expression: str) -> bool:
    try:
        parse_quietly(expression, "eval")
    except _NOT_PYTHON:
        return False
    return True


def _compile_expression(expression: str) -> _Expression:
    """Return the compiled expression. Raises UsageError if it is empty or not Python."""
    if not expression:
        raise UsageError(
            "{{ }} is empty. Put an expression between the braces, or write \\{{ for the braces themselves."
        )
    try:
        return _Expression(expression, compile(expression, "<prompt>", "eval"))
    except _NOT_PYTHON as fault:
        raise _make_error(expression, fault, "Write \\{{ for the braces themselves.") from fault


def _make_error(expression: str, fault: Exception, hint: str) -> UsageError:
    reason = type(fault).__name__
    with suppress(Exception):  # the text of the user's own error may raise, too
        reason = f"{reason}: {fault}"[:500]
    return UsageError(f"{{{{ {expression} }}}} failed: {reason}. {hint}")


def describe_value(value: Any) -> str:
    """Return `value` as text for a model.

    Text is returned whole, tables and arrays as summaries, everything else as a bounded repr.
    """
    if isinstance(value, str):
        return value
    classes = class_names(value)
    writer = next((write for name, write in _WRITERS.items() if name in classes), _bounded_repr)
    return cut_middle(writer(value), LONGEST_VALUE, "[… {} characters left out …]")


def class_names(value: Any) -> set[str]:
    """Return the class of `value` and its bases as `package.Class`, such as `pandas.DataFrame`."""
    return {f"{c.__module__.partition('.')[0]}.{c.__name__}" for c in type(value).__mro__}


def _describe_frame(frame: Any) -> str:
    head = frame.iloc[:MOST_ROWS, :MOST_COLUMNS].to_string()
    return _write_frame(frame.shape, frame.dtypes.items(), head)


def _write_frame(shape: tuple[int, int], types: Iterable[tuple[Any, Any]], head: str) -> str:
    """Return the text of a frame; `types`: its columns with their types, `head`: its first rows."""
    rows, columns = shape
    kinds = ", ".join(f"{name} {kind}" for name, kind in islice(types, MOST_COLUMNS))
    more = f", … {columns - MOST_COLUMNS} more" if columns > MOST_COLUMNS else ""
    more_rows = f"\n… {rows - MOST_ROWS} more rows" if rows > MOST_ROWS else ""
    return f"DataFrame, {rows} rows × {columns} columns\nColumns: {kinds}{more}\n{head}{more_rows}"


def _describe_series(series: Any) -> str:
    more_rows = f"\n… {len(series) - MOST_ROWS} more" if len(series) > MOST_ROWS else ""
    return f"Series {series.name!r}, {len(series)} × {series.dtype}\n{series.iloc[:MOST_ROWS].to_string()}{more_rows}"


def _describe_array(array: Any) -> str:
    if array.size <= MOST_ITEMS:
        return f"array of shape {array.shape}, {array.dtype}:\n{array}"
    statistics = ""
    if array.dtype.kind in "iuf":
        statistics = f", min {array.min()}, max {array.max()}, mean {array.mean():.6g}"
    return f"array of shape {array.shape}, {array.dtype}{statistics}\nfirst values: {array.ravel()[:MOST_ITEMS]}"


def _describe_polars(frame: Any) -> str:
    types = zip(frame.columns, frame.dtypes, strict=True)
    return _write_frame(frame.shape, types, str(frame.head(MOST_ROWS)))


# `package.Class` -> what describes its values; by name, so that no library is imported for this
_WRITERS: dict[str, Callable[[Any], str]] = {
    "pandas.DataFrame": _describe_frame,
    "pandas.Series": _describe_series,
    "numpy.ndarray": _describe_array,
    "polars.DataFrame": _describe_polars,
}
_BRACKETS = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    **dict.fromkeys((dict, set, frozenset), ("{", "}")),
}


def _bounded_repr(value: Any) -> str:
    """Return the repr of `value`; a long list, tuple, set or dict is cut after its first items."""
    try:
        return _write_items(value, MOST_ITEMS)
    except RecursionError:  # it contains itself
        return repr(value)


def _has_fixed_hash(item: Any) -> bool:
    """Return whether the hash of a set's item, and so the order of the set, is always the same."""
    if isinstance(item, tuple | frozenset):
        return all(map(_has_fixed_hash, item))
    return isinstance(item, int | float)


def _write_items(value: Any, most: int) -> str:
    """Return the repr of `value`, with at most `most` items of a collection.

    Inside a collection with fewer items, everything is written whole. The order of a set of texts
    differs between processes: it is sorted, so that the record of the prompt is found.
    """
    kind = next((each for each in _BRACKETS if isinstance(value, each)), None)
    is_long = kind is not None and len(value) > most
    if kind is None or not value or (type(value) is not kind and not is_long):
        return repr(value)
    write = partial(_write_items, most=most if is_long else sys.maxsize)
    if kind is dict:
        items = [f"{key!r}: {write(value[key])}" for key in islice(value, most)]
    # other sets stay in their order, which records of earlier versions have
    elif kind in (set, frozenset) and not all(map(_has_fixed_hash, value)):
        items = sorted(map(write, value))[:most]
    else:
        items = [write(item) for item in islice(value, most)]
    if is_long:
        items.append(f"… {len(value) - most} more")
    start, end = _BRACKETS[kind]
    text = f"{start}{', '.join(items)}{',' if kind is tuple and len(value) == 1 else ''}{end}"
    return f"frozenset({text})" if kind is frozenset and not is_long else text
