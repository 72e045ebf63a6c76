"""The contract of a codec: one format in which a run travels, read into canonical events and
written from them.

A codec module offers an instance as `codec`. It is stateless; each stream has a decoder or an
encoder of its own.

    decoder = codec.decoder()          encoder = codec.encoder()
    events  = decoder.feed(chunk)      texts   = encoder.feed(event)
    events += decoder.close()          texts  += encoder.close()

Rules
- The events of a stream do not depend on how its bytes are chunked. Only `tick`, which a live
  watcher calls after each piece and while none comes, makes time count. Live deltas come out among
  the events (`type == "delta"`), and every block is closed by its complete event, so deltas may be
  left out.
- Unknown types become `extension` events of the codec's namespace, unknown fields are kept in
  `extra[codec]`; both come out unchanged.
- Nothing canonical is hidden in a foreign field: what a format has no word for is lost, and every
  loss is listed in `lossy`, counted in `losses`, and refused with `strict` (WireError).
- An encoder gives complete units of text: a JSON line without its newline, or an SSE frame with its
  blank line.
- No exception but WireError (strict) escapes, whatever the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from ..errors import UsageError, unknown_name
from ..events import TYPES, Delta, Event, Extension, Node, Unknown
from ..events.text import Texts
from ..wire.json_text import dumps, loads, plain
from .framing import MEDIA, Framing, Item, Unframer, frame
from .losses import Losses
from .provenance import foreign, is_derived, note_of

#: Fields that a reader of any format makes anew; their loss is a detail.
DETAILS = frozenset(
    {"block", "batch", "index", "chunks", "synthetic", "call_id", "raw_args", "calls"}
)
ENVELOPE = ("run", "turn", "ts", "path", "span", "parent")
REASONS = {
    "envelope": "the format has no place for it; a reader makes it anew",
    "field": "the format has no such field",
    "kind": "the format has no such event",
    "reply": "the format has no text given anew; both stand there",
    "nested": "the format knows no runs inside a run; what a sub-agent did is left out, its result is there",
    "extra": "unknown fields of another format",
    "object": "it is not a JSON object",
    "deep": "its values are nested too deeply",
    "value": "it is not a JSON value; the nearest one took its place",
    "frame id": "the format has no ids of frames; a server numbers its own",
    "frame name": "the format has no names of frames; the kind is in the data",
}


class Decoder(Protocol):
    """Reads one stream."""

    losses: Losses

    def feed(self, data: bytes | str) -> list[Event]:
        """Return the events that `data` completes."""

    def read(self, obj: Any) -> list[Event]:
        """Return the events of one object that somebody else has parsed (an async iterator of
        dicts).
        """

    def tick(self, now: float) -> list[Event]:
        """Return what has been held back long enough at `now` (s, of a monotonic clock). Called
        while a live stream is watched.
        """

    def close(self) -> list[Event]:
        """The stream is over: return what was held back; open blocks are closed as incomplete."""


class Encoder(Protocol):
    """Writes one stream."""

    losses: Losses
    framing: Framing

    def feed(self, event: Event) -> list[str]:
        """Return the units of text that `event` completes."""

    def close(self) -> list[str]:
        """Return what was held back."""

    def items(self, event: Event | None) -> list[Item]:
        """As `feed` (None: as `close`), before framing: for a server that gives frames ids of its
        own.
        """


class Reader(Protocol):
    """A format's own half of a decoder: objects in, events out. One that holds back for a time also
    has `tick`, see Decoder.
    """

    def read(self, item: Item) -> list[Event]:
        """Return the events of one object."""

    def close(self) -> list[Event]:
        """Return what was held back."""


class Writer(Protocol):
    """A format's own half of an encoder: events in, objects out."""

    def write(self, event: Event) -> list[Item]:
        """Return the objects of one event; one that is lost has been counted before."""

    def close(self) -> list[Item]:
        """Return what was held back."""


class Options(msgspec.Struct, frozen=True):
    """How a stream is to be written. `form`: one of the codec's forms; `conversation`: its id where
    the format has one; `earlier`: how many runs the conversation had in other streams before;
    `asked`: the reader is a client that knows what it asked.
    """

    form: str = ""
    framing: Framing = "ndjson"
    conversation: str = ""
    earlier: int = 0
    asked: bool = False


class Codec(msgspec.Struct, frozen=True, kw_only=True):
    """One format.

    `carries` maps each kind it can write to the fields it carries; `lossy` gives reasons for kinds
    (and `kind.field`) it cannot carry. `adds` are kinds that appear when our own runs are read back
    (nodes and statuses that the format demands). `envelope` are the envelope fields it carries,
    `nests` says that events of sub-agents have a place in it, `interleaves` that runs of one stream
    may overlap, `framed` that the name and id of an SSE frame mean something, `replies` that it
    gives a text whole after its pieces. `headers` are HTTP headers that its receivers want. `forms`
    are its variants, the first being the default, written `name:form`. `fast` is a decoder and an
    encoder that go other ways than the reader and writer.
    """

    name: str
    title: str
    framing: Framing
    reader: Callable[[Losses], Reader]
    writer: Callable[[Losses, Options], Writer]
    score: Callable[[Item], float]
    carries: Mapping[str, frozenset[str]]
    lossy: Mapping[str, str]
    adds: frozenset[str] = frozenset()
    envelope: frozenset[str] = frozenset()
    forms: tuple[str, ...] = ("",)
    nests: bool = False
    interleaves: bool = False
    framed: bool = False
    replies: bool = False
    headers: Mapping[str, str] = {}
    fast: tuple[Callable[..., Decoder], Callable[..., Encoder]] | None = None

    @property
    def media_type(self) -> str:
        """The media type of the format in its own framing."""
        return MEDIA[self.framing]

    def decoder(self, *, strict: bool = False) -> Decoder:
        """Return a decoder for one stream, in either framing."""
        return self.fast[0](strict) if self.fast else StreamDecoder(self, strict)

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
        """Return an encoder for one stream; see Options. Raises UsageError on an unknown form or
        framing.
        """
        if form and form not in self.forms:
            raise UsageError(
                f"{self.name} has no form {form!r}. Its forms: {', '.join(f for f in self.forms if f) or 'one only'}."
            )
        if framing is not None and framing not in MEDIA:
            raise UsageError(unknown_name("framing", framing, MEDIA))
        options = Options(
            form or self.forms[0], framing or self.framing, conversation, earlier, asked
        )
        return self.fast[1](strict, options) if self.fast else StreamEncoder(self, strict, options)

    def sniff(self, lines: Sequence[str]) -> float:
        """Return how likely `lines` (JSON objects or SSE lines) are of this format: 0 to 1."""
        unframer = Unframer(Losses())
        items = [*unframer.feed("\n".join(lines) + "\n"), *unframer.close()]
        scores = [self.score(item) for item in items if isinstance(item.obj, dict)]
        return sum(scores) / len(scores) if scores else 0.0


class StreamDecoder:
    """A decoder made of the framing and a format's reader."""

    def __init__(self, codec: Codec, strict: bool) -> None:
        self.losses = Losses(strict=strict)
        self._unframer = Unframer(self.losses)
        self._reader = codec.reader(self.losses)
        self._framed = codec.framed

    def feed(self, data: bytes | str) -> list[Event]:
        """See Decoder."""
        return self._read(self._unframer.feed(data))

    def read(self, obj: Any) -> list[Event]:
        """See Decoder."""
        return self._read(handed(obj, self.losses))

    def tick(self, now: float) -> list[Event]:
        """See Decoder."""
        tick = getattr(self._reader, "tick", None)
        return tick(now) if tick is not None else []

    def close(self) -> list[Event]:
        """See Decoder."""
        return [*self._read(self._unframer.close()), *self._reader.close()]

    def _read(self, items: Iterable[Item]) -> list[Event]:
        out: list[Event] = []
        for item in items:
            if not isinstance(item.obj, dict):
                self.losses.add("malformed line", REASONS["object"], raw=dumps(item.obj))
                continue
            if not self._framed and (item.event not in ("", "message") or item.id is not None):
                self._unused(item)
            try:
                out += self._reader.read(item)
            except RecursionError:
                self.losses.add("malformed line", REASONS["deep"])
        return out

    def _unused(self, item: Item) -> None:
        """Count what framed an object of a format that does not use it; a name that the object says
        again is a detail.
        """
        if item.event not in ("", "message"):
            said = item.event in (item.obj.get("type"), item.obj.get("kind"))
            self.losses.add("frame name", REASONS["frame name"], detail=said)
        if item.id is not None:
            self.losses.add("frame id", REASONS["frame id"], detail=True)


def handed(obj: Any, losses: Losses) -> list[Item]:
    """Return an object that a program handed over as the item of a stream; what of it is no JSON is
    counted.
    """
    value, changed = plain(obj)
    if changed and value is None:
        losses.add("malformed line", REASONS["deep"])
        return []
    if changed:
        losses.add("value that is not JSON", REASONS["value"])
    return [Item(value)]


class StreamEncoder:
    """An encoder made of a format's writer and the framing; it counts what the format
    cannot carry.
    """

    def __init__(self, codec: Codec, strict: bool, options: Options) -> None:
        self.losses = Losses(strict=strict)
        self.framing = options.framing
        self._codec = codec
        self._writer = codec.writer(self.losses, options)
        self._texts = Texts()
        self._missing = {kind: _missing(codec, kind) for kind in TYPES}

    def feed(self, event: Event) -> list[str]:
        """See Encoder."""
        return [frame(item, self.framing) for item in self.items(event)]

    def close(self) -> list[str]:
        """See Encoder."""
        return [frame(item, self.framing) for item in self.items(None)]

    def items(self, event: Event | None) -> list[Item]:
        """See Encoder."""
        if event is None:
            return self._writer.close()
        step = (
            ""
            if event.span and (event.parent or type(event) is not Node)
            else self._texts.add(event)
        )
        if (
            event.span
            and type(event) is not Node
            and not self._codec.nests
            and note_of(event, self._codec.name) is None
        ):
            self.losses.add("nested events", REASONS["nested"])
            return []
        if type(event) is not Delta and not is_derived(event, self._codec.name):
            self._count(event, anew=step == "instead")
        try:
            return self._writer.write(event)
        except RecursionError:
            self.losses.add(event.type, REASONS["deep"])
            return []

    def _count(self, event: Event, *, anew: bool) -> None:
        codec, kind = self._codec, event.type
        if note_of(event, codec.name) is not None:
            return  # it came from this format, and its note holds what the fields do not
        if (
            kind not in codec.carries
            or isinstance(event, Unknown)
            or not _at_home(event, codec.name)
        ):
            self.losses.add(kind, codec.lossy.get(kind, REASONS["kind"]))
            return
        for field, default, reason, detail in self._missing[kind]:
            if getattr(event, field) != default:
                self.losses.add(f"{kind}.{field}", reason, detail=detail)
        for field in ENVELOPE:
            if field not in codec.envelope and getattr(event, field):
                self.losses.add(f"envelope.{field}", REASONS["envelope"], detail=True)
        if anew and not codec.replies:
            self.losses.add(f"{kind}.reply", REASONS["reply"])
        if event.extra and foreign(event, codec.name):
            self.losses.add("extra", REASONS["extra"])


def _missing(codec: Codec, kind: str) -> list[tuple[str, Any, str, bool]]:
    """Return (field, default, reason, detail) for each field of `kind` that the codec does not
    carry.
    """
    blank = TYPES[kind]()
    fields = [
        f
        for f in TYPES[kind].__struct_fields__
        if f not in Event.__struct_fields__ and f not in codec.carries.get(kind, ())
    ]
    return [
        (f, getattr(blank, f), codec.lossy.get(f"{kind}.{f}", REASONS["field"]), f in DETAILS)
        for f in fields
    ]


def _at_home(event: Event, codec: str) -> bool:
    """False for an extension that belongs to another format."""
    return not isinstance(event, Extension) or event.namespace == codec


__all__ = [
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
