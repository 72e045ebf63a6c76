"""Bytes and text below the level of events: framing, redaction, JSON, pictures. No I/O.

Read `sse` first: every decoder here has its shape, a core with `feed` and `close`. `media` takes
place, camera and comments out of pictures, with a file for each format; `redact` takes keys out of
texts, which `key_forms` describes and `key_search` finds.

Order of imports, lowest level first: compression, exif, gif, hidden_characters, key_forms,
  picture_size, plain_values, sse, surrogates, text_limits, unpicklable
< jpeg, json_text, key_search, webp
< chart_safety, console, media, redact
< charts
"""

from typing import TYPE_CHECKING

from ..host.door import open_door

if TYPE_CHECKING:
    from .charts import Attachment as Attachment
    from .compression import FileDecompressor as FileDecompressor
    from .compression import decompress_body as decompress_body
    from .compression import read_unzipped as read_unzipped
    from .console import Console as Console
    from .hidden_characters import escape_hidden as escape_hidden
    from .hidden_characters import escape_unprintable as escape_unprintable
    from .hidden_characters import find_hidden as find_hidden
    from .hidden_characters import strip_ansi as strip_ansi
    from .hidden_characters import strip_hidden as strip_hidden
    from .json_text import SAFE as SAFE
    from .json_text import as_dict as as_dict
    from .json_text import as_list as as_list
    from .json_text import dumps as dumps
    from .json_text import encode_canonical as encode_canonical
    from .json_text import lenient_loads as lenient_loads
    from .json_text import loads as loads
    from .json_text import nearest_json as nearest_json
    from .key_forms import environment_secrets as environment_secrets
    from .media import base64_without_text as base64_without_text
    from .media import media_type as media_type
    from .picture_size import describe_picture as describe_picture
    from .picture_size import describe_size as describe_size
    from .picture_size import measure_picture as measure_picture
    from .picture_size import without_captions as without_captions
    from .plain_values import plain_scalar as plain_scalar
    from .plain_values import plain_value as plain_value
    from .redact import Redaction as Redaction
    from .redact import Redactor as Redactor
    from .redact import redact_text as redact_text
    from .redact import redact_value as redact_value
    from .sse import Frame as Frame
    from .sse import SSEDecoder as SSEDecoder
    from .surrogates import SurrogatePairs as SurrogatePairs
    from .surrogates import replace_surrogates as replace_surrogates
    from .text_limits import LEFT_OUT as LEFT_OUT
    from .text_limits import cut_end as cut_end
    from .text_limits import cut_middle as cut_middle
    from .text_limits import fit_text as fit_text
    from .unpicklable import Unpicklable as Unpicklable

# file of the room -> the names that it defines
_NAMES = {
    "charts": "Attachment",
    "compression": "FileDecompressor decompress_body read_unzipped",
    "console": "Console",
    "hidden_characters": "escape_hidden escape_unprintable find_hidden strip_ansi strip_hidden",
    "json_text": "SAFE as_dict as_list dumps encode_canonical lenient_loads loads nearest_json",
    "key_forms": "environment_secrets",
    "media": "base64_without_text media_type",
    "picture_size": "describe_picture describe_size measure_picture without_captions",
    "plain_values": "plain_scalar plain_value",
    "redact": "Redaction Redactor redact_text redact_value",
    "sse": "Frame SSEDecoder",
    "surrogates": "SurrogatePairs replace_surrogates",
    "text_limits": "LEFT_OUT cut_end cut_middle fit_text",
    "unpicklable": "Unpicklable",
}

__getattr__, __dir__ = open_door(__name__, _NAMES)
