"""The pipeline of one model turn: model parts -> secret filter -> dialect -> turn -> events.

No dialect, log or view may see a text before its secrets are hidden. Text that the filter holds
back is passed on before a part of another kind or block. Once the dialect has stopped (after a
batch or the end marker), only usage, finish reason, head and continuation are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..dialects import CallAssembler, Dialect, Parser
from ..events import Event
from ..host import load_plugin
from ..models import Decoder, parts
from ..wire import Redaction, Redactor
from .turn import Turn
from .typed.answer_check import TurnCheck

LONGEST_TURN = 64_000_000  # characters
Streamed = parts.Text | parts.Thought | parts.CallDelta  # parts that come in pieces


class TurnReader:
    """Turns the parts of one model turn into events.

    `check` checks its answer (None: answers have no type). `received`: a part has come, so the
    request may not be repeated. `size`: characters of text, reasoning and arguments so far.
    """

    def __init__(
        self,
        dialect: Dialect,
        turn: Turn,
        redaction: Redaction | None = None,
        check: TurnCheck | None = None,
    ) -> None:
        self._check = check
        self.turn = turn
        self.received = False
        self.native = dialect.native
        self._parser: Parser = dialect.parser()
        self._calls = CallAssembler()
        self._redaction = redaction
        # One secret filter for consecutive parts of one kind and block (or index), since a secret
        # may be split over them. It may hold back text of the newest part.
        self._filter: Redactor | None = None
        self._filter_key: tuple[type[parts.Part], str | int] | None = None
        self._newest_part: parts.Part = parts.Text("")
        self.size = 0
        self._full = False  # the turn is longer than `LONGEST_TURN`

    @property
    def stopped(self) -> bool:
        """Whether the rest of the response is not needed."""
        return self._parser.stopped or self._full

    def feed(self, batch: Iterable[parts.Part]) -> list[Event]:
        """Return the events that a batch of parts yields, deltas included."""
        out: list[parts.Part] = []
        self.received = self.received or bool(batch)
        for part in batch:
            if isinstance(part, Streamed):
                if not self.stopped:
                    self._pass_streamed(part, out)
            elif isinstance(part, parts.Usage | parts.Finish | parts.Head | parts.Continued):
                out.append(self._clean(part))
            elif not self.stopped:
                self._flush_filter(out)
                # a whole call takes the place of its deltas, whose characters are counted already
                streamed = isinstance(part, parts.Call) and self._calls.drop(part.index)
                out.append(self._clean(part))
                if isinstance(part, parts.Call) and not streamed:
                    self._count(len(part.raw_args), out)
        fresh = self._to_events(out)
        return fresh if self._check is None else self._check.feed(fresh)

    def close(self, *, incomplete: bool = False) -> list[Event]:
        """End the response (`incomplete`: cut off) and return the last events.

        Complete native calls form a batch (`execute`); after a cut they do not run.
        """
        out: list[parts.Part] = []
        self._flush_filter(out)
        if not self._parser.stopped and incomplete:
            out.extend(_mark_incomplete(self._parser.close(cut=True)))
        elif not self._parser.stopped:
            out.extend(self._parser.close())
        out.extend(self._calls.close(incomplete=incomplete))
        stored = self._to_events(out)
        stored += self.turn.close(incomplete=incomplete)
        if self.native and not incomplete:
            stored += self.turn.complete_batch()
        return stored if self._check is None else self._check.close(stored, incomplete=incomplete)

    def _to_events(self, out: list[parts.Part]) -> list[Event]:
        """Return the events of parts; calls of the final tool become text."""
        final = self._check.final_tool if self._check is not None else None
        return self.turn.feed(out if final is None else final.feed(out))

    def _pass_streamed(self, part: Streamed, out: list[parts.Part]) -> None:
        """Pass on a part that comes in pieces."""
        self._hide_secrets(part, out)
        self._count(len(part.text), out)

    def _count(self, characters: int, out: list[parts.Part]) -> None:
        """Count the characters of a part; cut the turn off at `LONGEST_TURN` of them."""
        self.size += characters
        if self.size > LONGEST_TURN:
            self._full = True
            self._flush_filter(out)
            message = f"The answer is longer than {LONGEST_TURN:,} characters; it was cut off there. Ask for less, or lower max_tokens."
            out.append(parts.Fault("size", message))

    def _hide_secrets(self, part: Streamed, out: list[parts.Part]) -> None:
        """Pass a part through the secret filter of its kind and block."""
        if self._redaction is None:
            self._parse(part, out)
            return
        key = (type(part), part.index if isinstance(part, parts.CallDelta) else part.block)
        if key != self._filter_key or self._filter is None:
            self._flush_filter(out)
            self._filter, self._filter_key = self._redaction.stream(), key
        text = self._filter.feed(part.text)
        self._newest_part = clean = self._clean(part) if _has_more_than_text(part) else part
        if clean is part and text == part.text:
            self._parse(part, out)
        else:
            self._parse(msgspec.structs.replace(clean, text=text), out)

    def _flush_filter(self, out: list[parts.Part]) -> None:
        """Pass on the text that the secret filter holds back, and end the filter."""
        ended, self._filter = self._filter, None
        if ended is not None and (text := ended.close()):
            self._parse(msgspec.structs.replace(self._newest_part, text=text), out)

    def _parse(self, part: parts.Part, out: list[parts.Part]) -> None:
        """Pass text to the dialect, deltas of calls to the assembler, and other parts on."""
        if isinstance(part, parts.Text):
            if part.text:
                parsed = self._parser.feed(part.text)
                out.extend(parsed if not part.block else _restore_block(parsed, part.block))
        elif isinstance(part, parts.CallDelta):
            self._calls.feed(part)
            out.append(part)
        else:
            out.append(part)

    def _clean(self, part: parts.Part) -> parts.Part:
        """Return a part without secrets; values that the provider needs back stay unchanged."""
        if self._redaction is None:
            return part
        fields = {name: getattr(part, name) for name in part.__struct_fields__}
        clean = self._redaction.fields(
            fields, ("payload", "opaque") if isinstance(part, parts.Resend) else ("opaque",)
        )
        return part if clean == fields else msgspec.structs.replace(part, **clean)


class AnswerReader:
    """Reads a model's answer to a request of other code (`tape`); `turn` has its usage."""

    def __init__(self, decoder: Decoder, redaction: Redaction | None = None) -> None:
        self.turn = Turn(1)
        self._decoder = decoder
        self._reader = TurnReader(load_plugin("dialects", "native"), self.turn, redaction)

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that `data`, bytes of the response, yields, deltas included."""
        return self._reader.feed(self._decoder.feed(data))

    def close(self) -> list[Event]:
        """End the answer and return the last events."""
        return self._reader.feed(self._decoder.close()) + self._reader.close()


def _has_more_than_text(part: Streamed) -> bool:
    if isinstance(part, parts.CallDelta):
        return bool(part.name or part.call_id)
    return isinstance(part, parts.Thought) and not (part.attributes is None and part.opaque is None)


def _mark_incomplete(closing: Sequence[parts.Part]) -> Iterable[parts.Part]:
    """Return the last parts of a parser with their blocks marked as incomplete, after a cut."""
    return [
        msgspec.structs.replace(p, incomplete=True) if isinstance(p, parts.Close) else p
        for p in closing
    ]


def _restore_block(parsed: Sequence[parts.Part], block: str) -> Iterable[parts.Part]:
    """Restore the provider's block id on the text among `parsed`."""
    return [parts.Text(p.text, block) if isinstance(p, parts.Text) else p for p in parsed]
