"""What may happen while only records are replayed: no model is asked, and no server outside this
process is reached.

Why one place: magics, `await agent(…)`, sub-agents, `watch` and `attach` must agree; a test that
quietly calls a provider proves nothing.

Rules
- `STRICT` and `AGENT_NB_RERUN=replay` are latched when the package is imported (`host.launch`); the
  latter also counts if it is set later.
- `Scripted` itself may be asked, as it always says the same, and registers its class (`SCRIPTS`); a
  subclass may call anything and may not be asked.
- Servers of this process register their ports (`SERVED`); every other connection is refused before
  it is made.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from ..errors import ModelError, UsageError
from ..host import Launch, read_launch

ELSEWHERE = "Nothing runs live here ({}). To record it, run this where that is not set: jupyter agent-nb run --live NOTEBOOK."
PORTS = {"http": 80, "https": 443}
SERVED: set[int] = set()
SCRIPTS: list[type] = []


def find_barring_setting() -> str:
    """Return the setting that bars this process from running anything live, or ""."""
    if read_launch().strict:
        return f"{Launch.STRICT}=1"
    replays = read_launch().replays or os.environ.get(Launch.RERUN) == Launch.REPLAY
    return f"{Launch.RERUN}={Launch.REPLAY}" if replays else ""


def check_model(model: Any) -> None:
    """Raise ModelError if nothing runs live here and `model` is not a script."""
    if (setting := find_barring_setting()) and not is_script(model):
        raise ModelError(
            f"{getattr(model, 'name', '') or 'The model'} is not asked. {ELSEWHERE.format(setting)}",
            code="not_live",
        )


def is_script(model: Any) -> bool:
    """Return whether a model is exactly `Scripted`, which only plays its script."""
    return any(type(model) is script for script in SCRIPTS)


def check_address(url: str) -> None:
    """Raise UsageError if nothing runs live here and the URL is not served by this process."""
    if not (setting := find_barring_setting()):
        return
    parts = urlsplit(url)
    port = parts.port or PORTS.get(parts.scheme, 0)
    if port not in SERVED or parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise UsageError(f"{parts.hostname or url} is not asked. {ELSEWHERE.format(setting)}")
