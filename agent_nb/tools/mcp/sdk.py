"""The SDK (package `mcp`), imported when the first server starts.

Why one place: it is optional and takes half a second to import; its name may also be a file of the
notebook's folder, which is never imported.
"""

from __future__ import annotations

import logging
from types import ModuleType

from ...errors import MissingExtra
from ...host import import_library

INSTALL = "pip install 'jupyter-agent-nb[mcp]'"
_LOGGERS = ("mcp", "client")


def import_sdk() -> ModuleType:
    """Import the SDK and keep its loggers quiet. Raises MissingExtra."""
    module = import_library("mcp")
    if module is None or not hasattr(module, "Client"):
        raise MissingExtra("What talks to MCP servers (mcp 2.3 or newer)", INSTALL)
    for name in _LOGGERS:  # else it prints tracebacks of a server's faulty lines into the cell
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    return module
