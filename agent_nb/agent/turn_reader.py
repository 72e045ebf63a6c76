"""The pipeline of one model turn: model parts -> secret filter -> dialect -> turn -> events.

Rules
- Text passes the secret filter and then the dialect. Reasoning, call arguments and all else from
  the provider pass only the filter.
- Text that a filter holds back is released before a part of another kind passes, so order is kept.
- Call fragments are assembled here; a call is complete when the model says so or the response ends.
- Once the dialect has stopped (after a batch or the end marker), later parts are dropped, except
  usage and the like.
- A turn longer than `LARGEST` characters is cut off with a fault: what came is kept, nothing runs.
- No I/O and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..dialects import CallAssembler, Dialect, Parser
from ..events import Event
from ..models import parts
from ..wire import Redaction, Redactor
from .turn import Turn
from .typed.answer_check import TurnCheck

LARGEST = 64_000_000


class Pipeline:
    """Reads one model turn; `check` checks its answer, if answers have a type."""

    def __init__(
        self,
        dialect: Dialect,
        turn: Turn,
        redaction: Redaction | None = None,
        check: TurnCheck | None = None,
    ) -> None:
        self._check = check
        self.turn = turn
        self.received = False  # a part has come: the request may not be repeated
        self.native = dialect.native
        self._parser: Parser = dialect.parser()
        self._calls = CallAssembler()
        self._redaction = redaction
        self._filters: dict[tuple[type[parts.Part], str | int], Redactor] = {}
        self._passing: tuple[type[parts.Part], str | int] | None = None
        self._sample: parts.Part = parts.Text("")
        self.size = 0  # characters of text, reasoning and arguments so far
        self._full = False

    @property
    def stopped(self) -> bool:
        """True if the rest of the response is not needed."""
        return self._parser.stopped or self._full

    def feed(self, batch: Iterable[parts.Part]) -> list[Event]:
        """Return the events that a batch of parts completes."""
        out: list[parts.Part] = []
        self.received = self.received or bool(batch)
        for part in batch:
            if isinstance(part, parts.Text | parts.Thought | parts.CallDelta):
                if not self.stopped:
                    self._sized(part, out)
            elif isinstance(part, parts.Usage | parts.Finish | parts.Head | parts.Continued):
                out.append(self._clean(part))
            elif not self.stopped:
                self._release(out)
                self._other(part, out)
        fresh = self._turned(out)
        return fresh if self._check is None else self._check.feed(fresh)

    def close(self, *, incomplete: bool = False) -> list[Event]:
        """End the response (`incomplete`: cut off) and return the last events.

        Complete native calls form a batch (`execute`); after a cut they do not run.
        """
        out: list[parts.Part] = []
        self._release(out)
        if not self._parser.stopped:
            out.extend(_cut(self._parser.close(cut=True)) if incomplete else self._parser.close())
        out.extend(self._calls.close(incomplete=incomplete))
        stored = self._turned(out)
        stored += self.turn.close(incomplete=incomplete)
        if self.native and not incomplete:
            stored += self.turn.batch()
        return stored if self._check is None else self._check.close(stored, incomplete=incomplete)

    def _turned(self, out: list[parts.Part]) -> list[Event]:
        """Return the events of parts; calls of the final tool are text."""
        final = self._check.final_tool if self._check is not None else None
        return self.turn.feed(out if final is None else final.feed(out))

    def _sized(
        self, part: parts.Text | parts.Thought | parts.CallDelta, out: list[parts.Part]
    ) -> None:
        self.size += len(part.text)
        self._filtered(part, out)
        if self.size > LARGEST:
            self._full = True
            self._release(out)
            message = f"The answer is longer than {LARGEST:,} characters; it was cut off there. Ask for less, or lower max_tokens."
            out.append(parts.Fault("size", message))

    def _filtered(
        self, part: parts.Text | parts.Thought | parts.CallDelta, out: list[parts.Part]
    ) -> None:
        if self._redaction is None:
            self._plain(part, out)
            return
        key = (type(part), part.index if isinstance(part, parts.CallDelta) else part.block)
        if key != self._passing:
            self._release(out)
            self._passing = key
        self._sample = part
        secrets_filter = self._filters.get(key)
        if secrets_filter is None:
            secrets_filter = self._filters[key] = self._redaction.stream()
        text = secrets_filter.feed(part.text)
        clean = self._clean(part) if _says_more(part) else part
        if clean is part and text == part.text:
            self._plain(part, out)
        else:
            self._plain(msgspec.structs.replace(clean, text=text), out)

    def _release(self, out: list[parts.Part]) -> None:
        """Pass on the text that the current filter holds back."""
        if self._passing is None:
            return
        rest = self._filters.pop(self._passing).close()
        if rest:
            self._plain(msgspec.structs.replace(self._sample, text=rest), out)
        self._passing = None

    def _plain(self, part: parts.Part, out: list[parts.Part]) -> None:
        if isinstance(part, parts.Text):
            if part.text:
                parsed = self._parser.feed(part.text)
                out.extend(parsed if not part.block else _placed(parsed, part.block))
        elif isinstance(part, parts.CallDelta):
            self._calls.feed(part)
            out.append(part)
        else:
            out.append(part)

    def _other(self, part: parts.Part, out: list[parts.Part]) -> None:
        if isinstance(part, parts.Call):
            self._calls.drop(part.index)
        out.append(self._clean(part))

    def _clean(self, part: parts.Part) -> parts.Part:
        """Return a part without secrets; values that the provider needs back stay unchanged."""
        if self._redaction is None:
            return part
        fields = {name: getattr(part, name) for name in part.__struct_fields__}
        clean = self._redaction.fields(
            fields, ("payload", "opaque") if isinstance(part, parts.Resend) else ("opaque",)
        )
        return part if clean == fields else msgspec.structs.replace(part, **clean)


def _says_more(part: parts.Text | parts.Thought | parts.CallDelta) -> bool:
    if isinstance(part, parts.CallDelta):
        return bool(part.name or part.call_id)
    return isinstance(part, parts.Thought) and not (part.attributes is None and part.opaque is None)


def _cut(closing: Sequence[parts.Part]) -> Iterable[parts.Part]:
    """Mark the closing parts of a parser as incomplete, after a cut."""
    return [
        msgspec.structs.replace(p, incomplete=True) if isinstance(p, parts.Close) else p
        for p in closing
    ]


def _placed(parsed: Sequence[parts.Part], block: str) -> Iterable[parts.Part]:
    """Restore the provider's block id on the text among `parsed`."""
    return [parts.Text(p.text, block) if isinstance(p, parts.Text) else p for p in parsed]
