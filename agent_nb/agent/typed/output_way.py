"""How a request asks for a typed answer: the provider's schema mode, a final tool, or text.

Why: providers differ, and the loop must not. Each request is built for the way that is open now.

Rules
- `schema`: the model takes the schema with the request (`takes_output`), and its dialect is native.
- `tool`: other native dialects. The final tool is the answer, never a call: it is not in the
  toolset, needs no approval, and its name differs from those of all tools.
- `text`: dialects that write calls as text. The schema is in the instructions, and in the grammar
  where the model takes one.
- A refused schema, or one that the server ignored (an answer that is not JSON), closes the first
  way for the rest of the run; the model object remembers a refusal for later runs.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ...dialects import Dialect
from ...models import Model, OutputSchema, ToolSpec
from ...wire import dumps

FINAL = "final_answer"
LAST_TURN = (
    "This is your last turn: answer the user now with what you know, without calling a tool."
)

_AGAIN = "Write the whole corrected answer as JSON, without other words."


class Way(msgspec.Struct, frozen=True):
    """What a request says of the answer's type.

    `schema` goes to the provider, `tools` are offered beside the run's own (`final` is the name of
    theirs), `instructions` stand in the system text, `last` ends the last request that the limits
    allow, and `again` ends the message about an invalid answer.
    """

    schema: OutputSchema | None = None
    tools: tuple[ToolSpec, ...] = ()
    final: str = ""
    instructions: str = ""
    last: str = LAST_TURN
    again: str = ""


UNTYPED = Way()


class Ways:
    """The ways that are open to one run, for the type `output` (None: any text is an answer)."""

    def __init__(
        self, output: OutputSchema | None, model: Model, tools: Collection[ToolSpec]
    ) -> None:
        self.output = output
        self._model = model
        self._names = {spec.name for spec in tools}
        self._closed = False

    def close_schema(self) -> bool:
        """Ask without the provider's schema mode from now on; return whether that is a change."""
        was, self._closed = self._closed, True
        return not was

    def way(self, dialect: Dialect) -> Way:
        """Return how the next request asks."""
        if self.output is None:
            return UNTYPED
        if not dialect.native:
            return _text(self.output)
        takes = getattr(self._model, "takes_output", None)
        if takes is not None and not self._closed and takes(self.output):
            return _schema(self.output)
        return _tool(self.output, self._names)


def _schema(output: OutputSchema) -> Way:
    return Way(
        schema=output,
        instructions="When you know the answer, write it as JSON of the required format, without other words.",
        again=_AGAIN,
    )


def _tool(output: OutputSchema, names: Collection[str]) -> Way:
    name = FINAL
    while name in names:
        name += "_"
    return Way(
        tools=(
            ToolSpec(
                name,
                "Give the answer to the user. Call it once, alone, when you know the answer.",
                output.schema,
            ),
        ),
        final=name,
        instructions=f"When you know the answer, call the tool {name} with it, alone. Do not write the answer as text.",
        last=f"This is your last turn: call {name} now with what you know, and no other tool.",
        again=f"Call {name} again, alone, with the whole corrected answer.",
    )


def _text(output: OutputSchema) -> Way:
    return Way(
        instructions=f"Your answer to the user is JSON without other words, not Markdown. Its JSON Schema: {dumps(output.schema)}",
        again=_AGAIN,
    )
