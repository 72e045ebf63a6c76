"""The records of a notebook as text, to be read before they are signed, and who has signed them.

Why: a signature lets calls run again on other machines, so the signer must have seen them.

Rules
- All calls that may run again are listed, with the arguments they ran with. Calls of quiet tools
  (built-in, without an effect) are only counted, unless a cell redefines a tool of that name, as
  far as `tool_names` sees: the notebook decides what a tool does, not the record.
- A taped model call is shown as its answer and all tool calls in it, which the notebook's own code
  runs. Both are read from the response that is served, not from the events beside it.
- Text of a record is shown printable and bounded; arguments and answers that are cut are counted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ...errors import UsageError
from ...events import content_text
from ...host import list_builtin
from ...record import (
    METADATA_KEY,
    NotebookRuns,
    PrivateKey,
    Record,
    RecordedCall,
    Signatures,
    Signer,
    UserKey,
    agent_cell,
    cell_id,
    events_of,
    is_intact,
    metadata_of,
    read_start_time,
    source_hash,
    source_of,
    with_ids,
)
from ...tape import read_answers
from ...tools import Toolset
from ...wire import cut_end
from ..notices import CLIPPED, LONGEST, format_date, make_printable, printable_value
from .cell_titles import name_cell
from .tool_names import find_tool_names

SHORT = 300  # characters of the arguments of a call on one line
# code that may define a name which its text does not contain: `import *`, `%run f.py`, `exec(s)`
_ANY_NAME = re.compile(
    r"\bimport[ \t]*\(?[ \t]*\*"
    r"|%(?:run|load|autoload|store|rerun|recall|rep|macro|pylab|alias_magic)\b"
    # without %, as IPython allows
    r"|^[ \t]*(?:run|load|store|rerun|recall|rep|macro|pylab|alias_magic)[ \t]+[^\s=+*,]"
    r"|^[ \t]*(?:rerun|recall|rep|pylab)[ \t]*$"
    r"|\bregister_(?:line_|cell_|line_cell_)magic\b"  # another `%%bash` may run Python
    r"|\b(?:exec|eval|globals|locals|vars|setattr|get_ipython|user_ns|__dict__)\b",
    re.MULTILINE,
)
_PROMPT_CODE = re.compile(r"\{\{|--map\b")  # in an agent cell: it evaluates an expression


class Item(msgspec.Struct, frozen=True):
    """One record of a review; `str()` returns the text to read before it is signed."""

    number: int  # of the cell
    title: str  # of the cell
    run: str
    record: Record
    source: str  # hash of the cell's source
    calls: Sequence[str] = ()  # as text, equal ones of rows once
    count: int = 0  # how many calls are listed
    clipped: int = 0  # arguments and answers not shown in full
    quiet_calls: int = 0  # calls without an effect, which are only counted
    problem: str = ""  # why it is not signed
    answers: Sequence[str] = ()  # of a taped model call, as text

    def __str__(self) -> str:
        if self.problem:
            return f"  {self.run}: {self.problem}"
        count = f"{self.count or 'no'} call{'' if self.count == 1 else 's'}"
        only_look = f"that only look{'s' if self.quiet_calls == 1 else ''}"
        unlisted = f" (and {self.quiet_calls} {only_look})" if self.quiet_calls else ""
        served = "an answer of a model, with " if self.record.get("tape") else ""
        return "\n".join([f"  {self.run}: {served}{count}{unlisted}", *self.answers, *self.calls])


class Review(tuple[Item, ...]):
    """The records of a notebook in the order of its cells, newest first."""

    __slots__ = ()

    @property
    def signable(self) -> list[Item]:
        """The records without a problem."""
        return [item for item in self if not item.problem]

    def render(self) -> str:
        """Return the text to read before signing, below the title of each cell."""
        lines, number = [], 0
        for item in self:
            if item.number != number:
                number = item.number
                lines.append(item.title)
            lines.append(str(item))
        return "\n".join(lines)

    def sign(self, metadata: dict[str, Any], key: PrivateKey) -> int:
        """Add signatures of the `signable` records to our metadata; return how many."""
        signatures = Signatures(metadata)
        for item in self.signable:
            signatures.add(item.record, item.source, key)
        return len(self.signable)


def review_records(nb: Mapping[str, Any]) -> Review:
    """Return the records of a notebook, to be read and signed."""
    nb = with_ids(nb)
    numbered = [(n, cell) for n, cell in enumerate(nb["cells"], 1) if isinstance(cell, dict)]
    quiet = find_quiet_tools(nb)
    recorded = NotebookRuns(dict(nb)).by_cell()
    return Review(
        _review_record(number, cell, record, quiet)
        for number, cell in numbered
        for record in recorded.get(cell_id(cell), ())
    )


def countersigned_records(
    nb: Mapping[str, Any],
    cell: Mapping[str, Any],
    records: Sequence[Record],
    signers: Sequence[Signer],
) -> list[str]:
    """Return the hashes of a cell's records that a signer has signed for its present source.

    Raises MissingExtra.
    """
    if not signers:
        return []
    signatures = Signatures(metadata_of(nb).get(METADATA_KEY))
    source = source_hash(source_of(cell))
    return [
        str(record.get("hash", ""))
        for record in records
        if signatures.signers_of(record, source, signers)
    ]


def signature_remarks(
    nb: Mapping[str, Any], cell: Mapping[str, Any], record: Record, signers: Sequence[Signer]
) -> list[str]:
    """Describe the signatures of a record of a cell. Raises MissingExtra."""
    signatures = Signatures(metadata_of(nb).get(METADATA_KEY))
    return signatures.describe(record, source_hash(source_of(cell)), signers)


def call_lines(record: Record, quiet: Collection[str]) -> list[str]:
    """Return the calls of a record that can run again, as short lines; equal ones of rows once.

    One line counts the calls of `quiet` tools. If the calls cannot be listed, one line says why.
    """
    try:
        calls, quiet_calls = _read_calls(record, quiet)
    except UsageError as fault:
        return [str(fault)]
    lines = [
        f"{_call_title(call, count)}: {cut_end(_one_line(content_text(call.args)), SHORT)}"
        for call, count in calls
    ]
    if quiet_calls:
        noun = "call that only looks" if quiet_calls == 1 else "calls that only look"
        lines.append(f"{quiet_calls} {noun}")
    verb = "serves" if record.get("tape") else "can run again"
    return [f"{verb}: {line}" for line in lines]


def _read_calls(
    record: Record, quiet: Collection[str]
) -> tuple[list[tuple[RecordedCall, int]], int]:
    """Return the calls to list, with their counts, and how many of `quiet` tools are only counted.

    Raises UsageError if they cannot be listed.
    """
    if record.get("tape"):
        # the code's own tools may have any effect, whatever their names
        calls = (call for answer in read_answers(record) for call in answer.calls)
        return [(RecordedCall(call, call.args), 1) for call in calls], 0
    counted = RecordedCall.count_equal(RecordedCall.list_all(events_of(record)))
    listed = [(call, count) for call, count in counted if call.name not in quiet]
    return listed, sum(count for call, count in counted if call.name in quiet)


def find_quiet_tools(nb: Mapping[str, Any]) -> frozenset[str]:
    """Return the tools of a notebook whose calls are counted and not listed."""
    cells = (cell for cell in nb["cells"] if isinstance(cell, dict))
    return list_quiet_tools(source_of(c) for c in cells if c.get("cell_type") == "code")


def list_quiet_tools(sources: Iterator[str]) -> frozenset[str]:
    """Return the names of built-in tools without an effect that no cell redefines."""
    code = [s for s in sources if agent_cell(s) is None or _PROMPT_CODE.search(s)]
    if any(_ANY_NAME.search(source) for source in code):
        return frozenset()
    redefined = find_tool_names(code)
    plugin_tools = (tool for name in list_builtin("tools") for tool in Toolset.of_plugin(name))
    return frozenset(tool.name for tool in plugin_tools if tool.harmless) - redefined


def _review_record(
    number: int, cell: Mapping[str, Any], record: Record, quiet: frozenset[str]
) -> Item:
    """Return a record with its calls as text, or with the reason why it cannot be signed."""
    began = read_start_time(record)
    when = f" of {format_date(began)}" if began else ""
    by = "recorded by you" if UserKey.read().owns(record) else "not recorded by you"
    run = f"run {_one_line(str(record.get('id', '?')))[:60]}{when}, {by}"
    item = Item(
        number, _one_line(name_cell(number, cell)), run, record, source_hash(source_of(cell))
    )
    if not is_intact(record):
        problem = "it was changed after it was made and is not signed"
        return msgspec.structs.replace(item, problem=problem)
    try:
        calls, quiet_calls = _read_calls(record, quiet)
        answers = [a.text for a in read_answers(record)] if record.get("tape") else []
        RecordedCall.digest_all(record)  # raises for calls that cannot be signed
    except UsageError as fault:
        return msgspec.structs.replace(item, problem=f"it is not signed. {fault}")
    call_texts = [_format_call(call, count) for call, count in calls]
    answer_texts = [f"    answer: {_indent(text)}" for text in answers if text]
    return msgspec.structs.replace(
        item,
        answers=answer_texts,
        calls=call_texts,
        count=sum(count for _, count in calls),
        clipped=sum(text.count(CLIPPED) for text in [*call_texts, *answer_texts]),
        quiet_calls=quiet_calls,
    )


def _format_call(call: RecordedCall, count: int) -> str:
    """Return a call as text. Only arguments are indented by six, so none can imitate a call."""
    arguments = (f"      {_one_line(name)} = {_indent(value)}" for name, value in call.args.items())
    return "\n".join([f"    {_call_title(call, count)}", *arguments])


def _indent(value: Any) -> str:
    """Return a value as text whose further lines cannot be taken for a call or an answer."""
    return printable_value(value).replace("\n", "\n      ")


def _call_title(call: RecordedCall, count: int) -> str:
    """Return the tool of a call, the sub-agent that called it, and in how many rows of a map."""
    rows = f"in rows of the map{f', {count} times' if count > 1 else ''}" if call.rows else ""
    agents = f"by the agent {call.agents}" if call.agents else ""
    where = ", ".join(filter(None, (agents, rows)))
    return f"{_one_line(call.name)}{f' ({_one_line(where)})' if where else ''}"


def _one_line(text: str) -> str:
    """Return a text as one printable line of at most `LONGEST` characters."""
    return " ".join(make_printable(text)[:LONGEST].split())
