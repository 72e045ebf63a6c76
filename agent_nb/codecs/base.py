"""The contract of a codec: how one format of runs is read into events and written from them.

`decode`, `watch`, the server and `export` take any codec, other packages' too. A codec package or
module defines an instance as `codec`. It is stateless; each stream has its own decoder or encoder
(`contract`).

    decoder = codec.decoder()          encoder = codec.encoder()
    events  = decoder.feed(chunk)      texts   = encoder.feed(event)
    events += decoder.close()          texts  += encoder.close()

Rules
- The events of a stream do not depend on how its bytes are chunked. Time counts only through
  `tick`, which a live watcher calls.
- Deltas are among the events. A caller may drop them: a complete event closes each block.
- Unknown types become `extension` events of the codec's namespace, unknown fields go into
  `extra[codec]`; both come out unchanged.
- A value for which the format has no field is lost: it is counted in `losses` (`lossy` may name
  the reason), and refused with `strict` (WireError). A writer hides it in no other field.
- Only WireError (strict) is raised, whatever the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..errors import UsageError, unknown_name
from ..wire import dumps, loads
from .contract import Decoder, Encoder, Options, Reader, Writer
from .framing import MEDIA, Framing, Item, Unframer
from .losses import Losses
from .provenance import is_derived, note_of
from .stream_decoder import StreamDecoder
from .stream_encoder import DETAILS, Capabilities, StreamEncoder


class Codec(Capabilities, frozen=True, kw_only=True):
    """One format: its reader and writer, and the parts of a run that it can carry."""

    title: str
    #: The framing it is written in by default; both framings can be read.
    framing: Framing
    reader: Callable[[Losses], Reader]
    writer: Callable[[Losses, Options], Writer]
    #: Returns how likely an object is of this format, from 0 to 1.
    score: Callable[[Item], float]
    #: Kinds that a run of ours gains when it is written and read back, because the format demands
    #: them: nodes, statuses.
    adds: frozenset[str] = frozenset()
    #: Its variants, which users write as `name:form`; the first is the default.
    forms: tuple[str, ...] = ("",)
    #: Runs of one stream may overlap.
    interleaves: bool = False
    #: The name and id of an SSE frame have a meaning.
    framed: bool = False
    #: Its streams may stop without an end marker: a run with a complete answer then counts as done.
    #: In other formats a run without an end marker is interrupted.
    may_lack_end: bool = False
    #: HTTP headers that its receivers need.
    headers: Mapping[str, str] = {}
    #: A faster decoder, which takes `strict`, and encoder, which takes `strict` and the `Options`;
    #: used instead of those built from `reader` and `writer`.
    fast: tuple[Callable[..., Decoder], Callable[..., Encoder]] | None = None

    @property
    def media_type(self) -> str:
        """The media type of the format in its own framing."""
        return MEDIA[self.framing]

    def check_form(self, form: str) -> None:
        """Raise UsageError for an unknown form; "" is the default."""
        if form and form not in self.forms:
            raise UsageError(
                f"{self.name} has no form {form!r}. Its forms: {', '.join(f for f in self.forms if f) or 'one only'}."
            )

    def decoder(self, *, strict: bool = False) -> Decoder:
        """Return a decoder for one stream, in either framing."""
        if self.fast:
            return self.fast[0](strict)
        losses = Losses(strict=strict)
        return StreamDecoder(self.reader(losses), losses, framed=self.framed)

    def encoder(
        self,
        *,
        strict: bool = False,
        framing: Framing | None = None,
        form: str = "",
        conversation: str = "",
        earlier: int = 0,
        asked: bool = False,
    ) -> Encoder:
        """Return an encoder for one stream; `strict`: a loss raises WireError. Else see `Options`.

        Raises UsageError on an unknown form or framing.
        """
        self.check_form(form)
        if framing is not None and framing not in MEDIA:
            raise UsageError(unknown_name("framing", framing, MEDIA))
        form, framing = form or self.forms[0], framing or self.framing
        options = Options(form, framing, conversation=conversation, earlier=earlier, asked=asked)
        if self.fast:
            return self.fast[1](strict, options)
        losses = Losses(strict=strict)
        return StreamEncoder(self, self.writer(losses, options), losses, options.framing)

    def sniff(self, lines: Sequence[str]) -> float:
        """Return how likely `lines` (JSON objects or SSE lines) are of this format: 0 to 1."""
        unframer = Unframer(Losses())
        items = [*unframer.feed("\n".join(lines) + "\n"), *unframer.close()]
        scores = [self.score(item) for item in items if isinstance(item.obj, dict)]
        return sum(scores) / len(scores) if scores else 0.0


__all__ = [
    "DETAILS",
    "Codec",
    "Decoder",
    "Encoder",
    "Item",
    "Losses",
    "Options",
    "Reader",
    "Writer",
    "dumps",
    "is_derived",
    "loads",
    "note_of",
]
