"""Read the `xml` dialect (seed 000, "LLM Wire Protocol"): `<think>`, `<execute>`, text, `<end>`.

Rules
- Markers are exact: lower case, no attributes, no spaces; `<end/>` and `<end />` count as `<end>`.
  `<respond>` tags are removed.
- A block ends at its closing tag; a tag inside a JSON string is text. A block that cannot be JSON
  (a raw line break in a string, a backslash outside one) ends at its first closing tag, so that an
  open quote cannot swallow the rest.
- A batch is all or nothing. A valid one stops the turn; a malformed one is a Fault that is fed back
  to the model, and reading continues.
- Only the system writes `<results>`: from the model they are the Fault `forged_results`; empty ones
  are ignored.
- `<execute>` or `<results>` followed by prose, without a closing tag in the next `PROSE`
  characters, is text: the model wrote about the protocol.
- An unclosed thought is incomplete. An unclosed block is a Fault, never a call; after a cut its
  calls are incomplete.
"""

from __future__ import annotations

import re

from ..models import Call, End, Execute, Fault
from .call_assembly import cut_calls
from .calls import Scan, read_batch, within_depth
from .markers import NO_TAGS, MarkerParser, ThoughtTags
from .scanner import find_marker_start

PROSE = 4096  # characters
LARGEST = 64 * 1024 * 1024  # characters of one block
KEPT = 64 * 1024  # characters of a block beyond the limit that its fault shows
EXAMPLE = '[{"name": "tool", "args": {"key": "value"}}]'

_PATTERN = (
    r"(?P<think><think>)|<(?P<block>execute|results)>|(?P<end><end ?/?>)|(?P<respond></?respond>)"
)
_WORDS = (
    "<think>",
    "<execute>",
    "<results>",
    "<end>",
    "<end/>",
    "<end />",
    "<respond>",
    "</respond>",
)
_blank = re.compile(r"\s*").match


class XmlParser(MarkerParser):
    """Reads one turn."""

    def __init__(self, tags: ThoughtTags = NO_TAGS) -> None:
        super().__init__(_PATTERN, _WORDS, tags)
        self._handlers |= {
            "think": self._think,
            "block": self._block,
            "end": self._end,
            "respond": self._respond,
        }
        self._responding = False
        self._calls = 0  # calls so far, those of malformed blocks included
        self._kind = ""  # of the block that is open
        self._scan: Scan | None = None
        self._prose = False

    def _think(self, match: re.Match[str]) -> None:
        self._begin_thought(match.end(), "</think>")

    def _end(self, match: re.Match[str]) -> None:
        self._shut()
        self._out.append(End())
        self._pos = match.end()
        self.stopped = True

    def _respond(self, match: re.Match[str]) -> None:
        opening = match[0] == "<respond>"
        if not opening and not self._responding:
            self._literal(match)
            return
        self._responding = opening
        self._pos = match.end()

    def _block(self, match: re.Match[str]) -> None:
        self._kind = match["block"]
        self._at = self._base + match.start()
        self._closing = f"</{self._kind}>"
        self._pos = match.end()
        self._keep(self._pos)
        self._scan, self._prose = None, False
        self._mode = self._head

    def _head(self) -> None:
        """Mode: the start of a block, which is JSON, JSON in a code fence, or prose."""
        self._pos = _blank(self._buf, self._pos).end()  # type: ignore[union-attr]  # the pattern matches everywhere
        first = self._buf[self._pos : self._pos + 3]
        if not self._final and (not first or ("```".startswith(first) and len(first) < 3)):
            return
        if first[:1] in ("[", "{"):
            self._scan = Scan("<", 1, index=self._calls, live=self._kind == "execute")
            self._shut()
            self._mode = self._json
            return
        self._prose = bool(first) and first != "```"
        self._mode = self._raw

    def _json(self) -> None:
        """Mode: JSON up to the closing tag outside its strings."""
        scan, buf = self._scan, self._buf
        assert scan is not None
        stop, pos = scan.run(buf, self._pos, self._out)
        while stop in ("sigil", "done"):
            if stop == "sigil":
                if buf.startswith(self._closing, pos):
                    self._finish(pos)
                    return
                if not self._final and self._closing.startswith(buf[pos:]):
                    stop = "more"
                    break
                pos += 1
            stop, pos = scan.run(buf, pos, self._out)
        self._pos = pos
        if stop == "more" and self._cut:
            self._unclosed()
        elif stop == "broken" or self._final:
            self._rewind()
            self._mode = self._raw
        elif self._length(pos) > LARGEST:
            self._too_large()

    def _raw(self) -> None:
        """Mode: a block that is not JSON, up to its first closing tag."""
        buf = self._buf
        last = self._start - self._size + PROSE + len(self._closing) if self._prose else len(buf)
        end = buf.find(self._closing, self._pos, last)
        stop = (
            end
            if end >= 0
            else len(buf)
            if self._final
            else find_marker_start(buf, self._pos, self._closing)
        )
        if self._prose and (self._length(stop) > PROSE or (end < 0 and self._final)):
            self._not_meant()
        elif end >= 0:
            self._finish(end)
        elif self._final:
            self._unclosed()
        elif self._length(stop) > LARGEST:
            self._too_large()
        else:
            self._pos = stop

    def _not_meant(self) -> None:
        """Treat the opening tag as text: it was mentioned, not used."""
        self._rewind()
        self._take(self._pos, self._text)
        self._say(f"<{self._kind}>")

    def _finish(self, end: int) -> None:
        if self._length(end) > LARGEST:
            self._too_large()
            return
        self._shut()
        closing = self._closing
        text = self._take(end, self._text)
        self._pos = end + len(closing)
        if self._kind == "results":
            self._forged(f"<results>{text}{closing}")
            return
        try:
            self._out.extend(self._batch(text))
        except ValueError as fault:
            self._malformed(f"<execute>{text}{closing}", str(fault))
            return
        self._out.append(Execute())
        self.stopped = True

    def _batch(self, text: str) -> list[Call]:
        if not text.strip():
            raise ValueError("it is empty")
        within_depth(self._scan.deepest if self._scan is not None else 0)
        return read_batch(text, self._calls)

    def _unclosed(self) -> None:
        self._shut()
        text = self._take(len(self._buf), self._text)
        raw = f"<{self._kind}>{text}"
        if self._cut and self._kind == "execute":
            self._out.extend(cut_calls(text, Scan("<", 1, index=self._calls), raw, self._at))
        elif self._kind == "results":
            self._forged(raw)
        else:
            self._malformed(raw, "its closing tag </execute> never came")

    def _malformed(self, raw: str, why: str) -> None:
        self._calls = self._scan.calls if self._scan is not None else self._calls
        message = f"The <execute> block was not run: {why}. It must hold a JSON array of calls, such as {EXAMPLE}."
        self._out.append(Fault("malformed_execute", message, raw, self._at, feedback=True))

    def _forged(self, raw: str) -> None:
        if not raw.removeprefix("<results>").removesuffix("</results>").strip():
            return
        message = "The <results> block was ignored: only the system writes results. Call a tool with <execute> and wait for them."
        self._out.append(Fault("forged_results", message, raw, self._at, feedback=True))

    def _too_large(self) -> None:
        self._shut()
        raw = f"<{self._kind}>{self._take(len(self._buf), self._text)}"[:KEPT]
        message = f"A <{self._kind}> block is larger than {LARGEST} characters; the turn was given up there."
        self._out.append(Fault("limit", message, raw, self._at))
        self.stopped = True
