"""What a run is made of, handed to the loop by whoever starts one.

Why a value of its own: the loop, and what it asks for the next request, know only these things; an
agent, a test or a sub-agent puts them together.

Rules: frozen; nothing in it changes while the run goes on, but the runner's and the redaction's own
state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ..dialects.base import Dialect
from ..errors import ModelError
from ..events import State
from ..models.base import Model
from ..models.messages import ToolSpec
from ..tools.runner import ToolRunner
from ..wire.redact import Redaction
from .limits import Limits


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a run is made of. `start` holds the fields of its `run_start` event, `notes`
    remarks on its conversation, `warnings` what the user should know of its policy.
    """

    model: Model
    dialect: Dialect
    fallback: Dialect
    tools: Sequence[ToolSpec]
    runner: ToolRunner
    limits: Limits
    redaction: Redaction
    retry_delay: Callable[[ModelError, int], float | None]
    system: str = ""
    memory: str = "window"
    settings: Mapping[str, Any] = {}
    start: Mapping[str, Any] = {}
    notes: Sequence[str | State] = ()
    warnings: Sequence[str] = ()
