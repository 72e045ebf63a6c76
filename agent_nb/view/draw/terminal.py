"""The run as streaming text, for terminals and consoles, which cannot redraw.

Each paint prints what is new in the cards, in their order. The cards after an open card wait for
its end, so that the lines of two tools at once are not mixed.

Rule: the text is the same in the end, however often it is painted, and nothing is printed twice. A
text that another one replaces stays, and the new one is printed below it.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import visible
from ..call_line import describe_call
from ..cards import map as map_card
from ..cards import retry
from ..cards.base import Context, Thoughts, draw
from ..cards.call import called_with, outcome
from ..format import draw_status, find_icon, format_duration
from ..layout import page
from ..nodes import Fold, Page
from ..state.cards import CallCard, Card, NoteCard, RespondCard, RetryCard, ThinkCard, UserCard
from ..state.fold import RunView
from ..state.map import MapCard
from ..state.plans import PlanCard
from ..state.text import Text
from . import text
from .terminal_blocks import Terminal
from .terminal_markdown import MarkdownWriter
from .text import INDENT

Write = Callable[[str], None]


class TextPainter:
    """Prints a view as it grows. `write` takes text as `sys.stdout.write` does.

    `terminal`: where answers are drawn as markdown (None: their text is printed as it came).
    """

    def __init__(
        self, write: Write, *, thoughts: Thoughts = "collapse", terminal: Terminal | None = None
    ) -> None:
        self._write = write
        self._terminal = terminal
        self._markdown: MarkdownWriter | None = None  # of the answer that is being printed
        self._context = Context(thoughts=thoughts)
        self._at = 0  # index of the card being printed
        self._printed: set[str] = set()  # parts of that card that are printed
        self._letters = 0  # printed characters of its text or output
        self._marks = 0  # printed marks of its bar
        self._text: Text | None = None  # the text that `_letters` counts
        self._begun = self._ended = False  # whether the first and the last lines are printed
        self._midline = False  # whether the last line has no end yet
        self._wrote = False  # whether the current paint printed something
        self._kind = ""  # kind of the last line: head, step, answer or end

    def restart(self) -> None:
        """Do nothing: the new view begins like the last one, and that is printed already."""

    def paint(self, view: RunView, now: float | None) -> int:
        """Print what is new; return 1 if there was something, else 0."""
        self._wrote = False
        if not self._begun and view.model:
            self._begun = True
            self._print_line(f"● {view.model}", "head")
        while self._at < len(view.cards):
            card = view.cards[self._at]
            if isinstance(card, NoteCard) and card is view.cards[-1] and now is not None:
                break  # the next event may still be added to it
            self._print_card(card, replayed=bool(view.badge))
            if not card.done:
                break
            self._at, self._letters, self._marks = self._at + 1, 0, 0
            self._printed = set()
        if now is None and not self._ended and not view.running:
            self._end(view)
        return int(self._wrote)

    def _print_card(self, card: Card, *, replayed: bool) -> None:
        """Print what is new in a card; `replayed`: no question was asked in this terminal."""
        if isinstance(card, UserCard | PlanCard):
            return  # the prompt is in the cell above; a plan is printed when it is complete
        if isinstance(card, ThinkCard):
            self._print_thought(card)
        elif isinstance(card, RespondCard):
            self._print_answer(card)
        elif isinstance(card, CallCard):
            self._print_call(card, replayed=replayed)
        else:
            if isinstance(card, RetryCard):
                self._print_tries(card)
            elif isinstance(card, MapCard):
                self._print_pace(card)
            if card.done:
                self._print_whole(card)

    def _print_answer(self, card: RespondCard) -> None:
        if not card.done and not card.text.begins():
            return  # white space says nothing yet; what follows it may be JSON
        if card.typed or card.is_json_code:
            if card.done and (node := draw(card, self._context)) is not None:
                self._print_once("node", text.draw(node), "answer")
            return
        if len(card.text):
            self._begin_kind("answer")
        if self._terminal is None:
            self._print_growing(card.text, "", card.done)
        else:
            self._draw_markdown(card.text, self._terminal, done=card.done)

    def _draw_markdown(self, text: Text, terminal: Terminal, *, done: bool) -> None:
        """Print the lines of an answer that its newest text completes."""
        self._follow(text)
        if self._markdown is None:
            self._markdown = MarkdownWriter(terminal)
        new, self._letters = text.tail(len(text) - self._letters), len(text)
        lines = self._markdown.feed(new)
        if done:
            lines, self._markdown = [*lines, *self._markdown.close()], None
        for line in lines:
            self._out(line + "\n")

    def _print_thought(self, card: ThinkCard) -> None:
        if self._context.thoughts == "show":
            self._print_once("head", "Thinking:")
            self._print_growing(card.text, INDENT, card.done)
        elif card.done:
            self._print_whole(card)

    def _print_whole(self, card: Card) -> None:
        """Print a card that is done, as it looks on a page."""
        node = draw(card, self._context)
        if node is not None:
            self._print_once("node", text.draw(node))

    def _print_tries(self, card: RetryCard) -> None:
        """Print a line for each wait."""
        for number, (why, pause) in enumerate(card.failures, 2):
            self._print_once(f"try {number}", text.draw(retry.draw_try(why, number, pause)))

    def _print_pace(self, card: MapCard) -> None:
        """Print the plan, and a line at each quarter."""
        self._print_once("plan", text.draw(map_card.describe_plan(card)))
        for counts in card.quarters[self._marks :]:
            self._print_line(f"{INDENT}{map_card.describe_pace(card, counts)}")
        self._marks = len(card.quarters)

    def _print_call(self, card: CallCard, *, replayed: bool) -> None:
        """Print a call: line, arguments, output with the marks of its bar, result."""
        if card.status == "writing":
            return
        arguments = describe_call(card.name, card.args).text
        self._print_once("call", f"{find_icon(card.name)} {card.name}  {arguments}".rstrip())
        if card.asked is not None:
            self._print_once("ask", f"{INDENT}? waiting for an answer")
        # a question at the keyboard has printed the arguments already
        answered_by = card.approval.by if card.asked and card.approval else ""
        is_printed = answered_by == "stdin" and not replayed
        if card.status not in {"queued", "waiting"} and not is_printed:
            lines = text.lines(Fold((), called_with(card), open=True))
            code = (f"{INDENT}│ {line.removeprefix(INDENT)}" for line in lines)
            self._print_once("code", "\n".join(code))
        for mark in card.marks[self._marks :]:
            self._print_output(card, mark.output_length)
            self._print_line(f"{INDENT}{mark.fraction * 100:.0f} %  {mark.message}".rstrip())
        self._marks = len(card.marks)
        self._print_output(card, len(card.output))
        if card.done:
            duration = format_duration(card.duration) if card.duration else ""
            status = "".join(t.text for t in draw_status(card.status, duration))
            body = text.lines(Fold((), outcome(card, self._context), open=card.status != "ok"))
            self._print_once("result", "\n".join([*body, INDENT + status]))

    def _print_output(self, card: CallCard, end: int) -> None:
        """Print the new output of a call, up to its first `end` characters."""
        if end > self._letters:
            unprinted = card.output.between(self._letters, end)
            printable = unprinted if card.done else visible.without_cut_escape(unprinted)
            self._print_piece(visible.show_output(printable), INDENT)
            self._letters = end - (len(unprinted) - len(printable))

    def _print_growing(self, text: Text, indent: str, done: bool) -> None:
        """Print what is new in a growing text; `done`: it is complete, so its last line ends."""
        self._follow(text)
        if len(text) > self._letters:
            self._print_piece(visible.show_prose(text.tail(len(text) - self._letters)), indent)
            self._letters = len(text)
        if done:
            self._end_line()

    def _follow(self, text: Text) -> None:
        """Print `text` from now on: the rest of it, or all if it does not begin as printed."""
        if self._letters and self._text is not text:
            printed = str(self._text or "")[: self._letters]
            if not str(text).startswith(printed):
                self._end_line()
                self._letters, self._markdown = 0, None
        self._text = text

    def _print_piece(self, new: str, indent: str) -> None:
        for line in new.splitlines(keepends=True):
            self._out(line if self._midline else indent + line)

    def _print_once(self, part: str, line: str, kind: str = "step") -> None:
        """Print a part of the card, unless it is printed already."""
        if part not in self._printed:
            self._printed.add(part)
            self._print_line(line, kind)

    def _print_line(self, line: str, kind: str = "step") -> None:
        if line:
            self._begin_kind(kind)
            self._end_line()
            self._out(visible.show_hidden(line) + "\n")

    def _begin_kind(self, kind: str) -> None:
        """Print an empty line between lines of different kinds, except after the head."""
        if self._kind not in {"", "head", kind}:
            self._end_line()
            self._out("\n")
        self._kind = kind

    def _end_line(self) -> None:
        if self._midline:
            self._out("\n")

    def _out(self, line: str) -> None:
        self._write(line)
        self._wrote = True
        self._midline = not line.endswith("\n")

    def _end(self, view: RunView) -> None:
        """Print the plans, the header and the footer of a run that has ended."""
        self._ended = True
        for card in view.cards:
            if isinstance(card, PlanCard) and (node := draw(card, self._context)) is not None:
                self._print_line(text.draw(node), "end")
        static_page: Page = page(view, self._context)
        for section in (s for s in static_page.sections if s.key in {"header", "footer"}):
            self._print_line(text.draw(section), "end")
