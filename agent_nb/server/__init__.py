"""The server: publish runs to subscribers (`hub`) and over HTTP (`app`, `serve`).

Why: other programs and notebooks can then follow, stop and answer a run.

Read `hub` first: runs go in, numbered events come out. The command line makes a `Server` with the
agents that clients may start; `agent_nb.serve()` makes one in a notebook. All clients use HTTP.

Order of imports, lowest level first: access, agents, channel, filters, store, toolfile
< frames, subscription
< hub
< app, redis
< serve
"""

from typing import TYPE_CHECKING

from ..host.door import open_door

if TYPE_CHECKING:
    from .agents import Agents as Agents
    from .app.serving import Server as Server
    from .app.settings import Settings as Settings
    from .redis.address import configured_address as configured_address
    from .redis.hub import open_hub as open_hub
    from .store import Store as Store
    from .toolfile import load_tools as load_tools

# file of the room -> the names that it defines
_NAMES = {
    "agents": "Agents",
    "app.serving": "Server",
    "app.settings": "Settings",
    "redis.address": "configured_address",
    "redis.hub": "open_hub",
    "store": "Store",
    "toolfile": "load_tools",
}

__getattr__, __dir__ = open_door(__name__, _NAMES)
