"""The wire vectors of the seeds: what each text becomes, in every chunking."""

from collections.abc import Callable
from typing import Any

import pytest

RENAMED = {
    "content-delta": "respond",
    "message_chunk": "respond",
    "thought-stream": "think",
    "thought_chunk": "think",
}
ATTRIBUTES = {"thoughtType": "thought_type"}
DIALECTS = {
    "cogency_xml": "xml",
    "cogency_sect": "section",
    "looopy_thought": "thinking",
    "loom_think": "thinking",
}


def expected(vector: dict[str, Any]) -> list[dict[str, Any]]:
    events = [{ATTRIBUTES.get(k, k): v for k, v in e.items()} for e in vector["expected_events"]]
    events = [{**e, "type": RENAMED.get(e["type"], e["type"])} for e in events]
    return [{**e, "content": e["content"].strip()} if "content" in e else e for e in events]


def comparable(
    events: list[dict[str, Any]], wanted: list[dict[str, Any]], system: str
) -> list[dict[str, Any]]:
    """Loom and looopy have no word for a block that was cut off."""
    if system in ("loom_think", "looopy_thought"):
        return [{k: v for k, v in e.items() if k != "incomplete"} for e in events]
    return events


def test_as_it_came(vector: dict[str, Any], events: Callable[..., Any]) -> None:
    wanted = expected(vector)
    assert (
        comparable(events(DIALECTS[vector["system"]], *vector["chunks"]), wanted, vector["system"])
        == wanted
    )


@pytest.mark.few(9)
def test_in_any_chunking(
    vector: dict[str, Any], same_in_any_chunking: Callable[..., Any], to_events: Callable[..., Any]
) -> None:
    dialect = DIALECTS[vector["system"]]
    found = to_events(same_in_any_chunking(dialect, "".join(vector["chunks"])))
    wanted = expected(vector)
    assert comparable(found, wanted, vector["system"]) == wanted


def test_what_must_not_come_does_not(vector: dict[str, Any], events: Callable[..., Any]) -> None:
    found = {e["type"] for e in events(DIALECTS[vector["system"]], *vector["chunks"])}
    assert not found & {RENAMED.get(t, t) for t in vector.get("must_not", ())}


def test_text_comes_in_as_many_pieces_as_it_can(
    vector: dict[str, Any], load_dialect: Callable[..., Any]
) -> None:
    parser = load_dialect(DIALECTS[vector["system"]]).parser()
    pieces = [
        part
        for chunk in vector["chunks"]
        for part in parser.feed(chunk)
        if getattr(part, "text", "")
    ]
    assert len(pieces) >= vector.get("min_deltas", 0)


@pytest.mark.few(32)
def test_with_thought_tags_around_the_dialect_the_result_is_the_same(
    vector: dict[str, Any], events: Callable[..., Any]
) -> None:
    dialect = DIALECTS[vector["system"]]
    if dialect == "thinking" or vector["name"] in ("tag_with_attribute",):
        return
    assert events(f"thinking+{dialect}", *vector["chunks"]) == expected(vector)
    assert events(f"leading+{dialect}", *vector["chunks"]) == expected(vector)
