"""What a model needs before it can answer: its name where the server gives it, its weights where
they have to load.

Why beside the loop: only some models have this, and none of it is a turn.

Rules: a model that needs neither is not waited for, not even for an instant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import events
from ..events.log import EventLog
from ..models.base import Model


async def name_of(model: Model) -> str:
    """Return the name of a model that may have to ask its server for it (one with `named`), "" of
    any other. Raises ModelError.
    """
    named = getattr(model, "named", None)
    return "" if named is None else str(await named())


@contextmanager
def loading_shown(model: Model, log: EventLog) -> Iterator[None]:
    """Show how far a model is that has to load first (one with `loading`, which reports from any
    thread).
    """
    loading = getattr(model, "loading", None)
    if loading is None or loading.now.state == "ready":
        yield
        return
    here = asyncio.get_running_loop()

    def report(progress: Any) -> None:
        words = f"loading the model {progress.fraction:.0%}" if progress.state == "loading" else ""
        here.call_soon_threadsafe(log.append, events.Delta(of="status", text=words))

    detach = loading.subscribe(report)
    try:
        yield
    finally:
        detach()
