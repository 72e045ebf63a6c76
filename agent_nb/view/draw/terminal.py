"""The run as streaming text, for terminals and consoles, which cannot redraw.

Why: `ipython` and `jupyter console` show neither widgets nor updates of a display.

How: each paint prints what is new in the cards, in card order. An open card holds up those after
it, so that two tools at once do not mix their lines.

Rules
- The text ends up the same however often it is painted, and nothing is printed twice.
- A bar is one line at each quarter.
- What a question on the keyboard has shown is not shown again.
- Hostile characters are made visible.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import visible
from ..cards import map as map_card
from ..cards import retry
from ..cards.base import Context, Thoughts, draw
from ..cards.call import called_with, outcome
from ..format import chip, format_arguments, format_duration, icon
from ..layout import page
from ..nodes import Fold, Page
from ..state.cards import CallCard, Card, NoteCard, RespondCard, RetryCard, ThinkCard, UserCard
from ..state.fold import RunView
from ..state.map import MapCard
from ..state.plans import PlanCard
from ..state.text import Text
from . import text
from .text import INDENT

Write = Callable[[str], None]


class TextPainter:
    """Prints a view as it grows. `write` takes text as `sys.stdout.write` does."""

    def __init__(self, write: Write, *, thoughts: Thoughts = "collapse") -> None:
        self._write = write
        self._context = Context(thoughts=thoughts)
        self._at = 0  # index of the card being printed
        self._printed: set[str] = set()  # parts of that card that are printed
        self._letters = 0  # printed characters of its text
        self._marks = 0  # printed marks of its bar
        self._text: Text | None = None  # the text of `_letters`
        self._begun = self._ended = False
        self._midline = False
        self._kind = ""  # kind of the last line

    def restart(self) -> None:
        """Do nothing: the beginning of the next view is already printed."""

    def paint(self, view: RunView, now: float | None) -> int:
        """Print what is new; return 1 if there was something."""
        before = self._letters, self._marks, self._at, len(self._printed), self._begun
        if not self._begun and view.model:
            self._begun = True
            self._line(f"● {view.model}", "head")
        while self._at < len(view.cards):
            card = view.cards[self._at]
            if isinstance(card, NoteCard) and card is view.cards[-1] and now is not None:
                break  # it may still gather more
            self._card(card, replayed=bool(view.badge))
            if not card.done:
                break
            self._at, self._letters, self._marks = self._at + 1, 0, 0
            self._printed = set()
        if now is None and not self._ended and view.status not in {"", "running"}:
            self._end(view)
        return int(
            before != (self._letters, self._marks, self._at, len(self._printed), self._begun)
        )

    def _card(self, card: Card, *, replayed: bool) -> None:
        if isinstance(card, UserCard | PlanCard):
            return  # the prompt is in the cell above; a plan is printed when it is complete
        if isinstance(card, ThinkCard):
            self._think(card)
        elif isinstance(card, RespondCard):
            self._answer(card)
        elif isinstance(card, CallCard):
            self._call(card, replayed=replayed)
        elif isinstance(card, RetryCard):
            self._retry(card)
        elif isinstance(card, MapCard):
            self._map(card)
        elif card.done:
            self._node(card)

    def _answer(self, card: RespondCard) -> None:
        if not card.done and not card.text.first_letter():
            return  # white space says nothing yet; what follows it may be JSON
        if card.typed or card.is_json_code:
            if card.done and (node := draw(card, self._context)) is not None:
                self._once("node", text.draw(node), "answer")
            return
        if len(card.text):
            self._turn("answer")
        self._flow(card.text, "", card.done)

    def _think(self, card: ThinkCard) -> None:
        if self._context.thoughts == "hide":
            return
        if self._context.thoughts == "show":
            self._once("head", "Thinking:")
            self._flow(card.text, INDENT, card.done)
        elif card.done:
            self._node(card)

    def _node(self, card: Card) -> None:
        node = draw(card, self._context)
        if node is not None:
            self._once("node", text.draw(node))

    def _retry(self, card: RetryCard) -> None:
        """Print one line for each wait, and one for all of them."""
        for number, (why, pause) in enumerate(card.failures, 2):
            self._once(f"try {number}", text.draw(retry.row(why, number, pause)))
        if card.done:
            self._node(card)

    def _map(self, card: MapCard) -> None:
        """Print the plan, a line at each quarter, and the outcome."""
        self._once("plan", text.draw(map_card.plan(card)))
        for counts in card.quarters[self._marks :]:
            self._line(f"{INDENT}{map_card.pace(card, counts, over=False)}")
        self._marks = len(card.quarters)
        if card.done:
            self._node(card)

    def _call(self, card: CallCard, *, replayed: bool) -> None:
        if card.status == "writing":
            return
        self._once(
            "call",
            f"{icon(card.name)} {visible.show_hidden(card.name)}  {visible.show_hidden(format_arguments(card.args))}".rstrip(),
        )
        if card.asked is not None:
            self._once("ask", f"{INDENT}? waiting for an answer")
        if card.status not in {"queued", "waiting"} and not (
            _answered(card) == "stdin" and not replayed
        ):
            lines = text.lines(Fold((), called_with(card), open=True))
            self._once(
                "code", "\n".join(f"{INDENT}│ {line.removeprefix(INDENT)}" for line in lines)
            )
        for mark in card.marks[self._marks :]:
            self._output(card, mark.output_length)
            self._line(
                f"{INDENT}{mark.fraction * 100:.0f} %  {visible.show_hidden(mark.message)}".rstrip()
            )
        self._marks = len(card.marks)
        self._output(card, len(card.output))
        if card.done:
            chipped = "".join(
                t.text
                for t in chip(card.status, format_duration(card.duration) if card.duration else "")
            )
            body = text.lines(Fold((), outcome(card, self._context), open=card.status != "ok"))
            self._once("result", "\n".join([*body, INDENT + chipped]))

    def _output(self, card: CallCard, end: int) -> None:
        """Print the new output of a call, up to its first `end` characters."""
        if end > self._letters:
            self._grow(
                visible.show_output(
                    card.output.last(len(card.output) - self._letters)[: end - self._letters]
                ),
                INDENT,
            )
            self._letters = end

    def _flow(self, text: Text, indent: str, done: bool) -> None:
        """Print the new end of a growing text.

        A text that does not continue what was printed is printed from its beginning.
        """
        other = self._text is not text and not str(text).startswith(
            str(self._text or "")[: self._letters]
        )
        if self._letters and other:
            self._fresh()
            self._letters = 0
        self._text = text
        if len(text) > self._letters:
            self._grow(visible.show_prose(text.tail(len(text) - self._letters)), indent)
            self._letters = len(text)
        if done:
            self._fresh()

    def _grow(self, new: str, indent: str) -> None:
        for line in new.splitlines(keepends=True):
            self._out(line if self._midline else indent + line)

    def _once(self, what: str, line: str, kind: str = "step") -> None:
        if what not in self._printed:
            self._printed.add(what)
            self._line(line, kind)

    def _line(self, line: str, kind: str = "step") -> None:
        if line:
            self._turn(kind)
            self._fresh()
            self._out(line + "\n")

    def _turn(self, kind: str) -> None:
        """Print an empty line between the steps, the answers and the end."""
        if self._kind not in {"", "head", kind}:
            self._fresh()
            self._out("\n")
        self._kind = kind

    def _fresh(self) -> None:
        if self._midline:
            self._out("\n")

    def _out(self, line: str) -> None:
        self._write(line)
        self._midline = not line.endswith("\n")

    def _end(self, view: RunView) -> None:
        self._ended = True
        for card in view.cards:
            if isinstance(card, PlanCard) and (node := draw(card, self._context)) is not None:
                self._line(text.draw(node), "end")
        whole: Page = page(view, self._context)
        for section in (s for s in whole.sections if s.key in {"header", "footer"}):
            self._line(text.draw(section), "end")


def _answered(card: CallCard) -> str:
    """Return who answered the question about a call, "" if nothing was asked."""
    return card.approval.by if card.asked is not None and card.approval is not None else ""
