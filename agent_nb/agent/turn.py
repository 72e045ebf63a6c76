"""One model turn: parts in, events out.

Why: this is the only place where parts become events, so ids, the opening and closing of blocks,
and what a cut stream leaves are decided once for all providers and dialects.

Rules
- A block closes before the next opens. Parts of other provider blocks wait, in order of first
  appearance.
- White space at the start of a block is held back until text follows; a block of white space alone
  yields no event.
- White space between two blocks of one text (`events.text`) becomes the start of the later block.
- A block that is cut off is closed with `incomplete=True`.
- Every call gets an id that is unique in the run; one that the model did not supply is `synthetic`.
- Lone surrogates become U+FFFD: they can be neither saved nor sent.
- No I/O, no clock; `feed` and `close` return events without `seq` and `ts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from .. import events
from ..events import APART, RESEND, TYPED, Event
from ..models import parts
from ..wire import replace_surrogates
from .call_ids import CallIds
from .clean_json import clean_value
from .text_block import Kind, TextBlock


class Turn:
    """The events of one model turn, number `number` of its run."""

    def __init__(
        self, number: int, ids: CallIds | None = None, *, span: str = "", parent: str = ""
    ) -> None:
        self.number = number
        self.calls: list[events.Call] = []  # of the batch, in order
        self.rejected: list[tuple[events.Call, str]] = []  # with the reason
        self.feedback: list[events.Error] = []  # errors that go back to the model
        self.faults: list[events.Error] = []  # other errors
        self.executed = False
        self.malformed = ""  # why a call of the batch is none
        self.ended = False
        self.continued = 0  # requests of this turn beyond the first
        self.usage: parts.Usage | None = None
        self.finish = ""
        self.head = parts.Head()
        self._ids = ids or CallIds()
        self._where: dict[str, Any] = {
            "turn": number,
            "span": span,
            "parent": parent,
            "origin": "model",
        }
        self._open: TextBlock | None = None
        self._talking = False  # a text has begun and may continue
        self._blank = ""  # white space since its last block
        self._waiting: dict[str, list[parts.Part]] = {}
        self._count = 0
        self._call_blocks: dict[int, str] = {}
        self._batch = f"{number}.batch1"

    def feed(self, batch: Iterable[parts.Part]) -> list[Event]:
        """Return the events that a batch of parts completes, deltas included."""
        out: list[Event] = []
        for part in batch:
            kind = type(part)
            if kind is parts.Text or kind is parts.Thought:
                self._text(part, "respond" if kind is parts.Text else "think", out)  # type: ignore[arg-type]  # narrowed by kind
            else:
                _HANDLERS.get(kind, Turn._ignore)(self, part, out)
        return out

    def close(self, *, incomplete: bool = False) -> list[Event]:
        """Close open blocks and return their events; `incomplete`: the stream was cut off."""
        out: list[Event] = []
        self._close(out, incomplete=incomplete)
        while self._waiting:
            self._release(out)
            self._close(out, incomplete=incomplete)
        return out

    @property
    def all_calls(self) -> list[events.Call]:
        """The calls of the batch, then those that were rejected."""
        return [*self.calls, *(c for c, _ in self.rejected if c not in self.calls)]

    @property
    def broken(self) -> bool:
        """True if the provider reported a fault in mid-stream: no call of this turn may run."""
        return any(e.code not in HARMLESS for e in self.faults)

    def spent(self, sent: int, written: int, *, whole: bool = False) -> tuple[events.Counts, bool]:
        """Return the usage so far, and whether it is estimated.

        `sent`, `written`: our estimates in tokens, used where the provider reports nothing. Until a
        turn is `whole`, the provider's count of the output may lag behind.
        """
        usage = self.usage or parts.Usage(input=sent, output=written, estimated=True)
        behind = not whole and written > usage.output
        output = written if behind else usage.output
        counts = events.Counts(
            input=usage.input,
            output=output,
            cached=usage.cached,
            cache_written=usage.cache_written,
            reasoning=usage.reasoning,
            cost=usage.cost,
        )
        return counts, usage.estimated or behind

    def batch(self) -> list[Event]:
        """Return the `execute` event that native calls lack, or nothing."""
        out: list[Event] = []
        if self.calls and not self.executed:
            self._execute(parts.Execute(), out)
        return out

    def _text(self, part: parts.Text | parts.Thought, kind: Kind, out: list[Event]) -> None:
        block = self._open
        if block is None or block.kind != kind or block.key != part.block:
            if block is not None and part.block and block.key and block.key != part.block:
                self._waiting.setdefault(part.block, []).append(part)
                return
            self._close(out)
            self._count += 1
            held = self._blank if kind == "respond" else ""
            self._blank = "" if kind == "respond" else self._blank
            block_id = f"{self.number}.{self._count}"
            block = self._open = TextBlock(kind, block_id, part.block, held)
        if isinstance(part, parts.Thought):
            block.complete(part)
        if text := block.add(replace_surrogates(part.text)):
            out.append(events.Delta(block=block.id, of=kind, text=text, **self._where))

    def _answer(self, part: parts.Answer, out: list[Event]) -> None:
        """Write arguments of the final tool as a text of its own."""
        if self._open is not None and self._open.key != part.block:
            self._settle(out)
        fresh: list[Event] = []
        self._text(parts.Text(part.text, part.block), "respond", fresh)
        for event in fresh:
            delta = isinstance(event, events.Delta)
            out.append(msgspec.structs.replace(event, name=APART) if delta else event)
        if self._open is not None:
            self._open.apart = True

    def _close(self, out: list[Event], *, incomplete: bool = False) -> None:
        block, self._open = self._open, None
        if block is None:
            return
        if block.empty:
            self._blank = block.held if block.kind == "respond" and self._talking else self._blank
            return
        common: dict[str, Any] = {
            "content": block.text,
            "block": block.id,
            "incomplete": incomplete,
            **self._where,
        }
        if block.kind == "think":
            out.append(events.Think(attributes=block.attributes, opaque=block.opaque, **common))
        else:
            self._talking = True
            out.append(events.Respond(extra={TYPED: ""} if block.apart else None, **common))

    def _release(self, out: list[Event]) -> None:
        """Feed the parts of the block that has waited longest."""
        key = next(iter(self._waiting), None)
        if key is not None and self._open is None:
            out.extend(self.feed(self._waiting.pop(key)))

    def _closed(self, part: parts.Close, out: list[Event]) -> None:
        if part.block and (self._open is None or self._open.key != part.block):
            if part.block in self._waiting:
                self._waiting[part.block].append(part)
            return
        self._close(out, incomplete=part.incomplete)
        self._release(out)

    def _call_delta(self, part: parts.CallDelta, out: list[Event]) -> None:
        block = self._call_blocks.get(part.index)
        if block is None:
            self._settle(out)
            block = self._new_call_block(part.index)
        out.append(
            events.Delta(
                block=block,
                of="call",
                name=part.name,
                text=replace_surrogates(part.text),
                **self._where,
            )
        )

    def _settle(self, out: list[Event]) -> None:
        """Close open text: what follows, such as a call, separates it from later text."""
        self._close(out)
        while self._waiting:
            self._release(out)
            self._close(out)
        self._talking, self._blank = False, ""

    def _new_call_block(self, index: int) -> str:
        self._count += 1
        block = self._call_blocks[index] = f"{self.number}.{self._count}"
        return block

    def _call(self, part: parts.Call, out: list[Event]) -> None:
        self._settle(out)
        block = self._call_blocks.pop(part.index, None) or self._new_call_block(part.index)
        self._call_blocks.pop(part.index, None)
        call_id, synthetic = self._ids.take(part.call_id, self.number)
        event = events.Call(
            call_id=call_id,
            synthetic=synthetic,
            name=replace_surrogates(part.name),
            args=clean_value(part.args),
            raw_args=replace_surrogates(part.raw_args),
            block=block,
            batch=self._batch,
            index=len(self.calls),
            incomplete=part.incomplete,
            **self._where,
        )
        out.append(event)
        if part.fault and part.incomplete:
            self.rejected.append((event, part.fault))
        else:
            self.calls.append(event)
            if part.fault:
                self.rejected.append((event, part.fault))

    def _execute(self, part: parts.Execute, out: list[Event]) -> None:
        self._settle(out)
        self.executed, self.malformed = True, part.fault
        ids = tuple(c.call_id for c in self.calls)
        out.append(events.Execute(batch=self._batch, calls=ids, **self._where))

    def _end(self, part: parts.Part, out: list[Event]) -> None:
        self._settle(out)
        self.ended = True

    def _fault(self, part: parts.Fault, out: list[Event]) -> None:
        self._settle(out)
        event = events.Error(
            code=part.code,
            message=part.message,
            raw=replace_surrogates(part.raw),
            position=part.position,
            retryable=part.retryable,
            **self._where,
        )
        out.append(event)
        (self.feedback if part.feedback else self.faults).append(event)

    def _continued(self, part: parts.Continued, out: list[Event]) -> None:
        self.continued += 1

    def _usage(self, part: parts.Usage, out: list[Event]) -> None:
        self.usage = part

    def _finish(self, part: parts.Finish, out: list[Event]) -> None:
        self.finish = part.reason

    def _head(self, part: parts.Head, out: list[Event]) -> None:
        self.head = part

    def _extra(self, part: parts.Extra, out: list[Event]) -> None:
        out.append(
            events.Extension(
                namespace=part.namespace,
                name=part.name,
                payload=clean_value(part.payload),
                **self._where,
            )
        )

    def _resend(self, part: parts.Resend, out: list[Event]) -> None:
        self._settle(out)
        out.append(
            events.Extension(
                namespace=part.provider,
                name=RESEND,
                payload=clean_value(part.payload),
                **self._where,
            )
        )

    def _ignore(self, part: parts.Part, out: list[Event]) -> None:
        """Ignore a part that yields no event."""


HARMLESS = frozenset({"forged_results", "incomplete"})  # faults after which calls may still run

_HANDLERS: dict[type[parts.Part], Callable[[Turn, Any, list[Event]], None]] = {
    parts.Answer: Turn._answer,
    parts.Close: Turn._closed,
    parts.CallDelta: Turn._call_delta,
    parts.Call: Turn._call,
    parts.Execute: Turn._execute,
    parts.End: Turn._end,
    parts.Fault: Turn._fault,
    parts.Continued: Turn._continued,
    parts.Usage: Turn._usage,
    parts.Finish: Turn._finish,
    parts.Head: Turn._head,
    parts.Extra: Turn._extra,
    parts.Resend: Turn._resend,
}
