"""How a model writes a turn: each plug-in is one dialect.

Models differ in how they write calls, and the agent knows one contract only. Read `base` first:
what a dialect is, and its parser. The agent looks a dialect up by name; `CallAssembler` joins calls
that arrive in pieces.

Order of imports, lowest level first: base, call_scan, calls, fences, recursion, render, scanner,
turn_buffer
< call_assembly, grammar, tags, text_parts
< examples, markers
< native, section_reader, text_dialect, xml_reader
< section, thinking, xml
"""

from typing import TYPE_CHECKING

from ..host.door import open_door

if TYPE_CHECKING:
    from .base import Dialect as Dialect
    from .base import Parser as Parser
    from .base import Typed as Typed
    from .call_assembly import CallAssembler as CallAssembler

# file of the room -> the names that it defines
_NAMES = {"base": "Dialect Parser Typed", "call_assembly": "CallAssembler"}

__getattr__, __dir__ = open_door(__name__, _NAMES)
