"""Formats of other systems: each plug-in package reads and writes one.

Runs of other systems can then be shown, recorded and compared here, and ours in their clients. Read
`base` first: it defines a format. `convert` translates a whole stream, `foreign_stream` reads one
item by item as it arrives. To draw an event is to make the line that we would write for it; the
note of an imported event is how its original line differs from that (`passthrough`).

Order of imports, lowest level first: coerce, foreign_values, lines, losses, passthrough, replies,
  sources, times, usage
< call_matching, framing, provenance, writing
< contract, run_builder, value_losses
< block_form, blocks, stream_decoder
< block_reader, block_writer
< stream_encoder
< base
< ag_ui, agent_event, canonical, cogency, detect, loom, looopy, ui_message
< foreign_stream
< convert
"""

from typing import TYPE_CHECKING

from ..host.door import open_door

if TYPE_CHECKING:
    from .base import Codec as Codec
    from .convert import convert_files as convert_files
    from .convert import decode as decode
    from .convert import encode as encode
    from .detect import named as named
    from .foreign_stream import ForeignStream as ForeignStream
    from .framing import MEDIA as MEDIA
    from .framing import Framing as Framing
    from .framing import Item as Item
    from .losses import Losses as Losses
    from .sources import classify_source as classify_source
    from .sources import is_live as is_live
    from .sources import name_source as name_source
    from .sources import read_chunks as read_chunks

# file of the room -> the names that it defines
_NAMES = {
    "base": "Codec",
    "convert": "convert_files decode encode",
    "detect": "named",
    "foreign_stream": "ForeignStream",
    "framing": "Framing Item MEDIA",
    "losses": "Losses",
    "sources": "classify_source is_live name_source read_chunks",
}

__getattr__, __dir__ = open_door(__name__, _NAMES)
