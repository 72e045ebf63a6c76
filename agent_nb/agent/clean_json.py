"""Replaces lone surrogates in JSON values.

A lone surrogate is half a character. UTF-8 cannot encode it, nor can its text be saved or sent.
"""

from __future__ import annotations

from typing import Any

from ..wire import plain_value, replace_surrogates

_DEEPEST = 200  # levels of nesting


def clean_value(value: Any) -> Any:
    """Return a JSON value with lone surrogates in its texts and keys replaced by U+FFFD.

    Lists and objects nested deeper than `_DEEPEST` are replaced by a text. Tuples become lists.
    """
    return _clean_nested(value, _DEEPEST)


def _clean_nested(value: Any, depth: int) -> Any:
    """Return the clean form of a value that may be nested `depth` levels deeper."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict | list | tuple) and not depth:
        return "(nested too deeply to keep)"
    if isinstance(value, dict):
        return {replace_surrogates(str(k)): _clean_nested(v, depth - 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean_nested(v, depth - 1) for v in value]
    return plain_value(value)
