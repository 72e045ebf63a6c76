"""The ASGI app: runs over HTTP, as server-sent events or JSON lines, in the format of any codec.

    POST /runs                          {message, conversation?}: start a run; returns its stream if
                                        asked, else its address
    GET  /runs, /runs/{id}              list runs, show one
    GET  /runs/{id}/events              its events: `Accept` selects SSE or JSON lines, `?format=`
                                        the codec
    POST /runs/{id}/cancel
    POST /runs/{id}/approvals/{call}    {decision: allow|deny, args?, reason?, scope?}
    POST /login, GET /health

Why a separate package: only this package imports Starlette, sse-starlette and uvicorn (extra
`serve`). Events are redacted before they reach the hub; no answer and no log contains the token.
"""

from __future__ import annotations

from ...errors import MissingExtra

try:
    import sse_starlette as _sse_starlette  # noqa: F401  (checked here, so that one message covers all three)
    import starlette as _starlette  # noqa: F401
    import uvicorn as _uvicorn  # noqa: F401
except ModuleNotFoundError as fault:
    if fault.name not in ("sse_starlette", "starlette", "uvicorn"):  # installed, but broken
        raise
    raise MissingExtra("The server", "pip install 'jupyter-agent-nb[serve]'") from fault

from .build import create_app
from .endpoints import Launched, Start
from .serving import Server
from .settings import Settings

__all__ = ["Launched", "Server", "Settings", "Start", "create_app"]
