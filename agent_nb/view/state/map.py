"""Turns the events of a map (plan, live counts, end) into the state of its card.

Why types here: the room of maps (`rows`) stands above this one, so that its types cannot be
imported, and records may come from strangers. The `name` of a field is its name in records and in
live counts.

Rule: a payload that is not a valid plan or count is shown like any other state; live counts that
cannot be read are ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import Meta

from ...events import Delta, State
from .cards import Card, CardList

# the kind of failure of rows that the end of the map cut off (`rows.map.tally`)
STOPPED = "stopped"
SAMPLED = ("map.rows", "map.scores")  # kinds of states of which the card shows a sample
QUARTERS = 4  # a map's counts are kept at each quarter, for views that cannot draw a bar
LONGEST_COUNTS = 1 << 20  # characters of live counts

Count = Annotated[int, Meta(ge=0, le=10**12)]
Figure = Annotated[float, Meta(ge=0, le=1e12)]
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class Estimate(msgspec.Struct, frozen=True):
    """What a map may take: tokens of its requests (`input`) and answers (`written`), dollars.

    `basis`: how they were estimated; `limit`: which limit they exceed. Both in words.
    """

    input: Count = 0
    written: Count = 0
    cost: Figure | None = None
    basis: str = ""
    limit: str = ""


class MapPlan(msgspec.Struct, frozen=True):
    """What a map is about to do.

    `known`: rows answered already. `where`: the cluster on which the others run, in words. `rpm`:
    requests a minute.
    """

    rows: Count
    repeats: Count = 1
    known: Count = msgspec.field(default=0, name="found")
    columns: tuple[str, ...] = ()
    estimate: Estimate | None = None
    concurrency: Count = 0
    rpm: Count | None = None
    where: str = ""


class RowLine(msgspec.Struct, frozen=True):
    """A row as it is shown: the beginnings of its prompt and of its answer."""

    position: Count = msgspec.field(name="place")
    status: str = ""
    prompt: str = msgspec.field(default="", name="said")
    answer: str = msgspec.field(default="", name="answered")
    seconds: Figure = 0.0


class MapCounts(msgspec.Struct, frozen=True):
    """A map at one moment, read from what `rows.map.tally.Snapshot` writes.

    `done`: rows that are over, `ok` of them with an answer. `known`: rows answered before this map.
    `rate`: rows a second. `cost` and `forecast` (of the whole map): dollars. `limit`: the limit
    that the map is expected to reach, in words. `last`: the latest rows. `sample`: at the end, some
    rows.
    """

    total: Count
    done: Count = 0
    ok: Count = 0
    known: Count = msgspec.field(default=0, name="found")
    rows_under_way: Count = msgspec.field(default=0, name="asking")
    failures: dict[str, Count] = {}
    tokens: Count = 0
    rate: Figure | None = None
    seconds_left: Figure | None = msgspec.field(default=None, name="left")
    cost: Figure | None = None
    forecast: Figure | None = None
    limit: str | None = None
    last: tuple[RowLine, ...] = ()
    sample: tuple[RowLine, ...] = ()

    @property
    def fraction(self) -> float:
        """The share of the rows that have ended, from 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 1.0

    @property
    def stopped(self) -> int:
        """The number of rows that the end of the map cut off."""
        return self.failures.get(STOPPED, 0)

    @property
    def failed(self) -> int:
        """The number of rows that ended without an answer, besides `stopped`."""
        return max(0, self.done - self.ok - self.stopped)

    @property
    def all_failed(self) -> bool:
        """Whether each row ended without an answer."""
        return 0 < self.total <= self.failed


@dataclass(eq=False)
class MapCard(Card):
    """A map. `quarters`: the counts at each quarter of the rows, while it runs."""

    kind = "map"
    counts: MapCounts
    plan: MapPlan | None = None
    quarters: list[MapCounts] = field(default_factory=list)


class MapCardBuilder:
    """Makes the one card of a map: the first plan or counts add it, the counts at the end close it.

    `ran_in_kernel`: the map is not part of an imported run.
    """

    def __init__(self, cards: CardList) -> None:
        self._cards = cards
        self.card: MapCard | None = None
        self.ran_in_kernel = False

    def take_state(self, event: State) -> bool:
        """Take a state if it belongs to a map; return whether it does."""
        if event.kind == "map.plan" and (plan := _read_payload(event.payload, MapPlan)):
            card = self._find_or_add(plan.rows * max(1, plan.repeats))
            card.plan = plan
        elif event.kind == "map" and (counts := _read_payload(event.payload, MapCounts)):
            card = self._find_or_add(counts.total)
            card.counts, card.done = counts, True
        elif event.kind in SAMPLED and self.card is not None:
            card = self.card
        else:
            return False
        self._cards.touch(card)
        if event.origin != "imported":
            self.ran_in_kernel = True
        return True

    def take_delta(self, event: Delta) -> None:
        """Take the counts of a map that runs."""
        text = event.text if len(event.text) <= LONGEST_COUNTS else ""
        counts = _read_payload(text, MapCounts, msgspec.json.decode)
        if counts is None or (self.card is not None and self.card.done):
            return
        card = self._find_or_add(counts.total)
        earlier, card.counts = card.counts, counts
        # the last quarter ends with the map, whose final counts are shown apart
        if int(earlier.fraction * QUARTERS) < int(counts.fraction * QUARTERS) < QUARTERS:
            card.quarters.append(counts)
        self._cards.touch(card)

    def end(self) -> None:
        """Close the card at the end of the run."""
        if self.card is not None and not self.card.done:
            self.card.done = True
            self._cards.touch(self.card)

    def _find_or_add(self, total: int) -> MapCard:
        if self.card is None:
            self.card = MapCard(self._cards.new_key("map"), MapCounts(total))
            self._cards.add(self.card)
        return self.card


def _read_payload(
    payload: Any, struct: type[_Struct], read: Callable[..., Any] = msgspec.convert
) -> _Struct | None:
    """Return a payload as a value of the type `struct`, None if it has another form."""
    try:
        return cast("_Struct", read(payload, type=struct))
    except (msgspec.DecodeError, TypeError, ValueError, RecursionError):
        return None
