"""The plan of a run: everything the loop needs, assembled by an agent (`assembly`) or a test.

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

    `late`: what completes the plan once the servers of its tools have started; it is called with
    what receives words about that.
    `start`: the fields of its `run_start` event. `notes`: remarks on the conversation. `warnings`:
    remarks on the policy. `context`: what is sent beside the prompt. `output`: the type of the
    answer. `spares`: models that go on when one is away or overloaded, in order, with their
    dialects. `relieved`: whether the model is one of them. `tariffs`: those of the models, by name.
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
    context: Context = Context()
    output: OutputType | None = None
    late: Callable[[Callable[[str], object]], Awaitable[Plan]] | None = None
    spares: Sequence[tuple[Model, Dialect]] = ()
    tariffs: Mapping[str, Tariff] = {}
    relieved: bool = False

    def with_spare(self) -> Plan:
        """Return the plan with the next of the `spares` in place of the model."""
        (model, dialect), *rest = self.spares
        return msgspec.structs.replace(
            self, model=model, dialect=dialect, spares=tuple(rest), relieved=True
        )
