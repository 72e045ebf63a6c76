"""Import the MCP SDK (package `mcp`) when the first server starts.

Why one place: the package is optional and takes half a second to import. `import_library` also
makes sure that a file `mcp.py` in the notebook's folder is not imported instead.
"""

from __future__ import annotations

import logging
from types import ModuleType

from ...errors import MissingExtra
from ...host import import_library

INSTALL = "pip install 'jupyter-agent-nb[mcp]'"
_LOGGERS = ("mcp", "client")  # the top loggers that the SDK writes to


def import_sdk() -> ModuleType:
    """Return the package `mcp`; its loggers print nothing, unless they already have handlers.

    Raises MissingExtra if it is not installed, or too old to have a `Client`.
    """
    module = import_library("mcp")
    if module is None or not hasattr(module, "Client"):
        raise MissingExtra("What talks to MCP servers (mcp 2.3 or newer)", INSTALL)
    # without a handler, Python prints their tracebacks of a server's faulty lines into the cell
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    return module
