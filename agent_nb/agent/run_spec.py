"""The plan of a run: everything the loop needs, assembled by an agent (`assembly`) or a test.

The loop never asks the agent, so a test can run the loop alone, and a change of tools or model is a
new plan. Of its parts, only the runner, the redaction and the models have state.
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
    """The parts of one run."""

    model: Model
    dialect: Dialect
    fallback_dialect: Dialect  # used if the server accepts no tools
    tools: Sequence[ToolSpec]
    default_tools: bool = False  # the user chose none of `tools`: they may be dropped
    runner: ToolRunner
    limits: Limits
    redaction: Redaction
    # the seconds to wait after a fault of attempt number n (None: do not retry)
    retry_delay: Callable[[ModelError, int], float | None]
    system: str = ""
    memory: str = "window"  # one of `compaction.STRATEGIES`
    settings: Mapping[str, Any] = {}
    start: Mapping[str, Any] = {}  # the fields of the `run_start` event
    notes: Sequence[str | State] = ()  # remarks on the conversation
    warnings: Sequence[str] = ()  # remarks on the policy
    context: Context = Context()  # what is sent beside the prompt
    output: OutputType | None = None  # the type of the answer
    # starts the MCP servers of the tools and returns the plan with their tools; its argument
    # receives texts about the progress (None: the tools need no server)
    add_late_tools: Callable[[Callable[[str], object]], Awaitable[Plan]] | None = None
    # the models that take over, in order, if a model is unreachable or overloaded
    fallback_models: Sequence[tuple[Model, Dialect]] = ()
    tariffs: Mapping[str, Tariff] = {}  # by name of the model
    is_fallback: bool = False  # `model` has taken over

    def with_next_model(self) -> Plan:
        """Return the plan with the first of the `fallback_models` in place of the model."""
        (model, dialect), *others = self.fallback_models
        return msgspec.structs.replace(
            self, model=model, dialect=dialect, fallback_models=tuple(others), is_fallback=True
        )
