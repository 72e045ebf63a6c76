"""Display a value: the MIME bundle of a rich object, or a compact text of a table or array.

Why: tools return DataFrames, arrays, figures and images, whose libraries must not be imported here.

Rules
- A method is called only if the type of the object has it, as in IPython: an object may fake any
  attribute. One that raises counts as one that returns nothing.
- Only static MIME types pass (no widgets, no JavaScript), bounded. HTML may hold scripts until it
  is sanitised for a view.
- Hidden content is removed: text in a picture, and comments in HTML, which may split a key.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..wire import base64_without_text, replace_surrogates
from .values import convert_to_json, short_repr

LARGEST = 4_000_000  # characters of a text, or bytes
# rows and columns of a compact text
_MOST_ROWS = 20
_MOST_COLUMNS = 20
# MIME type -> the method by which an object returns it
_METHODS = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "text/latex": "_repr_latex_",
    "image/svg+xml": "_repr_svg_",
}
PICTURE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
# MIME types that are kept
_KINDS = {*_METHODS, *PICTURE_TYPES, "text/plain", "application/json"}
# What a browser treats as a comment: it is not shown, and the text around it joins.
_COMMENT = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<(?:[!?]|/(?![a-zA-Z]))[^>]*(?:>|\Z)", re.DOTALL
)


def read_rich_bundle(value: Any) -> dict[str, Any] | None:
    """Return the mime bundle of a rich object, else None; for its pictures see `pictures`."""
    kind = type(value)
    bundle: dict[str, Any] = {}
    if hasattr(kind, "_repr_mimebundle_"):
        bundle.update(_read_mimebundle(value))
    for mime, method in _METHODS.items():
        if mime not in bundle and hasattr(kind, method):
            bundle[mime] = call_method(value, method)
    return clean_bundle(bundle) or None


def clean_bundle(bundle: Any) -> dict[str, Any]:
    """Return the part of a mime bundle that may be kept: static types, text or JSON, bounded."""
    items = bundle.items() if isinstance(bundle, Mapping) else ()
    contents = without_hidden(
        {mime: _static_content(content) for mime, content in items if mime in _KINDS}
    )
    return {mime: content for mime, content in contents.items() if content is not None}


def _static_content(content: Any) -> Any:
    """Return one content of a bundle as text or JSON, None if it is empty or too large."""
    if isinstance(content, tuple):  # (data, metadata), as IPython allows
        content = content[0] if content else None
    if isinstance(content, bytes):
        return base64.b64encode(content).decode() if len(content) <= LARGEST else None
    if isinstance(content, str):
        return replace_surrogates(content) if len(content) <= LARGEST else None
    return convert_to_json(content)


def without_hidden(bundle: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mime bundle without hidden content: text in a picture, comments in HTML."""
    return {
        mime: _HIDERS[mime](content) if mime in _HIDERS and isinstance(content, str) else content
        for mime, content in bundle.items()
    }


# MIME type -> the function that removes its hidden content
_HIDERS: dict[str, Callable[[str], str]] = {
    **dict.fromkeys(PICTURE_TYPES, base64_without_text),
    "text/html": partial(_COMMENT.sub, ""),
}


def is_tabular(value: Any) -> bool:
    """Return True for arrays, tables and columns: values whose `shape` is a tuple, not ()."""
    has_shape = hasattr(type(value), "shape") or hasattr(type(value), "to_string")
    shape = _try_call(lambda: value.shape) if has_shape else None
    return isinstance(shape, tuple) and shape != ()


def write_compact_text(value: Any) -> str:
    """Return a compact text of a table, array, figure or image for a model, else ""."""
    kind = type(value)
    if is_tabular(value):
        size = " × ".join(str(n) for n in value.shape)
        dtype = getattr(value, "dtype", None)
        head = f"{kind.__name__} of shape {size}" + (f", {dtype}" if dtype is not None else "")
        return f"{head}\n{_write_rows(value)}"
    if isinstance(getattr(value, "size", None), tuple) and hasattr(value, "mode"):
        return f"{kind.__name__} {' × '.join(str(n) for n in value.size)} {value.mode}"
    return ""


def _write_rows(value: Any) -> str:
    if not hasattr(type(value), "to_string"):
        return short_repr(value)
    options = {"max_rows": _MOST_ROWS}
    if len(value.shape) > 1:
        options["max_cols"] = _MOST_COLUMNS
    return str(_try_call(lambda: value.to_string(**options)) or short_repr(value))


def _read_mimebundle(value: Any) -> Mapping[str, Any]:
    """Return the bundle from `_repr_mimebundle_`, without the metadata that may come with it."""
    # IPython passes both arguments; some classes define the method without them
    bundle = _try_call(lambda: value._repr_mimebundle_(include=None, exclude=None))
    bundle = bundle or call_method(value, "_repr_mimebundle_")
    bundle = bundle[0] if isinstance(bundle, tuple) and bundle else bundle
    return bundle if isinstance(bundle, Mapping) else {}


def draw_figure(figure: Any) -> bytes:
    """Return a figure as PNG; b"" if it cannot be drawn."""
    target = io.BytesIO()
    _try_call(lambda: figure.savefig(target, format="png", bbox_inches="tight"))
    return target.getvalue()


def call_method(value: Any, method: str, *args: Any) -> Any:
    """Return what a method of a foreign object returns, None if it raises."""
    return _try_call(lambda: getattr(value, method)(*args))


def _try_call(function: Any) -> Any:
    """Return what `function`, foreign code, returns; None if it raises."""
    try:
        return function()
    except Exception:  # foreign code
        return None
