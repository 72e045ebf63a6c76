"""Checks the answer of each turn against its type, and records the value instead of the text.

A text is the answer only if no call follows it in its turn. So the blocks of text wait until the
end of the turn; their deltas are shown at once.

Rules
- A valid answer is one `respond` of canonical JSON, marked with its type's name (`Answer.TYPED`).
- An invalid answer stays as the model wrote it. Its fault goes back to the model, at most
  `CORRECTIONS` times in a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ... import events
from ...events import Answer, Event
from ..turn import Turn
from .final_tool import FinalTool
from .output_type import Answer as ParsedAnswer
from .output_type import InvalidOutput, NotJson, OutputType
from .output_way import OutputWay

NOT_ALONE = "answer_not_alone"
CORRECTIONS = 2  # invalid answers of a run that the model may correct; one more ends the run
_CUT = "The answer was cut off at the limit of tokens of one answer. Write a shorter one."
# reasons of providers why an answer ended: the limit of tokens
_CUT_REASONS = ("length", "max_tokens", "max_output_tokens")


class Verdict(msgspec.Struct, frozen=True):
    """The result of checking the answer of a turn.

    `fault`: what is wrong, for the model; "" for a valid answer. `not_json`: the answer is not even
    JSON. `final`: no correction is left, so that the run ends.
    """

    fault: str = ""
    not_json: bool = False
    final: bool = False


class AnswerCheck:
    """Checks the answers of one run, of the type `output` (None: any text is an answer).

    `verdict` and `beside_calls` describe the newest turn; `beside_calls` is the message to a model
    that called the final tool beside other tools, else "".
    """

    def __init__(self, output: OutputType | None) -> None:
        self._output = output
        self.verdict = Verdict()
        self.beside_calls = ""
        self._invalid_answers = 0

    def recount(self, run: Iterable[Event]) -> None:
        """Count the invalid answers of a run that is resumed."""
        codes = [e.code for e in run if isinstance(e, events.Error) and not e.span]
        self._invalid_answers = codes.count(InvalidOutput.CODE)

    def begin_turn(self, turn: Turn, way: OutputWay) -> TurnCheck | None:
        """Return the check of one turn, None for a run without a type.

        `way`: how the request of the turn asks for the answer.
        """
        self.verdict, self.beside_calls = Verdict(), ""
        return TurnCheck(self, self._output, turn, way) if self._output is not None else None

    def reject(self, reason: str, *, not_json: bool) -> None:
        """Set `verdict` for an invalid answer; `reason`: what is wrong, for the model."""
        self._invalid_answers += 1
        final = self._invalid_answers > CORRECTIONS
        ending = f"\n{self._invalid_answers} invalid answers in one run: it ends." if final else ""
        self.verdict = Verdict(f"{reason}{ending}", not_json, final)


class TurnCheck:
    """Checks one turn: its events on their way to the log.

    `final_tool` reads the calls of the final tool (None: the run has no final tool).
    """

    def __init__(self, run: AnswerCheck, output: OutputType, turn: Turn, way: OutputWay) -> None:
        self._run, self._output, self._turn, self._way = run, output, turn, way
        self.final_tool = FinalTool(way.final_tool) if way.final_tool else None
        self._waiting: list[Event] = []  # the first text that waits, and the events after it

    def feed(self, fresh: Iterable[Event]) -> list[Event]:
        """Take events of the turn in their order; return those to log now."""
        out: list[Event] = []
        for event in fresh:
            delta = event if isinstance(event, events.Delta) else None
            # a call, or an answer by the final tool, shows that the texts before are not the answer
            if delta is not None and (delta.of == "call" or delta.name == Answer.APART):
                out += self._take_waiting()
            is_shown_now = delta is not None and delta.of != "respond"
            if isinstance(event, events.Respond) or (self._waiting and not is_shown_now):
                self._waiting.append(event)
            else:
                out.append(event)
        return [*out, *self._take_waiting()] if self._turn.all_calls else out

    def close(self, fresh: Iterable[Event], *, incomplete: bool) -> list[Event]:
        """Return the last events of the turn, the checked answer among them.

        `incomplete`: the response broke off.
        """
        out, turn = self.feed(fresh), self._turn
        # a model that calls the final tool twice with the same answer gave one answer
        answers = [] if self.final_tool is None else list(dict.fromkeys(self.final_tool.answers))
        if incomplete or turn.broken:
            return [*out, *self._take_waiting()]
        if turn.all_calls or turn.feedback or turn.executed:
            if answers:
                self._run.beside_calls = f"{self._way.final_tool} was called beside other calls and does not count. Call it alone, when you have their results."
            return [*out, *self._take_waiting()]
        responses = [e for e in self._waiting if isinstance(e, events.Respond)]
        try:
            answer = self._parse(answers or ["".join(e.content for e in responses)])
        except InvalidOutput as fault:
            reason = _CUT if turn.finish in _CUT_REASONS else str(fault)
            self._run.reject(reason, not_json=isinstance(fault, NotJson) and bool(responses))
            return [*out, *self._take_waiting()]
        return [*out, *self._replace(responses, answer.text)]

    def _parse(self, answers: Sequence[str]) -> ParsedAnswer:
        """Return the answer in the only text of `answers`. Raises InvalidOutput."""
        if len(answers) > 1:
            raise InvalidOutput(
                f"{self._way.final_tool} was called {len(answers)} times. Call it once."
            )
        return self._output.parse(answers[0])

    def _replace(self, responses: list[events.Respond], text: str) -> Iterator[Event]:
        """Yield the waiting events with `text`, the JSON of the answer, in place of its blocks.

        The first block gets `text`. Other blocks of plain text are left out with their deltas; if
        the answer came by the final tool, its further blocks were shown already and are emptied.
        """
        by_tool = [e for e in responses if e.extra]
        first, blocks = (by_tool or responses)[0], {e.block for e in by_tool or responses}
        mark = {Answer.TYPED: self._output.name}
        for event in self._take_waiting():
            if event is first:
                yield msgspec.structs.replace(event, content=text, incomplete=False, extra=mark)
            elif isinstance(event, events.Respond) and event.block in blocks:
                if by_tool:
                    yield msgspec.structs.replace(event, content="")
            elif not isinstance(event, events.Delta):
                yield event

    def _take_waiting(self) -> list[Event]:
        """Return the waiting events; none wait afterwards."""
        out, self._waiting = self._waiting, []
        return out
