"""The events of maps, as their driver writes them, without a model."""

from __future__ import annotations

from typing import Any

import msgspec
from helpers.tape import Tape

from agent_nb import events as e
from agent_nb.rows.map.row import RowResult
from agent_nb.rows.map.tally import RowLine, Tally

TEMPLATE = "Is this review positive or negative? {{ text }}"
SAID = ("Lovely shoes, they fit.", "Came broken, no reply.", "It is fine | I *guess*.")


def planned(tape: Tape, rows: int = 200, *, found: int = 0, **plan: Any) -> Tally:
    """Begin a map and return its tally."""
    tape(
        e.RunStart(
            agent="map", model="openai/gpt-5-mini", settings={"map": {"rows": rows}, "source": ""}
        ),
        e.User(content=TEMPLATE, origin="user"),
        e.State(
            kind="map.plan",
            payload={
                "rows": rows,
                "repeats": 1,
                "found": found,
                "columns": ["text", "stars"],
                "estimate": {"input": 12_400, "written": 3_900, "cost": 0.0213},
                "concurrency": 10,
                "rpm": None,
                "where": "",
                **plan,
            },
        ),
    )
    return Tally(rows * plan.get("repeats", 1), tape.now)


def asked(tape: Tape, tally: Tally, first: int, last: int, *, each: float = 0.1) -> None:
    """Let the rows from `first` to `last` (not included) end, every 20th with an error."""
    for place in range(first, last):
        tally.begin_row()
        tape.now += each
        bad = place % 20 == 19
        kind = "rate_limit" if place % 40 == 19 else "invalid_output"
        result = RowResult(
            position=place,
            key=f"k{place}",
            status="error" if bad else "ok",
            kind=kind if bad else "",
            input=62,
            written=19,
            cost=0.0001,
            seconds=1.2,
        )
        said = f"Is this review positive or negative? {SAID[place % 3]}"
        line = RowLine(place, result.status, said, "" if bad else "positive", result.seconds)
        tally.end_row(result, line, tape.now)


def counted(tape: Tape, tally: Tally) -> None:
    """Tell the counts, as a map that goes on does."""
    text = msgspec.json.encode(tally.snapshot(tape.now)).decode()
    tape(e.Delta(of="map", text=text), after=0.0)


def ended(tape: Tape, tally: Tally, status: Any = "ok") -> None:
    """End the map as it is."""
    snapshot = msgspec.to_builtins(tally.snapshot(tape.now))
    sample = [*({**line, "place": n} for n, line in enumerate(snapshot["last"])), *snapshot["last"]]
    tape(
        e.Metric(total=e.Counts(input=12_100, output=3_700, cost=0.0199)),
        e.State(kind="map", payload={**snapshot, "sample": sample}),
        e.State(kind="map.rows", payload={f"k{n}": {"id": f"row{n}"} for n in range(3)}),
    )
    if status == "interrupted":
        tape(e.Interrupt(reason="user", detail="stop button"))
    tape(e.End(status=status))


def map_run() -> Tape:
    """Return an ended map of 200 rows."""
    tape = Tape()
    tally = planned(tape)
    for first in range(0, 200, 20):
        asked(tape, tally, first, first + 20)
        counted(tape, tally)
    ended(tape, tally)
    return tape
