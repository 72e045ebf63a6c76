"""One model turn: parts in, events out.

Only here do parts become events, so that ids, the limits of blocks and the treatment of a cut
stream are the same for all providers and dialects.

Rules
- A block closes before the next opens. If a provider interleaves blocks, the parts of the later
  ones wait, in order of first appearance.
- White space between two blocks of one text (`events.text`) becomes the start of the later block;
  alone it yields no event.
- No I/O, no clock; events have no `seq` and `ts` yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from .. import events
from ..events import RESEND, Answer, Event
from ..models import parts
from ..wire import SurrogatePairs, replace_surrogates
from .clean_json import clean_value
from .text_block import BlockKind, TextBlock


class CallIds:
    """Assigns call ids that are unique within one run.

    Why: a result finds its call by the id, and some models leave ids out or repeat them.
    """

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._number = 0  # of the newest synthetic id

    def assign(self, model_id: str, turn: int) -> tuple[str, bool]:
        """Return the id for a call of turn number `turn`, and whether the id is synthetic.

        `model_id`: the id that the model gave the call, "" if none.
        """
        synthetic = not model_id or model_id in self._used
        call_id, self._number = model_id, max(self._number, len(self._used))
        while not call_id or call_id in self._used:
            self._number += 1
            call_id = f"call_{turn}_{self._number}"
        self._used.add(call_id)
        return call_id, synthetic


class Turn:
    """The events of one model turn, number `number` of its run."""

    def __init__(self, number: int, ids: CallIds | None = None) -> None:
        self.number = number
        self.calls: list[events.Call] = []  # of the batch, in order
        self.all_calls: list[events.Call] = []  # those of the batch, and those that were cut off
        self.faults_of_calls: dict[str, str] = {}  # id of a call that does not run -> the reason
        self.feedback: list[events.Error] = []  # errors that go back to the model
        self.faults: list[events.Error] = []  # other errors
        self.executed = False  # the batch is complete
        self.malformed = ""  # the parse error of a call of the batch that could not be read
        self.ended = False  # the model wrote the end marker
        self.continued = 0  # requests of this turn beyond the first
        self.usage: parts.Usage | None = None  # as the provider reports it
        self.finish = ""  # the finish reason
        self.head = parts.Head()  # status and model of the response
        self._ids = ids or CallIds()
        self._common_fields: dict[str, Any] = {"turn": number, "origin": "model"}
        self._block: TextBlock | None = None
        self._text_begun = False  # a text has begun, and another block may continue it
        self._space = ""  # white space since the last block of that text
        # provider's key of a block -> its parts, which wait until the open block closes
        self._waiting: dict[str, list[parts.Part]] = {}
        self._feeds_waiting = False
        self._block_count = 0
        self._call_block_ids: dict[int, str] = {}  # index of a call that streams in -> block id
        self._halves = SurrogatePairs()  # half a character at the end of a piece of a call
        self._batch_id = f"{number}.batch1"

    def feed(self, batch: Iterable[parts.Part]) -> list[Event]:
        """Return the events that a batch of parts completes, deltas included."""
        out: list[Event] = []
        for part in batch:
            kind = type(part)
            if kind is parts.Text or kind is parts.Thought:
                self._on_text(part, "respond" if kind is parts.Text else "think", out)  # type: ignore[arg-type]  # narrowed by kind
            elif (handler := _HANDLERS.get(kind)) is not None:
                handler(self, part, out)
        return out

    def close(self, *, incomplete: bool = False) -> list[Event]:
        """Close open blocks and return their events; `incomplete`: the stream was cut off."""
        out: list[Event] = []
        self._end_text(out, incomplete=incomplete)
        return out

    @property
    def broken(self) -> bool:
        """Whether the provider reported a fault in mid-stream: no call of this turn may run."""
        return any(e.code not in HARMLESS for e in self.faults)

    def count_usage(
        self, sent: int, written: int, *, complete: bool = False
    ) -> tuple[events.Counts, bool]:
        """Return the usage of this turn so far, and whether it is estimated.

        `sent`, `written`: our estimates in tokens, used where the provider reports nothing. Until
        the answer is `complete`, our estimate replaces an output count that lags behind.
        """
        usage = self.usage or parts.Usage(input=sent, output=written, estimated=True)
        lags = not complete and written > usage.output
        counts = events.Counts(
            input=usage.input,
            output=written if lags else usage.output,
            cached=usage.cached,
            cache_written=usage.cache_written,
            reasoning=usage.reasoning,
            cost=usage.cost,
        )
        return counts, usage.estimated or lags

    def complete_batch(self) -> list[Event]:
        """Return the `execute` event that native calls lack, or nothing."""
        out: list[Event] = []
        if self.calls and not self.executed:
            self._on_execute(parts.Execute(), out)
        return out

    def _on_text(self, part: parts.Text | parts.Thought, kind: BlockKind, out: list[Event]) -> None:
        """Add text to the open block, opening it if need be; a part of another block waits."""
        block = self._block
        if block is None or block.kind != kind or block.key != part.block:
            # the provider interleaves two blocks: the later one waits until this one closes
            if block is not None and part.block and block.key and block.key != part.block:
                self._waiting.setdefault(part.block, []).append(part)
                return
            self._close_block(out)
            space = ""
            if kind == "respond":
                space, self._space = self._space, ""
            block = self._block = TextBlock(kind, self._new_block_id(), part.block, space)
        if isinstance(part, parts.Thought):
            block.merge_thought(part)
        if text := block.add(replace_surrogates(part.text)):
            out.append(events.Delta(block=block.id, of=kind, text=text, **self._common_fields))

    def _on_answer(self, part: parts.Answer, out: list[Event]) -> None:
        """Add the typed answer that a model sends as arguments of the final tool (`typed`).

        The answer is a text of its own; the name of its deltas is `Answer.APART`.
        """
        if self._block is not None and self._block.key != part.block:
            self._end_text(out)
        fresh: list[Event] = []
        self._on_text(parts.Text(part.text, part.block), "respond", fresh)
        for event in fresh:
            delta = isinstance(event, events.Delta)
            out.append(msgspec.structs.replace(event, name=Answer.APART) if delta else event)
        if self._block is not None:
            self._block.by_final_tool = True

    def _close_block(self, out: list[Event], *, incomplete: bool = False) -> None:
        """Add the event of the open text or thought, if any; white space alone yields no event.

        The white space of an answer that has begun goes to `_space`.
        """
        block, self._block = self._block, None
        if block is None:
            return
        if block.empty:
            if block.kind == "respond" and self._text_begun:
                self._space = block.space
            return
        common: dict[str, Any] = {
            "content": block.text,
            "block": block.id,
            "incomplete": incomplete,
            **self._common_fields,
        }
        if block.kind == "think":
            out.append(events.Think(attributes=block.attributes, opaque=block.opaque, **common))
        else:
            self._text_begun = True
            extra = {Answer.TYPED: ""} if block.by_final_tool else None
            out.append(events.Respond(extra=extra, **common))

    def _feed_waiting(self, out: list[Event]) -> None:
        """Feed the parts of the blocks that wait, the longest waiting first, until one is open."""
        if self._feeds_waiting:  # called by a part that is fed here: the loop below goes on
            return
        self._feeds_waiting = True
        while self._waiting and self._block is None:
            out.extend(self.feed(self._waiting.pop(next(iter(self._waiting)))))
        self._feeds_waiting = False

    def _on_close(self, part: parts.Close, out: list[Event]) -> None:
        if part.block and (self._block is None or self._block.key != part.block):
            if part.block in self._waiting:
                self._waiting[part.block].append(part)
            return
        self._close_block(out, incomplete=part.incomplete)
        self._feed_waiting(out)

    def _on_call_delta(self, part: parts.CallDelta, out: list[Event]) -> None:
        block = self._call_block_ids.get(part.index)
        if block is None:
            self._end_text(out)
            block = self._call_block_ids[part.index] = self._new_block_id()
        out.append(
            events.Delta(
                block=block,
                of="call",
                name=part.name,
                text=replace_surrogates(self._halves.feed(block, part.text)),
                **self._common_fields,
            )
        )

    def _end_text(self, out: list[Event], *, incomplete: bool = False) -> None:
        """Close all blocks of text: what follows, such as a call, separates it from later text."""
        self._close_block(out, incomplete=incomplete)
        while self._waiting:
            self._feed_waiting(out)
            self._close_block(out, incomplete=incomplete)
        self._text_begun, self._space = False, ""

    def _new_block_id(self) -> str:
        self._block_count += 1
        return f"{self.number}.{self._block_count}"

    def _on_call(self, part: parts.Call, out: list[Event]) -> None:
        """Add a whole call, in the block of its deltas; `faults_of_calls` names a faulty one."""
        self._end_text(out)
        block = self._call_block_ids.pop(part.index, "") or self._new_block_id()
        call_id, synthetic = self._ids.assign(part.call_id, self.number)
        event = events.Call(
            call_id=call_id,
            synthetic=synthetic,
            name=replace_surrogates(part.name),
            args=clean_value(part.args),
            raw_args=replace_surrogates(part.raw_args),
            block=block,
            batch=self._batch_id,
            index=len(self.calls),
            incomplete=part.incomplete,
            **self._common_fields,
        )
        out.append(event)
        self.all_calls.append(event)
        if part.fault:
            self.faults_of_calls[call_id] = part.fault
        if not (part.fault and part.incomplete):  # a call that was cut off is not in the batch
            self.calls.append(event)

    def _on_execute(self, part: parts.Execute, out: list[Event]) -> None:
        self._end_text(out)
        self.executed, self.malformed = True, part.fault
        ids = tuple(c.call_id for c in self.calls)
        out.append(events.Execute(batch=self._batch_id, calls=ids, **self._common_fields))

    def _on_end(self, part: parts.Part, out: list[Event]) -> None:
        self._end_text(out)
        self.ended = True

    def _on_fault(self, part: parts.Fault, out: list[Event]) -> None:
        self._end_text(out)
        event = events.Error(
            code=part.code,
            message=part.message,
            raw=replace_surrogates(part.raw),
            position=part.position,
            retryable=part.retryable,
            **self._common_fields,
        )
        out.append(event)
        (self.feedback if part.feedback else self.faults).append(event)

    def _on_continued(self, part: parts.Continued, out: list[Event]) -> None:
        self.continued += 1

    def _on_usage(self, part: parts.Usage, out: list[Event]) -> None:
        self.usage = part

    def _on_finish(self, part: parts.Finish, out: list[Event]) -> None:
        self.finish = part.reason

    def _on_head(self, part: parts.Head, out: list[Event]) -> None:
        self.head = part

    def _on_extra(self, part: parts.Extra, out: list[Event]) -> None:
        out.append(self._make_extension(part.namespace, part.name, part.payload))

    def _on_resend(self, part: parts.Resend, out: list[Event]) -> None:
        self._end_text(out)
        out.append(self._make_extension(part.provider, RESEND, part.payload))

    def _make_extension(self, namespace: str, name: str, payload: Any) -> Event:
        fields = {"payload": clean_value(payload), **self._common_fields}
        return events.Extension(namespace=namespace, name=name, **fields)


HARMLESS = frozenset({"forged_results", "incomplete"})  # codes of faults that let calls run

# type of a part -> the method that handles it; a part of another type yields no event
_HANDLERS: dict[type[parts.Part], Callable[[Turn, Any, list[Event]], None]] = {
    parts.Answer: Turn._on_answer,
    parts.Close: Turn._on_close,
    parts.CallDelta: Turn._on_call_delta,
    parts.Call: Turn._on_call,
    parts.Execute: Turn._on_execute,
    parts.End: Turn._on_end,
    parts.Fault: Turn._on_fault,
    parts.Continued: Turn._on_continued,
    parts.Usage: Turn._on_usage,
    parts.Finish: Turn._on_finish,
    parts.Head: Turn._on_head,
    parts.Extra: Turn._on_extra,
    parts.Resend: Turn._on_resend,
}
