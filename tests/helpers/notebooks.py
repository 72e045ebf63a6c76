"""Notebooks as JSON."""

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
