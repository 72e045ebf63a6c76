"""Read the calls of the final tool as text of the answer (see `output_way`).

Rules
- Arguments that stream in are text of the answer at once; the whole call closes it.
- Calls of other tools pass unchanged.
- Parts in, parts out: secrets are hidden before, and no dialect reads the text.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...models import Answer, Call, CallDelta, Close, Part
from ...wire import dumps


class FinalTool:
    """Reads the final tool's calls of one turn; `answers` are their arguments as JSON text."""

    def __init__(self, name: str) -> None:
        self.answers: list[str] = []
        self._name = name
        self._open: dict[int, bool] = {}  # whether a call at this index has streamed text

    def feed(self, batch: Iterable[Part]) -> list[Part]:
        """Return the parts of a batch, with `Answer`s in place of the final tool's calls."""
        out: list[Part] = []
        for part in batch:
            if isinstance(part, CallDelta) and self._mine(part):
                self._open[part.index] = self._open.get(part.index, False) or bool(part.text)
                out += [Answer(part.text, self._block(part.index))] if part.text else []
            elif isinstance(part, Call) and part.name == self._name:
                out += self._whole(part)
            else:
                out.append(part)
        return out

    def _mine(self, part: CallDelta) -> bool:
        if part.name and part.name != self._name:
            self._open.pop(part.index, None)
            return False
        return bool(part.name) or part.index in self._open

    def _whole(self, call: Call) -> list[Part]:
        text = call.raw_args.strip() or dumps(call.args)
        self.answers.append(text)
        block = self._block(call.index)
        parts = [] if self._open.pop(call.index, False) else [Answer(text, block)]
        return [*parts, Close(block, incomplete=call.incomplete)]

    def _block(self, index: int) -> str:
        return f"{self._name} {index}"
