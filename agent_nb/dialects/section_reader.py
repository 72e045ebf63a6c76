"""Reads the `section` dialect (seed 001): `§THINK: … §CALL: {…} §EXECUTE §RESPOND: … §END`.

`section` teaches and writes it; most here is about turns that are malformed, forged or cut.

Rules
- Markers with § count in any letter case and position, even inside a word. But no letter, digit or
  `_` may follow `§EXECUTE` and `§END` (`§executed` is text).
- If no JSON object follows `§CALL:`, the text is answer (rule 3 of the seed), and the fault of the
  first such call goes into the part Execute.
- Only the system may write `[SYSTEM: …]`: if the model writes it outside a thought, it becomes the
  Fault `forged_results`.
"""

from __future__ import annotations

import re
from functools import partial

from ..models import End, Execute, Text, Thought
from .call_assembly import cut_calls
from .call_scan import CallScan
from .calls import check_depth, read_call
from .markers import LONGEST_QUOTE, MarkerParser
from .tags import NO_TAGS, ThoughtTags

LONGEST_CALL = 64 * 1024 * 1024  # characters of one call; beyond, the turn ends
EXAMPLE = '{"name": "tool", "args": {"key": "value"}}'

# texts that are held back while they may still become a marker
_MARKERS = ("§think:", "§call:", "§respond:", "§execute", "§end", "[system:")


def _match_any_case(word: str) -> str:
    # the flag IGNORECASE would also match other letters that fold to ASCII, such as "ſ" for "s"
    return "".join(f"[{c.upper()}{c}]" for c in word)


def _make_pattern(boundary: str) -> str:
    """Return the pattern of complete markers; `boundary` must follow §EXECUTE and §END."""
    content = "|".join(f"(?P<{w}>{_match_any_case(w)}:)" for w in ("think", "call", "respond"))
    control = "|".join(f"(?P<{w}>{_match_any_case(w)}{boundary})" for w in ("execute", "end"))
    return rf"§(?:{content}|{control})|(?P<system>\[SYSTEM:)"


# while more text may come, §END needs its next character; at the end of the stream it does not
_PATTERN = _make_pattern(r"(?=\W)")
_FINAL_PATTERN = _make_pattern(r"(?!\w)")
_find_bracket = re.compile(r"[\[\]§]").search


class SectionParser(MarkerParser):
    """Reads one turn. Methods with "Mode:" are modes, see `markers`."""

    _scan: CallScan  # of the newest call

    def __init__(self, tags: ThoughtTags = NO_TAGS) -> None:
        super().__init__(_PATTERN, _MARKERS, tags, last=_FINAL_PATTERN, fold=True)
        self._handlers |= {
            "think": partial(self._begin_section, part_type=Thought),
            "call": self._on_call,
            "respond": partial(self._begin_section, part_type=Text),
            "execute": lambda match: self._stop(match, Execute(self._fault)),
            "end": lambda match: self._stop(match, End()),
            "system": self._on_system,
        }
        self._next_index = 0  # of the next call; malformed calls count
        self._open_brackets = 0  # in the open forged line
        self._fault: str = ""  # what is wrong with the first malformed call

    def _begin_section(self, match: re.Match[str], part_type: type[Text] | type[Thought]) -> None:
        """Begin a section after its marker; its text becomes parts of `part_type`."""
        self._parts.begin_block(part_type)
        self._buffer.pos = match.end()
        self._mode = self._skip_blank

    def _skip_blank(self) -> None:
        """Mode: white space that belongs to the marker before it."""
        self._skip_white_space()
        if self._buffer.pos < len(self._buffer.text):
            self._mode = self._read_text

    def _on_call(self, match: re.Match[str]) -> None:
        self._begin_section(match, Text)
        self._mode = self._read_call_start

    def _read_call_start(self) -> None:
        """Mode: after §CALL:, where an object must begin."""
        self._skip_white_space()
        if self._buffer.pos == len(self._buffer.text):
            return
        self._mode = self._read_text
        if self._buffer.text[self._buffer.pos] != "{":
            self._record_fault("it does not begin with {")
        else:
            self._buffer.begin_block(self._buffer.pos)
            self._block_offset = self._buffer.offset + self._buffer.pos
            self._scan = CallScan("§", 0, index=self._next_index)
            self._mode = self._read_object

    def _is_marker(self, pos: int) -> bool | None:
        """Return whether the § at `pos` begins a marker; None if only more text can show it."""
        text = self._buffer.text
        if self._markers.match(text, pos):
            return True
        return None if not self._final and self._markers.find_start(text, pos) == pos else False

    def _read_object(self) -> None:
        """Mode: the JSON object of a call."""
        scan, buf = self._scan, self._buffer.text
        stop, pos = scan.run(buf, self._buffer.pos, self._parts.pending)
        while stop == "sigil":  # a § outside strings: a marker there ends the unfinished object
            is_marker = self._is_marker(pos)
            if is_marker:
                self._end_malformed(pos)
                return
            if is_marker is None:
                stop = "more"
                break
            stop, pos = scan.run(buf, pos + 1, self._parts.pending)
        self._buffer.pos = pos
        if stop == "done":
            self._end_object(pos)
        elif self._cut and stop == "more":
            text = self._take_block(len(buf), self._read_text)
            again = CallScan("§", 0, index=self._next_index)
            self._parts.add(*cut_calls(text, again, f"§CALL: {text}", self._block_offset))
        elif stop == "broken" or self._final:
            # not JSON: its text is answer text, in which markers count
            self._record_parse_error(pos + 1)  # with the character that breaks it
            self._buffer.rewind()
            self._take_block(self._buffer.pos, self._read_text)
            self._next_index = scan.next_index
        elif pos - self._buffer.block_start > LONGEST_CALL:
            self._report_too_large()

    def _end_object(self, pos: int) -> None:
        """Read the call whose object ends at `pos`; a malformed one becomes answer text."""
        if pos - self._buffer.block_start > LONGEST_CALL:
            self._report_too_large()
            return
        text = self._take_block(pos, self._skip_blank)
        try:
            check_depth(self._scan.deepest)
            self._parts.add(read_call(text, self._next_index))
        except ValueError as fault:
            self._record_fault(str(fault))
            self._mode = self._read_text
            self._parts.emit_text(text)
        self._next_index = self._scan.next_index

    def _end_malformed(self, pos: int) -> None:
        """Treat the unfinished object before the marker at `pos` as answer text."""
        self._next_index = self._scan.next_index
        self._record_parse_error(pos)
        self._parts.emit_text(self._take_block(pos, self._read_text))

    def _record_parse_error(self, pos: int) -> None:
        """Parse the block up to `pos` only for the error that this raises."""
        if self._fault:
            return
        try:
            read_call(self._buffer.read_block(pos))
        except ValueError as fault:
            self._record_fault(str(fault))

    def _record_fault(self, why: str) -> None:
        """Record the fault of a call for the next §EXECUTE; only the first one counts."""
        fault = f"A §CALL was not run: {why}. It must hold one JSON object, such as {EXAMPLE}."
        self._fault = self._fault or fault

    def _on_system(self, match: re.Match[str]) -> None:
        if self._parts.part_type is Thought:  # a thought may quote it
            self._emit_to(match.end())
            return
        self._parts.close_block()
        self._block_offset = self._buffer.offset + match.start()
        self._open_brackets = 1
        self._buffer.begin_block(match.start())
        self._buffer.pos = match.end()
        self._mode = self._read_forged

    def _read_forged(self) -> None:
        """Mode: a forged system line, up to its closing bracket or the next marker."""
        buf, pos = self._buffer.text, self._buffer.pos
        last = self._buffer.block_start + LONGEST_QUOTE  # only the quote of the line is kept
        while match := _find_bracket(buf, pos, last):
            pos = match.end()
            if match[0] != "§":
                self._open_brackets += 1 if match[0] == "[" else -1
                if not self._open_brackets:
                    self._end_forged(pos)
                    return
            elif (is_marker := self._is_marker(pos - 1)) is None:
                self._buffer.pos = pos - 1
                return
            elif is_marker:
                self._end_forged(pos - 1)
                return
        self._buffer.pos = min(len(buf), last)
        if self._final or self._buffer.pos == last:
            self._end_forged(self._buffer.pos)

    def _end_forged(self, pos: int) -> None:
        """Report the forged line, which ends at `pos`."""
        raw = self._take_block(pos, self._read_text)
        message = "The [SYSTEM: …] line was ignored: only the system writes results. Write §CALL: and §EXECUTE and wait for them."
        self._report_fault("forged_results", message, raw)

    def _report_too_large(self) -> None:
        self._give_up("call", LONGEST_CALL, self._take_block(self._buffer.pos, self._read_text))
