"""The difference of two runs for people: aligned by turn and call, without irrelevant details.

Why: comparing records byte by byte finds every id and millisecond; the question is what the model
did differently.

Rules
- Texts are compared in normal form (`normalize_value`), pictures by their pixels; ids, times,
  tokens, chunks and retries do not count.
- The calls of a map's rows are not in the run's own log. They get turn 0, which a report shows
  first; equal ones are listed once, with their number.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from ... import events as e
from ...errors import UsageError
from ...events import Event, content_text
from ...record import PictureComparison, RecordedCall, normalize_value
from ...view import count_noun
from ...wire import fit_text

Calls = dict[str, e.Call]  # by id
What = Literal["changed", "added", "removed"]
_MARKS: dict[str, str] = {"changed": "~", "added": "+", "removed": "-"}
# settings that are digests, or say where a run was made: they are not compared
NOT_COMPARED = frozenset({
    "hash", "inputs", "source", "asked", "asked_tools", "turns", "place", "behind", "shared",
})  # fmt: skip
_EQUAL_LINES = 2  # shown around a changed line
_MOST_LINES = 40  # of one change that are shown
_LONGEST_LINE = 160  # characters


class Part(msgspec.Struct, frozen=True):
    """One comparable part of a run."""

    turn: int  # 0: outside the turns
    head: str  # a title such as `call NAME`; parts with the same head are aligned
    body: str  # its content as text
    pictures: tuple[Any, ...] = ()  # its attachments


class Change(msgspec.Struct, frozen=True):
    """One difference; `before` and `after` are the bodies, "" on a side without one."""

    what: What
    turn: int
    head: str
    before: str = ""
    after: str = ""


class Diff:
    """The differences of two runs, named `a` and `b`; falsy if `changes` is empty.

    `str()` returns a report.
    """

    def __init__(self, a: str, b: str, changes: Sequence[Change]) -> None:
        self.a, self.b, self.changes = a, b, list(changes)

    def __len__(self) -> int:
        return len(self.changes)

    def __str__(self) -> str:
        if not self.changes:
            return _escape_line(f"{self.a} and {self.b}: the same")
        title = f"{self.a} → {self.b}: {count_noun(len(self.changes), 'difference')}"
        return "\n".join([_escape_line(title), *_report_lines(self.changes)])

    def __repr__(self) -> str:
        return f"<Diff {self.a} → {self.b}: {count_noun(len(self.changes), 'difference')}>"


def compare_runs(
    a: Sequence[Event], b: Sequence[Event], *, cells: tuple[str, str] = ("", "")
) -> Diff:
    """Return the differences from run `a` to run `b`; `cells` are their cells, for the report."""
    first, second = list_comparable_parts(a), list_comparable_parts(b)
    turns = sorted({part.turn for part in (*first, *second)})
    changes: list[Change] = []
    for turn in turns:
        pair = ([part for part in side if part.turn == turn] for side in (first, second))
        changes += _compare_turn(*pair)
    return Diff(_name_run(a, cells[0]), _name_run(b, cells[1]), changes)


def list_comparable_parts(log: Iterable[Event]) -> list[Part]:
    """Return the comparable parts of a run, in order."""
    log = list(log)
    calls: dict[str, e.Call] = {}
    parts: list[Part] = []
    for event in log:
        if isinstance(event, e.Call):
            calls[event.call_id] = event
        describe = _DESCRIBE.get(type(event))
        head_and_body = describe(event, calls) if describe is not None else None
        if head_and_body is not None:
            pictures = event.attachments if isinstance(event, e.User | e.Result) else ()
            parts.append(Part(event.turn, *head_and_body, tuple(pictures)))
    return [*parts, *_list_row_calls(log)]


def _list_row_calls(log: Sequence[Event]) -> Iterator[Part]:
    """Yield the calls in the rows of a map, which are not in the log itself."""
    try:
        calls = [call for call in RecordedCall.list_all(log) if call.rows]
    except UsageError as fault:
        yield Part(0, "calls of rows", str(fault))
        return
    for call, count in RecordedCall.count_equal(calls):
        agents = f" of the agent {call.agents}" if call.agents else ""
        times = f"\n({count} times)" if count > 1 else ""
        yield Part(0, f"call {call.name}{agents} in rows", f"{_format_value(call.args)}{times}")


def _describe_start(event: e.RunStart, _: Calls) -> tuple[str, str]:
    settings = {k: v for k, v in event.settings.items() if k not in NOT_COMPARED}
    return "settings", _format_value(
        {"model": event.model, "dialect": event.dialect, "tools": list(event.tools), **settings}
    )


def _describe_text(event: e.User | e.Think | e.Respond, _: Calls) -> tuple[str, str]:
    head = {"user": "prompt", "think": "thought", "respond": "answer"}[event.type]
    return head, event.content.strip()


def _describe_approval(event: e.Approval, calls: Calls) -> tuple[str, str] | None:
    """Return a decision, with the arguments if the user changed them."""
    if event.stage != "decided":
        return None
    call = calls.get(event.call_id)
    args = event.args if event.args is not None or call is None else call.args
    is_changed = args is not None and (call is None or args != call.args)
    changed = f" with\n{_format_value(args)}" if is_changed else ""
    return f"decision {call.name if call is not None else '?'}", f"{event.decision}{changed}"


def _describe_result(event: e.Result, _: Calls) -> tuple[str, str]:
    as_text = content_text if isinstance(event.content, str) else _format_value
    status = "" if event.status == "ok" else f"[{event.status}] "
    return f"result {event.name}", f"{status}{as_text(event.content)}"


# by type of event: the function that returns (head, body) of its part, None if it is not compared
_DESCRIBE: dict[type[Event], Callable[[Any, Calls], tuple[str, str] | None]] = {
    e.RunStart: _describe_start,
    e.User: _describe_text,
    e.Think: _describe_text,
    e.Respond: _describe_text,
    e.Call: lambda event, _: (f"call {event.name}", _format_value(event.args)),
    e.Approval: _describe_approval,
    e.Result: _describe_result,
    e.Error: lambda event, _: (
        None if event.code == "retry" else (f"error {event.code}", event.message)
    ),
    e.Interrupt: lambda event, _: ("interrupt", f"{event.reason} {event.detail}".strip()),
    e.End: lambda event, _: None if event.span else ("end", event.status),
}


def _compare_turn(first: list[Part], second: list[Part]) -> Iterator[Change]:
    """Align the parts of one turn: first equal ones, then those with the same head."""
    exact = difflib.SequenceMatcher(
        None, [_normalize(p) for p in first], [_normalize(p) for p in second], autojunk=False
    )
    for tag, i1, i2, j1, j2 in exact.get_opcodes():
        if tag != "equal":
            yield from _pair_by_head(first[i1:i2], second[j1:j2])
        else:
            for a, b in zip(first[i1:i2], second[j1:j2], strict=True):
                if difference := PictureComparison.of_all(a.pictures, b.pictures).difference:
                    yield Change("changed", a.turn, a.head, after=f"(pictures) {difference}")


def _pair_by_head(first: list[Part], second: list[Part]) -> Iterator[Change]:
    """Compare parts of the same head in order; others were added or removed."""
    heads = difflib.SequenceMatcher(
        None, [p.head for p in first], [p.head for p in second], autojunk=False
    )
    for tag, i1, i2, j1, j2 in heads.get_opcodes():
        if tag == "equal":
            for a, b in zip(first[i1:i2], second[j1:j2], strict=True):
                if _normalize(a) != _normalize(b):
                    yield Change("changed", a.turn, a.head, a.body, b.body)
        else:
            yield from (Change("removed", a.turn, a.head, before=a.body) for a in first[i1:i2])
            yield from (Change("added", b.turn, b.head, after=b.body) for b in second[j1:j2])


def _normalize(part: Part) -> tuple[str, str]:
    """Return the head and the text of a part in the form in which they are compared."""
    return part.head, normalize_value(part.body)


def _report_lines(changes: Sequence[Change]) -> Iterator[str]:
    """Yield the lines of a report: `turn 2`, `~ call python`, `    - code = f()` and so on."""
    turn = None
    for change in changes:
        if change.turn != turn:
            turn = change.turn
            yield f"turn {turn}" if turn else "run"
        yield f"{_MARKS[change.what]} {_escape_line(change.head)}"
        lines = list(_change_lines(change))
        yield from (f"    {_escape_line(line)}" for line in lines[:_MOST_LINES])
        if more := len(lines[_MOST_LINES:]):
            yield f"    … {count_noun(more, 'more line')}"


def _change_lines(change: Change) -> Iterator[str]:
    """Yield the lines of one change, marked like those of a unified diff."""
    if change.what == "added":
        yield from (f"+ {line}" for line in change.after.splitlines())
    elif change.what == "removed":
        yield from (f"- {line}" for line in change.before.splitlines())
    else:
        diff_lines = difflib.unified_diff(
            change.before.splitlines(), change.after.splitlines(), lineterm="", n=_EQUAL_LINES
        )
        for line in list(diff_lines)[2:]:  # without the two lines that name files
            yield "…" if line.startswith("@@") else f"{line[:1]} {line[1:]}"


def _escape_line(text: str) -> str:
    """Return a line that is safe for a terminal, bounded."""
    line = "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in text)
    return fit_text(line, _LONGEST_LINE)


def _format_value(value: object) -> str:
    """Return a value as text, line by line: JSON, or `name = text` for an object of one text."""
    if isinstance(value, dict) and len(value) == 1 and isinstance(next(iter(value.values())), str):
        name, text = next(iter(value.items()))
        return f"{name} = {text}" if "\n" not in text else f"{name} =\n{text}"
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True, default=str)


def _name_run(log: Sequence[Event], cell: str) -> str:
    name = log[0].run if log and log[0].run else "(no run)"
    return f"{name} (cell {cell})" if cell else name
