"""Maps and evaluations: one prompt for each row of a table, and scores of the answers.

Why apart from `agent`: a single prompt needs no tables.

Read `map/stream` first: a map from its first row to its table. `agent` holds the public `Agent`,
which adds both to `PromptAgent`.

Order: recorded_runs, store < map < eval < agent
"""

from typing import TYPE_CHECKING

from ..host.door import open_door

if TYPE_CHECKING:
    from .agent import Agent as Agent
    from .map.known_rows.forgetting import list_stores as list_stores
    from .map.known_rows.forgetting import locate_map as locate_map
    from .map.known_rows.recorded import COUNTS as COUNTS
    from .map.known_rows.recorded import count_failed_rows as count_failed_rows
    from .map.options import MapOptions as MapOptions
    from .map.options import OnError as OnError
    from .map.row import Row as Row
    from .map.stream import MapStream as MapStream
    from .map.stream import start_map as start_map
    from .recorded_runs import Runs as Runs

_HOMES = {
    "Agent": "agent",
    "COUNTS": "map.known_rows.recorded",
    "MapOptions": "map.options",
    "MapStream": "map.stream",
    "OnError": "map.options",
    "Row": "map.row",
    "Runs": "recorded_runs",
    "count_failed_rows": "map.known_rows.recorded",
    "list_stores": "map.known_rows.forgetting",
    "locate_map": "map.known_rows.forgetting",
    "start_map": "map.stream",
}

__getattr__, __dir__ = open_door(__name__, _HOMES)
