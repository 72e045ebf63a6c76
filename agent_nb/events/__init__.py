"""What happened in a run: the event types, their JSON, the log that holds them, and tables of them.

Live runs, records and foreign streams all consist of these events. Read `types` first, then `log`.
The types are loaded with the room; logs, decoders and frames on first use (a frame needs pandas).

Order of imports, lowest level first: chunks, column_type, field_order, position, types, usage
< answer_frame, completion, event_json, event_path, mapped, text, tool_events
< event_columns, rows, settler
< columns, row_groups
< event_frame
< frame
< log
"""

from typing import TYPE_CHECKING

from ..host.door import open_door
from .types import COST_PLACES as COST_PLACES
from .types import ENVELOPE as ENVELOPE
from .types import PRINTED as PRINTED
from .types import RESEND as RESEND
from .types import TYPES as TYPES
from .types import AnyEvent as AnyEvent
from .types import Approval as Approval
from .types import Call as Call
from .types import Counts as Counts
from .types import Delta as Delta
from .types import End as End
from .types import EndStatus as EndStatus
from .types import Error as Error
from .types import Event as Event
from .types import Execute as Execute
from .types import Extension as Extension
from .types import Interrupt as Interrupt
from .types import Metric as Metric
from .types import Node as Node
from .types import Origin as Origin
from .types import Progress as Progress
from .types import Respond as Respond
from .types import Result as Result
from .types import ResultStatus as ResultStatus
from .types import RunStart as RunStart
from .types import Started as Started
from .types import State as State
from .types import Think as Think
from .types import Unknown as Unknown
from .types import User as User

if TYPE_CHECKING:
    from .answer_frame import make_answer_frame as make_answer_frame
    from .chunks import decode_chunks as decode_chunks
    from .chunks import encode_chunks as encode_chunks
    from .chunks import pack_chunks as pack_chunks
    from .chunks import unpack_chunks as unpack_chunks
    from .column_type import replace_half_characters as replace_half_characters
    from .columns import PRESETS as PRESETS
    from .completion import ABANDONED as ABANDONED
    from .completion import LOST as LOST
    from .completion import complete_log as complete_log
    from .completion import list_missing_events as list_missing_events
    from .event_frame import EventFrame as EventFrame
    from .event_frame import text_array as text_array
    from .event_json import decode_event as decode_event
    from .event_json import encode_event as encode_event
    from .event_json import event_from as event_from
    from .event_json import to_builtins as to_builtins
    from .event_path import match_path as match_path
    from .field_order import FIELDS as FIELDS
    from .field_order import fields_of as fields_of
    from .field_order import order_fields as order_fields
    from .field_order import read_field_order as read_field_order
    from .frame import to_frame as to_frame
    from .log import EventLog as EventLog
    from .log import block_text as block_text
    from .log import new_run_id as new_run_id
    from .mapped import is_map as is_map
    from .position import Position as Position
    from .rows import Place as Place
    from .settler import Numberer as Numberer
    from .settler import Settler as Settler
    from .text import Answer as Answer
    from .text import Step as Step
    from .text import Texts as Texts
    from .text import answer_text as answer_text
    from .text import content_text as content_text
    from .text import read_answer_type as read_answer_type
    from .text import read_repetition as read_repetition
    from .text import reply_of as reply_of
    from .tool_events import Meaning as Meaning
    from .tool_events import adapt_tool_event as adapt_tool_event
    from .tool_events import is_tool_event as is_tool_event
    from .tool_events import meaning as meaning
    from .tool_events import progress_fields as progress_fields
    from .tool_events import result_fields as result_fields
    from .usage import whole_input as whole_input
    from .usage import whole_output as whole_output

# file of the room -> the names that it defines
_NAMES = {
    "answer_frame": "make_answer_frame",
    "chunks": "decode_chunks encode_chunks pack_chunks unpack_chunks",
    "column_type": "replace_half_characters",
    "columns": "PRESETS",
    "completion": "ABANDONED LOST complete_log list_missing_events",
    "settler": "Numberer Settler",
    "event_frame": "EventFrame text_array",
    "event_json": "decode_event encode_event event_from to_builtins",
    "event_path": "match_path",
    "field_order": "FIELDS fields_of order_fields read_field_order",
    "frame": "to_frame",
    "log": "EventLog block_text new_run_id",
    "mapped": "is_map",
    "position": "Position",
    "rows": "Place",
    "text": "Answer Step Texts answer_text content_text read_answer_type read_repetition reply_of",
    "tool_events": "Meaning adapt_tool_event is_tool_event meaning progress_fields result_fields",
    "usage": "whole_input whole_output",
}

__getattr__, __dir__ = open_door(__name__, _NAMES)
