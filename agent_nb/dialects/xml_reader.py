"""Reads the `xml` dialect (seed 000, "LLM Wire Protocol"): `<think>`, `<execute>`, text, `<end>`.

`xml` teaches and writes it; most here is about turns that are malformed, forged or cut.

Rules
- Markers are exact: lower case, no attributes, no spaces; only `<end>` may have a space, a slash or
  both before its `>`.
- A tag inside a JSON string is text. A block that cannot be JSON ends at its first closing tag, so
  that an open quote cannot swallow what follows.
- An `<execute>` block is a batch of calls, all or nothing. A valid one stops the turn; a malformed
  one becomes a Fault that goes back to the model, and reading continues.
- Only the system may write `<results>`: if the model writes them, they become the Fault
  `forged_results`; empty ones are ignored.
"""

from __future__ import annotations

import re

from ..models import Call, End, Execute
from .call_assembly import cut_calls
from .call_scan import CallScan
from .calls import check_depth, read_batch
from .markers import MarkerParser
from .scanner import find_marker_start
from .tags import NO_TAGS, ThoughtTags

LONGEST_MENTION = 4096  # characters of prose after which an opening tag is only a mention
LONGEST_BLOCK = 64 * 1024 * 1024  # characters of one block; a larger one ends the turn
EXAMPLE = '[{"name": "tool", "args": {"key": "value"}}]'

# complete markers; the name of the outer group is the key of its handler
_PATTERN = (
    r"(?P<think><think>)|<(?P<block>execute|results)>|(?P<end><end ?/?>)|(?P<respond></?respond>)"
)
# texts that are held back while they may still become a marker
_MARKERS = (
    "<think>", "<execute>", "<results>", "<end>", "<end/>", "<end />", "<respond>", "</respond>",
)  # fmt: skip


class XmlParser(MarkerParser):
    """Reads one turn. Methods with "Mode:" are modes, see `markers`."""

    def __init__(self, tags: ThoughtTags = NO_TAGS) -> None:
        super().__init__(_PATTERN, _MARKERS, tags)
        self._handlers |= {
            "think": lambda match: self._begin_thought(match.end(), "</think>"),
            "block": self._on_block,
            "end": lambda match: self._stop(match, End()),
            "respond": self._on_respond,
        }
        self._responding = False  # inside <respond>
        self._next_index = 0  # of the next call; calls of malformed blocks count
        self._kind = ""  # of the open block: execute or results
        self._scan: CallScan | None = None  # of the open block, if it begins like JSON

    def _on_respond(self, match: re.Match[str]) -> None:
        opening = match[0] == "<respond>"
        if not opening and not self._responding:
            # a closing tag without an opening one is text
            self._emit_to(match.end())
            return
        self._responding = opening
        self._buffer.pos = match.end()

    def _on_block(self, match: re.Match[str]) -> None:
        self._kind = match["block"]
        self._block_offset = self._buffer.offset + match.start()
        self._closing = f"</{self._kind}>"
        self._buffer.pos = match.end()
        self._buffer.begin_block(self._buffer.pos)
        self._scan = None
        self._mode = self._read_block_start

    def _read_block_start(self) -> None:
        """Mode: the start of a block, which is JSON, JSON in a code fence, or prose."""
        self._skip_white_space()
        first = self._buffer.text[self._buffer.pos : self._buffer.pos + 3]
        if not self._final and (not first or ("```".startswith(first) and len(first) < 3)):
            return  # more text decides
        if first[:1] in ("[", "{"):
            self._scan = CallScan("<", 1, index=self._next_index, live=self._kind == "execute")
            self._parts.close_block()
            self._mode = self._read_json
            return
        # an empty block and a code fence are read up to the closing tag, however far away it is
        self._mode = self._read_raw if first in ("", "```") else self._read_mention

    def _read_json(self) -> None:
        """Mode: JSON up to the closing tag outside its strings."""
        scan, buf = self._scan, self._buffer.text
        assert scan is not None
        stop, pos = scan.run(buf, self._buffer.pos, self._parts.pending)
        # "sigil": a "<" outside strings; "done": the outermost bracket closed. Neither ends the
        # block: only its closing tag does, and `_read_calls` checks the text before it.
        while stop in ("sigil", "done"):
            if stop == "sigil":
                if buf.startswith(self._closing, pos):
                    self._end_block(pos)
                    return
                if not self._final and self._closing.startswith(buf[pos:]):
                    stop = "more"
                    break
                pos += 1
            stop, pos = scan.run(buf, pos, self._parts.pending)
        self._buffer.pos = pos
        if stop == "more" and self._cut:
            self._end_unclosed()
        elif stop == "broken" or self._final:
            # not JSON, or an open quote: look again from the start, now for the first closing tag
            self._buffer.rewind()
            self._mode = self._read_raw
        elif pos - self._buffer.block_start > LONGEST_BLOCK:
            self._report_too_large()

    def _read_raw(self) -> None:
        """Mode: a block that is not JSON, up to its first closing tag."""
        end = self._buffer.text.find(self._closing, self._buffer.pos)
        if end >= 0:
            self._end_block(end)
        elif self._final:
            self._end_unclosed()
        else:
            self._buffer.pos = find_marker_start(self._buffer.text, self._buffer.pos, self._closing)
            if self._buffer.pos - self._buffer.block_start > LONGEST_BLOCK:
                self._report_too_large()

    def _read_mention(self) -> None:
        """Mode: prose after an opening tag, which the model perhaps only mentioned."""
        last = self._buffer.block_start + LONGEST_MENTION + len(self._closing)
        end = self._buffer.text.find(self._closing, self._buffer.pos, last)
        if end >= 0:
            self._end_block(end)
            return
        stop = find_marker_start(self._buffer.text, self._buffer.pos, self._closing)
        if self._final and self._is_held(stop):
            self._buffer.text = self._buffer.text[:stop]
        if self._final or stop - self._buffer.block_start > LONGEST_MENTION:
            self._end_mention()
        else:
            self._buffer.pos = stop

    def _end_mention(self) -> None:
        """Treat the opening tag as text, and read on after it: the model only mentioned it."""
        self._buffer.rewind()
        self._take_block(self._buffer.pos, self._read_text)
        self._parts.emit_text(f"<{self._kind}>")

    def _end_block(self, end: int) -> None:
        """End the open block, whose closing tag begins at `end`."""
        if end - self._buffer.block_start > LONGEST_BLOCK:
            self._report_too_large()
            return
        self._parts.close_block()
        closing = self._closing
        text = self._take_block(end, self._read_text)
        self._buffer.pos = end + len(closing)
        if self._kind == "results":
            self._report_forged(f"<results>{text}{closing}")
            return
        try:
            self._parts.add(*self._read_calls(text))
        except ValueError as fault:
            self._report_malformed(f"<execute>{text}{closing}", str(fault))
            return
        self._parts.add(Execute())
        self.stopped = True

    def _read_calls(self, text: str) -> list[Call]:
        """Return the calls of a block. Raises ValueError with a message for the model."""
        if not text.strip():
            raise ValueError("it is empty")
        check_depth(self._scan.deepest if self._scan is not None else 0)
        return read_batch(text, self._next_index)

    def _end_unclosed(self) -> None:
        """End a block that the end of the stream left open."""
        self._parts.close_block()
        text = self._take_block(len(self._buffer.text), self._read_text)
        raw = f"<{self._kind}>{text}"
        if self._cut and self._kind == "execute":
            again = CallScan("<", 1, index=self._next_index)
            self._parts.add(*cut_calls(text, again, raw, self._block_offset))
        elif self._kind == "results":
            self._report_forged(raw)
        else:
            self._report_malformed(raw, "its closing tag </execute> never came")

    def _report_malformed(self, raw: str, why: str) -> None:
        """Report an <execute> block that is not a batch of calls."""
        # the CallDelta parts of its calls had these indices: the next call must not get one
        self._next_index = self._scan.next_index if self._scan is not None else self._next_index
        message = f"The <execute> block was not run: {why}. It must hold a JSON array of calls, such as {EXAMPLE}."
        self._report_fault("malformed_execute", message, raw)

    def _report_forged(self, raw: str) -> None:
        """Report a <results> block, unless it is empty."""
        if not raw.removeprefix("<results>").removesuffix("</results>").strip():
            return
        message = "The <results> block was ignored: only the system writes results. Call a tool with <execute> and wait for them."
        self._report_fault("forged_results", message, raw)

    def _report_too_large(self) -> None:
        """Report a block beyond the limit, and stop reading the turn."""
        self._parts.close_block()
        raw = f"<{self._kind}>{self._take_block(len(self._buffer.text), self._read_text)}"
        self._give_up(f"<{self._kind}> block", LONGEST_BLOCK, raw)
