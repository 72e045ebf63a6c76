"""How the tests of the dialects read a text and compare what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from helpers.dialect_reading import (
    LEADING,
    READ_BY,
    TEXT_DIALECTS,
    VECTORS,
    as_events,
    chunkings,
    named,
    read_parts,
)

from agent_nb.models import parts as p
from agent_nb.models.messages import ToolSpec


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that asks for `vector` every vector of a text dialect, and one that asks for
    `dialect` every dialect.
    """
    if "vector" in metafunc.fixturenames:
        rows = [
            json.loads(line) for line in VECTORS.read_text(encoding="utf-8").split("\n") if line
        ]
        rows = [r for r in rows if r["system"] in READ_BY]
        metafunc.parametrize("vector", rows, ids=[f"{r['system']}-{r['name']}" for r in rows])
    if "dialect" in metafunc.fixturenames:
        metafunc.parametrize(
            "dialect", [*TEXT_DIALECTS, "thinking+xml", "thinking+section", *LEADING]
        )


@pytest.fixture
def read() -> Callable[..., list[p.Part]]:
    return read_parts


@pytest.fixture
def events() -> Callable[..., list[dict[str, Any]]]:
    def from_chunks(dialect: str, *chunks: str) -> list[dict[str, Any]]:
        return as_events(read_parts(dialect, chunks))

    return from_chunks


@pytest.fixture
def same_in_any_chunking() -> Callable[[str, str], list[p.Part]]:
    """Return a function that asserts that the parts of a text do not depend on its chunks, and
    returns them.
    """

    def check(dialect: str, text: str) -> list[p.Part]:
        whole = read_parts(dialect, [text])
        for chunks in chunkings(text):
            assert read_parts(dialect, chunks) == whole, chunks
        return whole

    return check


@pytest.fixture
def load_dialect() -> Callable[[str], Any]:
    return named


@pytest.fixture
def to_events() -> Callable[[Sequence[p.Part]], list[dict[str, Any]]]:
    return as_events


def schema(**properties: Any) -> dict[str, Any]:
    required = [n for n, s in properties.items() if "default" not in s]
    return {"type": "object", "properties": properties, "required": required}


@pytest.fixture
def tools() -> list[ToolSpec]:
    """Tools as a notebook has them: built-ins, one of the user's own with every kind of parameter,
    one without any.
    """
    return [
        ToolSpec(
            "list",
            "List the entries of a folder.",
            schema(path={"type": "string", "default": ".", "description": "the folder"}),
        ),
        ToolSpec("read", "Read a text file. Large files are cut.", schema(file={"type": "string"})),
        ToolSpec(
            "plan",
            "Plan a trip.",
            {
                "$defs": {
                    "Stop": {
                        "type": "object",
                        "properties": {"city": {"type": "string"}, "nights": {"type": "integer"}},
                        "required": ["city"],
                    }
                },
                **schema(
                    stops={"type": "array", "items": {"$ref": "#/$defs/Stop"}},
                    pace={"enum": ["slow", "fast"]},
                    budget={"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
                ),
            },
        ),
        ToolSpec("now", "Tell the time.", schema()),
    ]
