"""Builds the messages that a model reads from stored events.

Stored events have neither the roles and groups of messages nor the marks of a dialect. These are
added here for every dialect and provider, so that a conversation can continue with another model.

Rule: an error that the model must read (`FED_BACK`) becomes two blocks: the text that the model
wrote, and a result that holds the error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from .. import events
from ..dialects import Dialect
from ..events import RESEND, Event, Texts, content_text
from ..models import (
    Block,
    CallBlock,
    ImageBlock,
    Message,
    OpaqueBlock,
    ResultBlock,
    TextBlock,
    ThoughtBlock,
    text_message,
)
from ..tools import clean_name
from . import vision

# codes of the errors that the model reads
FED_BACK = (
    "malformed_execute",
    "forged_results",
    "call_without_execute",
    "invalid_output",
    "answer_not_alone",
)
CHARS_PER_TOKEN = 4  # an estimate
IMAGE_TOKENS = 1000  # an estimate for one picture
MESSAGE_TOKENS = 4  # an estimate for the frame of one message


def write_messages(dialect: Dialect, runs: Sequence[Sequence[Event]]) -> list[Message]:
    """Return the conversation of `runs` (events of each run, oldest first) as messages."""
    writer = _Writer(dialect)
    for run in runs:
        for event in run:
            if not event.span:
                writer.add(event)
        writer.flush()
    return writer.messages


class _Writer:
    """Collects the messages step by step; a step is what the model writes between results."""

    def __init__(self, dialect: Dialect) -> None:
        self.messages: list[Message] = []
        self._dialect = dialect
        self._step: list[Block] = []
        self._results: list[ResultBlock] = []
        self._call_ids: list[str] = []  # of the step, in call order
        self._ids: Counter[str] = Counter()  # how many calls of the conversation had this id
        self._texts = Texts()
        self._text_pieces: list[str] = []  # of the newest text, which is not in the step yet
        self._text_start = 0  # index in the step where that text began
        self._text_end = 0  # index in the step where it is to be inserted

    def add(self, event: Event) -> None:
        """Add an event, with the method that `_WRITE` has for its type."""
        # `add_text` adds a text to `_texts` itself: it needs the relation to the text before
        if not isinstance(event, events.Respond):
            self._texts.add(event)
        handler = _WRITE.get(type(event))
        if handler is not None:
            handler(self, event)

    def add_prompt(self, event: events.User) -> None:
        self.flush()
        blocks = (*vision.write_blocks(event.attachments), TextBlock(event.content))
        self._add_message(Message("user", blocks))

    def add_thought(self, event: events.Think) -> None:
        self._add_block(ThoughtBlock(event.content, event.opaque))

    def add_text(self, event: events.Respond) -> None:
        """Add a text: a new one, or one that continues or replaces the text before it."""
        if self._results:
            self.flush()
        relation, native = self._texts.add(event), self._dialect.native
        # A native provider needs thoughts back in their original place, so that a text can continue
        # only the last block. In a text dialect, thoughts inside a text move in front of it.
        if relation == "begin" or (
            relation == "go_on" and native and self._text_end < len(self._step)
        ):
            self._place_text()
        if relation == "begin":
            self._text_start = len(self._step)
        elif relation != "go_on":
            later = self._step[self._text_start :]
            self._step[self._text_start :] = [b for b in later if not isinstance(b, TextBlock)]
            self._text_pieces = []
        self._text_pieces.append(event.content)
        self._text_end = len(self._step)

    def _place_text(self) -> None:
        """Insert the newest text, which is complete, into the step."""
        if self._text_pieces:
            self._step.insert(self._text_end, TextBlock("".join(self._text_pieces)))
            self._text_pieces = []

    def add_call(self, event: events.Call) -> None:
        self._ids[event.call_id] += 1
        call_id, name = self._name_call(event)
        self._add_block(CallBlock(call_id, name, event.args, event.raw_args))
        self._call_ids.append(call_id)

    def _name_call(self, event: events.Call | events.Result) -> tuple[str, str]:
        """Return id and name as sent: an id that no earlier run had, a name that providers take."""
        count, native = self._ids[event.call_id], self._dialect.native
        call_id = f"{event.call_id}_{count}" if native and count > 1 else event.call_id
        return call_id, clean_name(event.name) if native else event.name

    def add_result(self, event: events.Result) -> None:
        """Add a result. Text dialects write its JSON value themselves, and what was printed."""
        value = None if isinstance(event.content, str) or self._dialect.native else event.content
        content = vision.write_captions(content_text(event.content), event.attachments)
        printed = read_printed(event)
        if printed and self._dialect.native:
            content, printed = f"{content}\n\nPrinted:\n{printed}", ""
        blocks = vision.write_blocks(event.attachments)
        pictures = tuple(block for block in blocks if isinstance(block, ImageBlock))
        failed = event.status != "ok"
        named = self._name_call(event)
        self._results.append(ResultBlock(*named, content, failed, value, printed, pictures))

    def add_error(self, event: events.Error) -> None:
        if event.code not in FED_BACK:
            return
        if event.raw.strip():
            self._add_block(TextBlock(event.raw))
        self._results.append(ResultBlock("", event.code, event.message, error=True))

    def add_opaque(self, event: events.Extension) -> None:
        if event.name == RESEND:
            self._add_block(OpaqueBlock(event.namespace, event.payload))

    def flush(self) -> None:
        """Add the messages of the current step and its results."""
        self._place_text()
        if self._step:
            self._add_message(self._make_step_message())
        if self._results:
            for message in self._make_result_messages():
                self._add_message(message)
        self._step, self._results, self._call_ids, self._texts = [], [], [], Texts()

    def _add_block(self, block: Block) -> None:
        """Add a block of the assistant; after results it begins a new step."""
        if self._results:
            self.flush()
        self._step.append(block)

    def _make_step_message(self) -> Message:
        if self._dialect.native:
            # native providers refuse a call without its result
            answered = {r.call_id for r in self._results}
            blocks = [
                b for b in self._step if not isinstance(b, CallBlock) or b.call_id in answered
            ]
            return Message("assistant", tuple(blocks))
        return text_message("assistant", "\n\n".join(self._write_step()))

    def _write_step(self) -> Iterator[str]:
        """Yield a step in a text dialect, block by block; its calls stand together at the last."""
        calls = [b for b in self._step if isinstance(b, CallBlock)]
        for block in self._step:
            if isinstance(block, ThoughtBlock):
                yield self._dialect.assistant(block.text, (), "")
            elif isinstance(block, TextBlock):
                yield self._dialect.assistant("", (), block.text)
            elif calls and block is calls[-1]:
                yield self._dialect.assistant("", calls, "")

    def _make_result_messages(self) -> Iterator[Message]:
        """Yield the results as a text dialect writes them, or as native messages.

        A native provider takes results in call order: errors without a call become user text.
        """
        if not self._dialect.native:
            message = self._dialect.results(self._results)
            yield msgspec.structs.replace(message, blocks=(*message.blocks, *self._list_pictures()))
            return
        order = {call_id: i for i, call_id in enumerate(self._call_ids)}
        answers = sorted(
            (r for r in self._results if r.call_id in order), key=lambda r: order[r.call_id]
        )
        errors_only = [r for r in self._results if r.call_id not in order]
        if answers:
            yield Message("tool", tuple(answers))
        if errors_only:
            errors = "\n".join(f"Error ({r.name}): {r.content}" for r in errors_only)
            yield text_message("user", errors)

    def _list_pictures(self) -> Iterator[Block]:
        """Yield the pictures of the results for a text dialect, which writes only their text."""
        for result in self._results:
            if result.pictures:
                yield TextBlock(f"\n\nPictures of {result.name}:")
                yield from result.pictures

    def _add_message(self, message: Message) -> None:
        """Add a message, merged with its neighbour of the same role.

        Some providers require alternating roles.
        """
        last = self.messages[-1] if self.messages else None
        if last is not None and last.role == message.role and message.role in ("user", "assistant"):
            # two texts would run into each other
            glue = (TextBlock("\n\n"),) if last.text and message.text else ()
            self.messages[-1] = Message(message.role, (*last.blocks, *glue, *message.blocks))
        else:
            self.messages.append(message)


# type of an event -> the method that adds it; other events are not sent
_WRITE: dict[type[Event], Callable[..., None]] = {
    events.User: _Writer.add_prompt,
    events.Think: _Writer.add_thought,
    events.Respond: _Writer.add_text,
    events.Call: _Writer.add_call,
    events.Result: _Writer.add_result,
    events.Error: _Writer.add_error,
    events.Extension: _Writer.add_opaque,
}


def read_printed(event: events.Result) -> str:
    """Return what the tool printed to stdout, as kept in its result."""
    printed = (event.extra or {}).get(events.PRINTED)
    return printed if isinstance(printed, str) else ""


def estimate_tokens(messages: Sequence[Message]) -> int:
    """Estimate the tokens of messages: those of their blocks and `MESSAGE_TOKENS` for each.

    A picture has `IMAGE_TOKENS`; other blocks have 1 for each `CHARS_PER_TOKEN` bytes plus 1.
    """
    tokens = sum(_estimate_block(b) for m in messages for b in m.blocks)
    return tokens + MESSAGE_TOKENS * len(messages)


def _estimate_block(block: Block) -> int:
    if isinstance(block, ImageBlock):
        return IMAGE_TOKENS
    picture_tokens = 0
    if isinstance(block, ResultBlock):
        picture_tokens = IMAGE_TOKENS * len(block.pictures)
        # `value` repeats `content`: a dialect sends only one of them
        block = msgspec.structs.replace(block, value=None, pictures=())
    return picture_tokens + len(msgspec.json.encode(block)) // CHARS_PER_TOKEN + 1


class Window(msgspec.Struct, frozen=True):
    """The runs of a conversation that are sent, and those that are left out (oldest first)."""

    runs: tuple[Sequence[Event], ...]
    left_out: tuple[Sequence[Event], ...] = ()

    @property
    def note(self) -> str:
        """A remark for people on the runs left out; "" if all are sent."""
        n = len(self.left_out)
        return f"{n} earlier turn{'s' if n != 1 else ''} left out (context window)" if n else ""


def choose_window(
    dialect: Dialect, history: Sequence[Sequence[Event]], current: Sequence[Event], budget: int
) -> Window:
    """Return the newest runs of `history` that fit with `current` into `budget` tokens (0: all)."""
    if budget <= 0:
        return Window(tuple(history))
    tokens_left = budget - estimate_tokens(write_messages(dialect, [current]))
    newest: list[Sequence[Event]] = []
    for run in reversed(history):
        tokens_left -= estimate_tokens(write_messages(dialect, [run]))
        if tokens_left < 0:
            break
        newest.insert(0, run)
    return Window(tuple(newest), tuple(history[: len(history) - len(newest)]))
