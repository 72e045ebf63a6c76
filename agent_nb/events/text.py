"""Which text blocks form one text, and which text is the answer.

Cards, exports, frames, codecs, sub-agents and the next request must find the same texts.

Rules
- The text blocks of a turn form one text, joined as they are, and a thought does not separate them.
  The next block begins another text after an event of `separates_texts`, with another message of a
  foreign protocol, and after the protocol's mark that the text is complete.
- A typed answer is a separate text, and the answer of its turn.
- A whole reply of a foreign protocol replaces the text that it repeats; one that holds only the
  rest of a text continues it.
- The answer is the reply in the run's end if it has one, else the texts of the last turn that
  answered, with blank lines between them. Text of sub-agents is not part of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

from . import types as e
from .types import Event

#: How a block relates to the texts before it: it may "begin" a new text, "go_on" with the last one,
#: replace it ("instead"), or be the "same" block as earlier deltas. "": the event is not text.
Step = Literal["", "begin", "go_on", "instead", "same"]

_SEPARATORS = (e.User, e.Call, e.Execute, e.Approval, e.Started, e.Result, e.Error)
_REPLIES = ("reply", "content")  # fields of a foreign end of a run that hold its answer


class Texts:
    """Sorts the blocks of one run, or of one span of it, into texts, with or without deltas."""

    def __init__(self) -> None:
        self._turn = -1
        self._separated = True  # the next block begins another text
        self._complete = False  # the protocol closed the last text
        self._message = ""  # the newest message id, if the protocol has messages
        self._begun: set[str] = set()  # blocks with deltas, until their event comes

    @property
    def over(self) -> bool:
        """Whether the last text is complete, so that the next block begins another."""
        return self._separated or self._complete

    def add(self, event: Event) -> Step:
        """Add the next event; return how its block relates to the texts before it."""
        kind = type(event)
        if kind is e.Respond or (kind is e.Delta and event.of == "respond"):  # type: ignore[attr-defined]  # of a delta
            return self._relate_block(event)
        self._separated = self._separated or separates_texts(event)
        return ""

    def _relate_block(self, event: Any) -> Step:
        is_delta = type(event) is e.Delta
        if event.block in self._begun:
            if not is_delta:
                self._begun.discard(event.block)
            self._complete = self._complete or _closes(event)
            return "same"
        if is_delta:
            self._begun.add(event.block)
        step = self._choose_step(event)
        self._turn, self._separated, self._complete = event.turn, False, _closes(event)
        self._message = message_of(event) or self._message
        return step

    def _choose_step(self, event: Any) -> Step:
        if _is_separate(event):
            return "begin"
        same_turn = event.turn == self._turn
        repetition = read_repetition(event)
        if repetition:
            if not same_turn or (repetition == "instead" and self._separated):
                return "begin"
            return repetition
        message = message_of(event)
        other_message = bool(message and self._message and message != self._message)
        return "go_on" if same_turn and not self.over and not other_message else "begin"


class Answer:
    """The answer of a run, or of a run inside it (`span`), built from its events."""

    #: key in `extra` of a JSON answer: the value is the name of its type, "" if it is invalid
    TYPED = "typed"
    #: the `name` of deltas whose text stands alone: the answer comes as a call of the final tool
    APART = "answer"

    def __init__(self, span: str = "") -> None:
        self.last = ""  # the newest block
        self._span = span
        self._texts = Texts()
        self._turn = -1
        self._blocks: list[list[str]] = []  # the blocks of each text of the turn
        self._before = ""  # the answer of the earlier turns
        self._reply = ""

    def add(self, event: Event) -> None:
        """Add the next event of the run."""
        span = event.parent if isinstance(event, e.Node) else event.span
        if type(event) is e.Delta or span != self._span:
            return
        self._reply = reply_of(event) or self._reply
        step = self._texts.add(event)
        if isinstance(event, e.Respond):
            self._add_block(event, step)

    def _add_block(self, event: e.Respond, step: Step) -> None:
        if event.turn != self._turn:
            self._before = self._turn_text() or self._before
            self._blocks, self._turn = [], event.turn
        if read_repetition(event) == "instead" or read_answer_type(event):
            self._blocks = [[event.content]]
        elif step == "go_on" and self._blocks:
            self._blocks[-1].append(event.content)
        else:
            self._blocks.append([event.content])
        self.last = event.content

    @property
    def text(self) -> str:
        """The answer so far, "" if none; only a single text keeps its surrounding white space."""
        return self._reply or self._turn_text() or self._before

    def _turn_text(self) -> str:
        texts = [text for blocks in self._blocks if (text := "".join(blocks)).strip()]
        return texts[0] if len(texts) == 1 else "\n\n".join(t.strip() for t in texts)


def answer_text(events: Iterable[Event]) -> str:
    """Return the answer of a run, stripped of white space; "" without an answer."""
    answer = Answer()
    for event in events:
        answer.add(event)
    return answer.text.strip()


def read_answer_type(event: Event) -> str:
    """Return the type's name if a block of text is a typed answer (canonical JSON), else ""."""
    name = event.extra.get(Answer.TYPED) if isinstance(event, e.Respond) and event.extra else ""
    return name if isinstance(name, str) else ""


def _is_separate(event: Event) -> bool:
    """Return whether a block is a separate text: a typed answer, or the delta of one."""
    if isinstance(event, e.Delta):
        return event.name == Answer.APART
    return bool(event.extra) and Answer.TYPED in (event.extra or {})


def separates_texts(event: Event) -> bool:
    """Return whether an event separates the text before it from the text after it."""
    if isinstance(event, e.Delta):
        return event.of == "call"
    if isinstance(event, e.Node):
        return event.phase == "enter" or event.name == "llm"
    return isinstance(event, _SEPARATORS) or (
        isinstance(event, e.Extension) and event.name == e.RESEND
    )


def read_repetition(event: Event) -> Literal["", "go_on", "instead"]:
    """Return how a block from a foreign protocol's reply repeats the text before it.

    "go_on": it is the rest of that text; "instead": all of it; "": neither.
    """
    notes = _notes(event) if isinstance(event, e.Respond) else []
    for note in notes:
        if note.get("derived"):
            return "go_on" if note.get("rest") else "instead"
    return ""


def reply_of(event: Event) -> str:
    """Return the answer in the end event of an imported run, or ""."""
    if not isinstance(event, e.End):
        return ""
    values = (fields.get(key) for fields in _fields(event) for key in _REPLIES)
    return next((text for text in values if isinstance(text, str) and text.strip()), "")


def message_of(event: Event) -> str:
    """Return the message id of a block if its protocol has messages, else ""."""
    ids = (str(fields["messageId"]) for fields in _fields(event) if "messageId" in fields)
    return next(ids, "")


def _closes(event: Event) -> bool:
    """Return whether the protocol marks the text as complete with this block."""
    return any("complete" in note for note in _notes(event))


def _notes(event: Event) -> list[dict[str, Any]]:
    """Return the notes of readers of foreign formats in an event (see `codecs.provenance`)."""
    return [note for note in event.extra.values() if isinstance(note, dict)] if event.extra else []


def _fields(event: Event) -> list[dict[str, Any]]:
    """Return the fields of an event's foreign lines, the line that opened its block first."""
    lines = [line for note in _notes(event) for line in (note.get("start"), note)]
    fields = [line.get("fields") for line in lines if isinstance(line, dict)]
    return [each for each in fields if isinstance(each, dict)]


def content_text(content: object) -> str:
    """Return a result's content as the text that a model reads."""
    if isinstance(content, str):
        return content
    return json.dumps(content, ensure_ascii=False, default=str)
