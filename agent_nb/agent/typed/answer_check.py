"""Check the answer of each turn against its type, and record the value instead of the text.

Why here: a text becomes the answer only at the end of its turn, when no call follows it. So the
blocks of text wait until then; their deltas are shown at once.

Rules
- A valid answer is one `respond` of canonical JSON, marked with the name of its type (`TYPED`).
- An invalid answer stays as the model wrote it. Its fault goes back to the model, at most
  `CORRECTIONS` times in a run.
- Text of a turn that calls tools, and of a turn that broke off, is not the answer. A call of the
  final tool beside other calls is refused; the other calls run.
- The order of the events stays: what comes after a waiting block waits too, except deltas of
  thoughts and calls. A call shows that the text before it is not the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ... import events
from ...events import APART, TYPED, Event
from ..turn import Turn
from .final_tool import FinalTool
from .output_type import InvalidOutput, NotJson, OutputType
from .output_way import Way

NOT_ALONE = "answer_not_alone"
CORRECTIONS = 2
_CUT = "The answer was cut off at the limit of tokens of one answer. Write a shorter one."
_LIMITS = ("length", "max_tokens", "max_output_tokens")


class Verdict(msgspec.Struct, frozen=True):
    """What is wrong with the answer of a turn, for the model ("": nothing).

    `ignored`: the answer is not even JSON. `last`: no correction is left.
    """

    fault: str = ""
    ignored: bool = False
    last: bool = False


class AnswerCheck:
    """Checks the answers of one run, of the type `output` (None: any text is an answer).

    `verdict` is about the turn that ended last.
    """

    def __init__(self, output: OutputType | None) -> None:
        self._output = output
        self.verdict = Verdict()
        self.beside = ""  # what is wrong with an answer beside calls
        self._faults = 0

    def recount(self, run: Iterable[Event]) -> None:
        """Count the invalid answers of a run that is resumed."""
        self._faults = sum(
            isinstance(e, events.Error) and e.code == InvalidOutput.CODE for e in run
        )

    def turn(self, turn: Turn, way: Way) -> TurnCheck | None:
        """Return the check of one turn, which was asked in `way`; None for a run without a type."""
        self.verdict, self.beside = Verdict(), ""
        return TurnCheck(self, self._output, turn, way) if self._output is not None else None

    def refused(self, reason: str, *, ignored: bool) -> None:
        """Note that the answer of the turn is invalid."""
        self._faults += 1
        last = self._faults > CORRECTIONS
        more = f"\n{self._faults} invalid answers in one run: it ends." if last else ""
        self.verdict = Verdict(f"{reason}{more}", ignored, last)


class TurnCheck:
    """Checks one turn: its events on their way to the log.

    `final` reads the final tool's calls, if there is one.
    """

    def __init__(self, run: AnswerCheck, output: OutputType, turn: Turn, way: Way) -> None:
        self._run, self._output, self._turn, self._way = run, output, turn, way
        self.final = FinalTool(way.final) if way.final else None
        self._held: list[Event] = []

    def feed(self, fresh: Iterable[Event]) -> list[Event]:
        """Return the events to log now."""
        out: list[Event] = []
        for event in fresh:
            if isinstance(event, events.Delta) and (event.of != "respond" or event.name):
                if event.of == "call" or event.name == APART:
                    out += self._release()
                out.append(event)
            elif self._held or isinstance(event, events.Respond):
                self._held.append(event)
            else:
                out.append(event)
        return [*out, *self._release()] if self._turn.all_calls else out

    def close(self, fresh: Iterable[Event], *, incomplete: bool) -> list[Event]:
        """Return the last events of the turn, the checked answer among them."""
        out, turn = self.feed(fresh), self._turn
        answers = list(dict.fromkeys(self.final.answers)) if self.final is not None else []
        if incomplete or turn.broken:
            return [*out, *self._release()]
        if turn.all_calls or turn.feedback or turn.executed:
            if answers:
                self._run.beside = f"{self._way.final} was called beside other calls and does not count. Call it alone, when you have their results."
            return [*out, *self._release()]
        responses = [e for e in self._held if isinstance(e, events.Respond)]
        try:
            answer = self._output.parse(
                _only(self._way, answers) if answers else "".join(e.content for e in responses)
            )
        except InvalidOutput as fault:
            reason = _CUT if turn.finish in _LIMITS else str(fault)
            self._run.refused(reason, ignored=isinstance(fault, NotJson) and bool(responses))
            return [*out, *self._release()]
        return [*out, *self._replaced(responses, answer.text)]

    def _replaced(self, responses: list[events.Respond], text: str) -> Iterator[Event]:
        """Yield what waits with the JSON of the answer in place of its blocks.

        Of several blocks the first gets it. The others are left out with their deltas; those that
        were shown, of the final tool, are emptied.
        """
        final = [e for e in responses if e.extra]
        first, *rest = final or responses
        mark = {TYPED: self._output.name}
        for event in self._release():
            if event is first:
                yield msgspec.structs.replace(event, content=text, incomplete=False, extra=mark)
            elif event in rest and final:
                yield msgspec.structs.replace(event, content="")
            elif event not in rest and not isinstance(event, events.Delta):
                yield event

    def _release(self) -> list[Event]:
        out, self._held = self._held, []
        return out


def _only(way: Way, answers: list[str]) -> str:
    if len(answers) > 1:
        raise InvalidOutput(f"{way.final} was called {len(answers)} times. Call it once.")
    return answers[0]
