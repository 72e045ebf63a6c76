"""Follow runs of other systems (`watch`) and of other processes (`attach`).

The cards, records and frames of this package serve any run whose events can be read. Read
`followed` first: it is the base of both. `attached_run` follows a run of this package in another
process, whose events `follow` orders. `watched_run` follows runs of another system, which
`importer` turns into logs. `server_notes` lists the user's running servers with their tokens.

Order of imports, lowest level first: follow, followed, importer, server_notes
< connect
< http_stream, remote_run
< attached_run, sources
< watched_run
"""

from typing import TYPE_CHECKING

from ..host.door import open_door

if TYPE_CHECKING:
    from .attached_run import attach as attach
    from .server_notes import list_servers as list_servers
    from .server_notes import write_server_note as write_server_note
    from .watched_run import Watch as Watch
    from .watched_run import watch as watch

# file of the room -> the names that it defines
_NAMES = {
    "attached_run": "attach",
    "server_notes": "list_servers write_server_note",
    "watched_run": "Watch watch",
}

__getattr__, __dir__ = open_door(__name__, _NAMES)
