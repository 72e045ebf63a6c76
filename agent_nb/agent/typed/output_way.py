"""How a request asks for a typed answer: with a schema, with a tool, or in the text.

Each request of a run chooses anew, because the server may have refused the schema meanwhile.

- `schema`: the model accepts the schema with the request, and its dialect is native.
- `tool`: other native dialects. The final tool's arguments are the answer; its call is not run and
  needs no approval.
- `text`: dialects that write calls as text. The schema is in the instructions, and in the grammar
  if the model supports one.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ...dialects import Dialect
from ...models import Model, OutputSchema, ToolSpec
from ...wire import dumps

FINAL = "final_answer"  # name of the final tool; `_` is added if another tool has this name
LAST_TURN = (
    "This is your last turn: answer the user now with what you know, without calling a tool."
)

_CORRECT_JSON = "Write the whole corrected answer as JSON, without other words."


class OutputWay(msgspec.Struct, frozen=True):
    """How one request asks for the answer.

    `schema`: sent to the provider. `tools`: offered beside the run's own. `final_tool`: the name of
    the tool that takes the answer, or "". `instructions`: part of the system message. `last_turn`:
    ends the last request that the limits allow. `correction`: ends the message about an invalid
    answer.
    """

    schema: OutputSchema | None = None
    tools: tuple[ToolSpec, ...] = ()
    final_tool: str = ""
    instructions: str = ""
    last_turn: str = LAST_TURN
    correction: str = ""


UNTYPED = OutputWay()  # for a run whose answer may be any text


class OutputWayChooser:
    """Chooses how the requests of one run ask for an answer of the type `output`.

    If `output` is None, any text is an answer. `tools`: the run's own.
    """

    def __init__(
        self, output: OutputSchema | None, model: Model, tools: Collection[ToolSpec]
    ) -> None:
        self.output = output
        self._model = model
        self._names = {spec.name for spec in tools}
        self._schema_disabled = False

    def disable_schema(self) -> bool:
        """Ask without the provider's schema mode from now on; return whether that is a change."""
        changes, self._schema_disabled = not self._schema_disabled, True
        return changes

    def choose(self, dialect: Dialect) -> OutputWay:
        """Return how the next request, in `dialect`, asks for the answer."""
        if self.output is None:
            return UNTYPED
        if not dialect.native:
            return _ask_in_text(self.output)
        takes_output = getattr(self._model, "takes_output", None)
        if takes_output is not None and not self._schema_disabled and takes_output(self.output):
            return _ask_by_schema(self.output)
        return _ask_by_tool(self.output, self._names)


def _ask_by_schema(output: OutputSchema) -> OutputWay:
    return OutputWay(
        schema=output,
        instructions="When you know the answer, write it as JSON of the required format, without other words.",
        correction=_CORRECT_JSON,
    )


def _ask_by_tool(output: OutputSchema, other_names: Collection[str]) -> OutputWay:
    """Ask with a tool whose arguments are the answer, under a name that no other tool has."""
    name = FINAL
    while name in other_names:
        name += "_"
    purpose = "Give the answer to the user. Call it once, alone, when you know the answer."
    return OutputWay(
        tools=(ToolSpec(name, purpose, output.schema),),
        final_tool=name,
        instructions=f"When you know the answer, call the tool {name} with it, alone. Do not write the answer as text.",
        last_turn=f"This is your last turn: call {name} now with what you know, and no other tool.",
        correction=f"Call {name} again, alone, with the whole corrected answer.",
    )


def _ask_in_text(output: OutputSchema) -> OutputWay:
    return OutputWay(
        instructions=f"Your answer to the user is JSON without other words, not Markdown. Its JSON Schema: {dumps(output.schema)}",
        correction=_CORRECT_JSON,
    )
