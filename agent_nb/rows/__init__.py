"""Maps and evaluations: one prompt for each row of a table, and scores of the answers.

They stand apart from `agent`, because a single prompt needs no tables. Read `map/stream` first: a
map from its first row to its table. `agent` has the public `Agent`, which adds both.

Order of imports, lowest level first: recorded_runs, store < map < eval < agent
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

# file of the room -> the names that it defines
_NAMES = {
    "agent": "Agent",
    "map.known_rows.forgetting": "list_stores locate_map",
    "map.known_rows.recorded": "COUNTS count_failed_rows",
    "map.options": "MapOptions OnError",
    "map.row": "Row",
    "map.stream": "MapStream start_map",
    "recorded_runs": "Runs",
}

__getattr__, __dir__ = open_door(__name__, _NAMES)
