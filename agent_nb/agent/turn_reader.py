"""The way of one model turn: parts of a model -> secret filter -> dialect -> turn -> events.

Why one object: the loop, `parse`, the tape and the benchmarks take exactly the same way.

Rules
- Text goes through the secret filter and then the dialect; reasoning, call arguments and everything
  else that a provider says through the filter only.
- What a filter holds back is released before a part of another kind passes, so order is kept.
- Call fragments are assembled here; a call is complete when the model says so or the response ends.
- When the dialect has stopped (a batch is complete, the end is reached) later parts are dropped,
  usage aside.
- A turn of more than `LARGEST` characters is cut off there with a clear fault: nothing of it runs,
  what came is kept.
- No I/O and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..dialects.base import Dialect, Parser
from ..dialects.native import CallAssembler
from ..events import Event
from ..models import parts
from ..wire.redact import Redaction, Redactor
from .turn import Turn

LARGEST = 64_000_000


class Pipeline:
    """Reads one model turn."""

    def __init__(self, dialect: Dialect, turn: Turn, redaction: Redaction | None = None) -> None:
        self.turn = turn
        self.heard = False  # a part has come: the request may not be repeated
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
        """True when nothing more of this response is wanted."""
        return self._parser.stopped or self._full

    def feed(self, batch: Iterable[parts.Part]) -> list[Event]:
        """Return the events that a batch of parts completes."""
        out: list[parts.Part] = []
        self.heard = self.heard or bool(batch)
        for part in batch:
            if isinstance(part, parts.Text | parts.Thought | parts.CallDelta):
                if not self.stopped:
                    self._sized(part, out)
            elif isinstance(part, parts.Usage | parts.Finish | parts.Head | parts.Continued):
                out.append(self._clean(part))
            elif not self.stopped:
                self._release(out)
                self._other(part, out)
        return self.turn.feed(out)

    def close(self, *, incomplete: bool = False) -> list[Event]:
        """The response is over (`incomplete`: cut off): flush, close and return the last events.

        Native calls that came whole form a batch (`execute`); after a cut they do not run.
        """
        out: list[parts.Part] = []
        self._release(out)
        if not self._parser.stopped:
            out.extend(_cut(self._parser.close(cut=True)) if incomplete else self._parser.close())
        out.extend(self._calls.close(incomplete=incomplete))
        stored = self.turn.feed(out)
        stored += self.turn.close(incomplete=incomplete)
        if self.native and not incomplete:
            stored += self.turn.batch()
        return stored

    def _sized(
        self, part: parts.Text | parts.Thought | parts.CallDelta, out: list[parts.Part]
    ) -> None:
        self.size += len(part.text)
        self._filtered(part, out)
        if self.size > LARGEST:
            self._full = True
            self._release(out)
            words = f"The answer is longer than {LARGEST:,} characters; it was cut off there. Ask for less, or lower max_tokens."
            out.append(parts.Fault("size", words))

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
        found = self._filters.get(key)
        if found is None:
            found = self._filters[key] = self._redaction.stream()
        text = found.feed(part.text)
        kept = self._clean(part) if _says_more(part) else part
        if kept is part and text == part.text:
            self._plain(part, out)
        else:
            self._plain(msgspec.structs.replace(kept, text=text), out)

    def _release(self, out: list[parts.Part]) -> None:
        """Let the text pass that the filter in use holds back."""
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
        """Return a part that is no delta without secrets; what a provider wants back as it was
        keeps its signatures.
        """
        if self._redaction is None:
            return part
        said = {name: getattr(part, name) for name in part.__struct_fields__}
        clean = self._redaction.fields(
            said, ("payload", "opaque") if isinstance(part, parts.Resend) else ("opaque",)
        )
        return part if clean == said else msgspec.structs.replace(part, **clean)


def _says_more(part: parts.Text | parts.Thought | parts.CallDelta) -> bool:
    if isinstance(part, parts.CallDelta):
        return bool(part.name or part.call_id)
    return isinstance(part, parts.Thought) and not (part.attributes is None and part.opaque is None)


def _cut(closing: Sequence[parts.Part]) -> Iterable[parts.Part]:
    """Mark what a parser closes at its end as incomplete: the stream broke off there."""
    return [
        msgspec.structs.replace(p, incomplete=True) if isinstance(p, parts.Close) else p
        for p in closing
    ]


def _placed(parsed: Sequence[parts.Part], block: str) -> Iterable[parts.Part]:
    """Give the text among `parsed` back the provider's block id."""
    return [parts.Text(p.text, block) if isinstance(p, parts.Text) else p for p in parsed]
