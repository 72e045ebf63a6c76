"""The plan of a run: everything the loop needs, assembled by an agent (`assembly`) or a test.

Why one value: the loop never asks the agent, so a test can run it alone, and other tools or another
model arrive as a new plan.

Rules: frozen. Only the runner and the redaction have state that changes during the run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from ..dialects import Dialect
from ..errors import ModelError
from ..events import State
from ..models import Model, Tariff, ToolSpec
from ..tools import ToolRunner
from ..wire import Redaction
from .context import Context
from .limits import Limits
from .typed.output_type import OutputType


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of one run.

    `fallback_dialect`: used if the server accepts no tools. `default_tools`: the user chose none of
    the tools, so such a server gets none. `retry_delay`: returns the seconds to wait after a fault
    of attempt number n (None: do not retry). `memory`: how a long conversation is shortened,
    one of `compaction.STRATEGIES`. `start`: the fields of the `run_start` event. `notes`: remarks
    on the conversation. `warnings`: remarks on the policy. `context`: what is sent beside the
    prompt. `output`: the type of the answer.

    `add_late_tools`: starts the MCP servers of the tools and returns the plan with their tools
    (None: there are none); its argument receives texts about the progress.

    `fallback_models`: models that take over if one is unreachable or overloaded, in order, with
    their dialects. `is_fallback`: whether `model` has taken over. `tariffs`: by name of the model.
    """

    model: Model
    dialect: Dialect
    fallback_dialect: Dialect
    tools: Sequence[ToolSpec]
    default_tools: bool = False
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
    context: Context = Context()
    output: OutputType | None = None
    add_late_tools: Callable[[Callable[[str], object]], Awaitable[Plan]] | None = None
    fallback_models: Sequence[tuple[Model, Dialect]] = ()
    tariffs: Mapping[str, Tariff] = {}
    is_fallback: bool = False

    def with_next_model(self) -> Plan:
        """Return the plan with the first of the `fallback_models` in place of the model."""
        (model, dialect), *rest = self.fallback_models
        return msgspec.structs.replace(
            self, model=model, dialect=dialect, fallback_models=tuple(rest), is_fallback=True
        )
