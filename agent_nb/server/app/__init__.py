"""The ASGI app: runs over HTTP, as server-sent events or JSON lines, in any format that a codec
speaks.

    POST /runs                          {message, conversation?}: start a run; its stream at once
                            where asked, else where to find it
    GET  /runs, /runs/{id}              what is there
    GET  /runs/{id}/events              its events: `Accept` chooses SSE or JSON lines, `?format=`
         the codec
    POST /runs/{id}/cancel
    POST /runs/{id}/approvals/{call}    {decision: allow|deny, args?, reason?, scope?}
    POST /login, GET /health

Why a folder of its own: only here are Starlette, sse-starlette and uvicorn imported (extra
`serve`); what is worth testing without HTTP is in `hub`, `frames` and `access`.

Rules
- It starts no agent: `start` is handed in. What it publishes is what the hub has, already redacted;
  a token is in no answer and no log.
- A stream is pulled at the client's speed and ends with the run, with the server, or when the
  client goes; keep-alive comments come every `keepalive` seconds (0: never).
- An event source that comes back after the end gets 204, so that it stops.
"""

from __future__ import annotations

from ...errors import MissingExtra

try:
    import sse_starlette as _sse_starlette  # noqa: F401  (asked for here, so that one message covers all three)
    import starlette as _starlette  # noqa: F401
    import uvicorn as _uvicorn  # noqa: F401
except ModuleNotFoundError as fault:
    if fault.name not in ("sse_starlette", "starlette", "uvicorn"):  # they are here and broken
        raise
    raise MissingExtra("The server", "pip install 'jupyter-agent-nb[serve]'") from fault

from .build import create_app
from .endpoints import Launched, Start
from .serving import Server
from .settings import Settings

__all__ = ["Launched", "Server", "Settings", "Start", "create_app"]
