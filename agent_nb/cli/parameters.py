"""Parses the parameters `run -p NAME=VALUE`, and inserts a cell that sets them.

The cell is where papermill would put it, because notebooks written for papermill have a cell of
defaults that it must follow. It needs no imports: a date stays a text, and YAML's `.inf` and `.nan`
become `float('inf')` and `float('nan')`.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Mapping, Sequence
from itertools import starmap
from typing import Any

from ..errors import UsageError
from ..record import metadata_of
from ..wire import as_list

_POWER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?[eE][-+]?\d+$", re.ASCII)  # a text to PyYAML


def parse_parameters(texts: Sequence[str]) -> dict[str, Any]:
    """Return the values of NAME=VALUE texts by name. Raises UsageError for a text of another form.

    A value is read as YAML; a value that cannot be read so is kept as text.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        # without timestamps: the inserted cell would have to import `datetime`
        yaml_implicit_resolvers = {  # noqa: RUF012  (as the base class has it)
            first: [(tag, form) for tag, form in forms if not tag.endswith(":timestamp")]
            for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    Loader.add_implicit_resolver("tag:yaml.org,2002:float", _POWER, list("-0123456789"))
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier() or keyword.iskeyword(name):
            raise UsageError(f"A parameter is NAME=VALUE, not {text!r}.")
        try:
            values[name] = yaml.load(value, Loader)  # noqa: S506  (it is a safe one)
        except Exception:  # PyYAML raises many kinds: ValueError for `0x_`, KeyError for `!!bool x`
            values[name] = value
    return values


def inject_parameters(nb: Any, values: Mapping[str, Any]) -> None:
    """Insert a cell that sets `values` after the cell tagged `parameters`, or as the first cell.

    The new cell replaces one that an earlier execution inserted. Without values, do nothing. Raises
    UsageError for a value that is nested too deeply, or contains itself.
    """
    if not values:
        return
    cells = [cell for cell in nb["cells"] if not _has_tag(cell, "injected-parameters")]
    position = next((n for n, cell in enumerate(cells, 1) if _has_tag(cell, "parameters")), 0)
    name = "parameters"
    while name in {cell.get("id") for cell in cells}:
        name += "-"
    source = "\n".join(starmap(_make_assignment, values.items()))
    # a notebook of nbformat is a NotebookNode, and so are its cells and their metadata
    make_mapping = type(nb)
    injected = make_mapping(
        cell_type="code",
        id=name,
        source=source,
        execution_count=None,
        outputs=[],
        metadata=make_mapping(tags=["injected-parameters"]),
    )
    nb["cells"] = [*cells[:position], injected, *cells[position:]]


def _has_tag(cell: Any, tag: str) -> bool:
    return tag in as_list(metadata_of(cell).get("tags"))


def _make_assignment(variable: str, value: Any) -> str:
    try:
        return f"{variable} = {_to_source(value)}"
    except RecursionError:
        raise UsageError(
            f"The value of the parameter {variable} is nested too deeply, or contains itself."
        ) from None


def _to_source(value: Any) -> str:
    """Return the Python source of a value of YAML."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_to_source(k)}: {_to_source(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_to_source, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"  # `inf` and `nan` alone would be names
    return repr(value)
