"""What a cell with `--map` asks: its prompt for each row of its data.

Rules
- The data is a variable, or an expression of the user that is evaluated once, in a copy of the
  names: nothing in the kernel changes.
- The map is left in `_map` and its frame in the variable of `-o`, whatever ended it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...agent.agent import Agent
from ...agent.context import Context
from ...agent.drift import Resume
from ...agent.map.stream import MapStream, map_of
from ...agent.replay_check import Wish
from ...agent.stream import Stream
from ...agent.tape import Tape
from ...errors import UsageError, did_you_mean
from ...events import State
from ...record.given import Given
from ..failed_cell import Question
from ..options import LATEST, Options

MAP = "_map"  # the variable of the latest map


class Mapped:
    """The map of one cell; `question` is its prompt as written, `namespace` the user's names."""

    foreign = 0

    def __init__(self, question: Question, options: Options, namespace: dict[str, Any]) -> None:
        self.question = question
        self._options, self._namespace = options, namespace
        self._stream: MapStream | None = None

    def given(self, agent: Agent) -> Given:
        """Return the inputs of the map. Raises UsageError for data or a prompt of no use."""
        options = self._options
        self._stream = map_of(
            agent,
            data_of(options.map, self._namespace),
            self.question.prompt,
            options.mapping,
            attachments=_attached(options.attach, self._namespace),
            check=False,
            record=False,
            late=True,
        )
        return self._stream.given

    def ask(
        self,
        agent: Agent,
        *,
        notes: Sequence[str | State],
        resume: Resume | None,
        context: Context,
    ) -> Stream:
        """Return the stream of a live map. Raises UsageError if it cannot be asked."""
        assert self._stream is not None
        return self._stream.ready()

    def replay(self, agent: Agent, tape: Tape, wish: Wish | None) -> Stream:
        """Return the stream of a recorded map."""
        assert self._stream is not None
        self._stream.play(tape, wish)
        return self._stream

    def leave(self, namespace: dict[str, Any], options: Options) -> None:
        """Leave the map and its frame."""
        assert self._stream is not None
        leave(self._stream, namespace)
        if options.output != LATEST:
            namespace[options.output] = self._stream.frame


def leave(stream: Stream, namespace: dict[str, Any]) -> None:
    """Leave a stream that is a map in the user's names."""
    if isinstance(stream, MapStream):
        namespace[MAP] = stream


def data_of(expression: str, namespace: Mapping[str, Any]) -> Any:
    """Return the data of `--map`. Raises UsageError if there is none."""
    if expression.isidentifier() and expression not in namespace:
        hint = did_you_mean(expression, [n for n in namespace if not n.startswith("_")])
        raise UsageError(f"--map {expression}: there is no variable of this name.{hint}")
    try:
        return eval(compile(expression, "<--map>", "eval"), dict(namespace))  # noqa: S307  (the user's own code)
    except Exception as fault:
        said = f"{type(fault).__name__}: {fault}"[:500]
        raise UsageError(f"--map {expression!r} failed: {said}. Nothing was sent.") from fault


def _attached(names: Sequence[str], namespace: Mapping[str, Any]) -> Any:
    """Return the attachments of every row: a column's name, or the pictures themselves."""
    if len(names) == 1 and names[0] not in namespace and not Path(names[0]).exists():
        return names[0]
    return [namespace.get(name, name) for name in names] or None
