"""Notebooks as JSON."""

import json
from pathlib import Path
from typing import Any


def code_cell(number: int, source: str) -> dict[str, Any]:
    """Return a code cell with the id `cellNUMBER`."""
    return {
        "cell_type": "code",
        "id": f"cell{number}",
        "source": source,
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }


def write(path: Path, *sources: str) -> Path:
    """Write a notebook of code cells; return its path."""
    cells = [code_cell(number, source) for number, source in enumerate(sources, 1)]
    nb = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(nb))
    return path
