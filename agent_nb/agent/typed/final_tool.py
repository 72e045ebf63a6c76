"""Reads the calls of the final tool as text of the answer (see `output_way`).

Without a schema mode, a typed answer arrives as the arguments of a tool.

Rule: the parts come with their secrets hidden already. No dialect reads the text of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...models import Answer, Call, CallDelta, Close, Part
from ...wire import dumps


class FinalTool:
    """Reads the final tool's calls of one turn; `answers` are their arguments as JSON text.

    Arguments that stream in are text of the answer at once; the whole call closes it.
    """

    def __init__(self, name: str) -> None:
        self.answers: list[str] = []
        self._name = name
        # index of a call that streams in -> whether any of its text has come. Only the first delta
        # of a call has the tool's name: later ones are recognised by the index
        self._streamed: dict[int, bool] = {}

    def feed(self, batch: Iterable[Part]) -> list[Part]:
        """Return the parts of a batch, with `Answer`s in place of the final tool's calls."""
        out: list[Part] = []
        for part in batch:
            if isinstance(part, CallDelta) and self._is_final(part):
                streamed = self._streamed.get(part.index, False)
                self._streamed[part.index] = streamed or bool(part.text)
                out += [Answer(part.text, self._block_id(part.index))] if part.text else []
            elif isinstance(part, Call) and part.name == self._name:
                out += self._read_call(part)
            else:
                out.append(part)
        return out

    def _is_final(self, part: CallDelta) -> bool:
        """Return whether a delta belongs to a call of the final tool."""
        if part.name and part.name != self._name:
            self._streamed.pop(part.index, None)  # the index now belongs to another call
            return False
        return bool(part.name) or part.index in self._streamed

    def _read_call(self, call: Call) -> list[Part]:
        """Keep the answer of a whole call; return its text, unless it streamed in, and its end."""
        text = call.raw_args.strip() or dumps(call.args)
        self.answers.append(text)
        block = self._block_id(call.index)
        parts = [] if self._streamed.pop(call.index, False) else [Answer(text, block)]
        return [*parts, Close(block, incomplete=call.incomplete)]

    def _block_id(self, index: int) -> str:
        return f"{self._name} {index}"
