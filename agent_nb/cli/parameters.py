"""Parameters of `run -p NAME=VALUE`, and the cell that sets them, as papermill does it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import UsageError
from ..record import metadata_of


def parse_parameters(texts: Sequence[str]) -> dict[str, Any]:
    """Parse NAME=VALUE texts, values as YAML. Raises UsageError for any other text."""
    import yaml

    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise UsageError(f"A parameter is NAME=VALUE, not {text!r}.")
        try:
            found[name.strip()] = yaml.safe_load(value)
        except yaml.YAMLError:
            found[name.strip()] = value
    return found


def inject_parameters(nb: Any, values: Mapping[str, Any]) -> None:
    """Insert a cell that sets `values` after the cell tagged `parameters`, or as the first cell.

    An injected cell of an earlier execution is replaced.
    """
    if not values:
        return
    cells = [c for c in nb["cells"] if "injected-parameters" not in metadata_of(c).get("tags", [])]
    after = next(
        (n + 1 for n, c in enumerate(cells) if "parameters" in metadata_of(c).get("tags", [])),
        0,
    )
    source = "\n".join(f"{name} = {value!r}" for name, value in values.items())
    cell: dict[str, Any] = {
        "cell_type": "code",
        "id": "parameters",
        "source": source,
        "execution_count": None,
        "outputs": [],
        "metadata": {"tags": ["injected-parameters"]},
    }
    made = type(nb)(json.loads(json.dumps(cell))) if type(nb) is not dict else cell
    nb["cells"] = [*cells[:after], made, *cells[after:]]
