"""What must be ready before a model answers: permission to ask it, its name, its weights.

Only some models have the method `named` or the property `loading`, which the protocol `Model`
lacks; the loop need not know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import ModelError
from ..host import read_launch
from ..models import Failures, Model, is_script
from .run_spec import Plan


def refuse_unless_live(model: Model) -> None:
    """Raise ModelError if nothing runs live in this process and `model` is not a script."""
    if (why := read_launch().why_not_live) and not is_script(model):
        raise ModelError(
            f"{getattr(model, 'name', '') or 'The model'} is not asked. {why}", code="not_live"
        )


async def resolve_model_name(plan: Plan) -> str:
    """Ask the server for the model's name, if the model has the method `named`; else return "".

    Raises ModelError; during an outage returns "" if the plan has a fallback model.
    """
    fetch_name = getattr(plan.model, "named", None)
    try:
        return "" if fetch_name is None else str(await fetch_name())
    except ModelError as fault:
        if plan.fallback_models and Failures.is_outage(fault):
            return ""
        raise


@contextmanager
def show_loading(model: Model, log_status: Callable[[str], None]) -> Iterator[None]:
    """Log the progress of a model that loads its weights first, "" in any state but `loading`.

    Such a model has `loading`, with `now` and `subscribe`. Its values have a `state` (`loading`,
    `ready`, …) and a `fraction` (0 to 1), and come from any thread.
    """
    loading = getattr(model, "loading", None)
    if loading is None or loading.now.state == "ready":
        yield
        return
    loop = asyncio.get_running_loop()

    def report(progress: Any) -> None:
        text = f"loading the model {progress.fraction:.0%}" if progress.state == "loading" else ""
        loop.call_soon_threadsafe(log_status, text)

    detach = loading.subscribe(report)
    try:
        yield
    finally:
        detach()
