"""One run as it stands in a notebook: events to a JSON object and back.

    nb.metadata["agent_nb"] = {"version": 1, "runs": {cell id: [record, …]}, "payloads": {sha256:
    value}}

In a cell's output a record carries its own `payloads`; `lift` moves them beside the runs (`detach`,
`attach`).

Rules
- What the position of an event says is not stored (`seq`, `run`); arguments that are exactly what
  `raw_args` says are `{"$raw": true}`; long `chunks` are packed; all values are packed as
  `portable` says. `events_of` undoes all of it.
- `hash` covers everything but `hash`, `signature` and the bodies of payloads, which their keys name
  by SHA-256. A hash is compared as it was made (`portable.sha256`), so that older records keep
  theirs.
- A record is never changed after it was made; a record of another version is read as far as it can
  be, and nothing in it raises.
- A record in an output counts only where our publisher put it (`published`).
- A run without `end` is closed as interrupted when it is read: every call has one result, `end` is
  the last event.
- Pure: the home folder and the time come in, or default to the user's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from .. import events
from ..events import Call, Event, Respond, Think
from ..events.chunks import decode_chunks, encode_chunks, pack_chunks, unpack_chunks
from ..events.completion import closed
from ..events.event_json import event_from, to_builtins
from ..events.log import EventLog, block_text
from ..wire.json_text import canonical
from .packing import EXACT, Home, Packer, Unpacker, payload_key, references, sha256
from .size_limit import CAP, Cut, shorten

FORMAT = 1
VERSION = 1  # of nb.metadata["agent_nb"]
KEY = "agent_nb"
# the conversation of a run that belongs to none: Python code began it, or a cell followed it
NONE = ""
LIVE = "live"  # under KEY in the metadata of an output: the id of the run that goes on in it
# under KEY in the metadata of an output: the id of the run that its button is for; it is never
# saved
BUTTON = "button"
MIME = "application/vnd.agent-nb.run+json"
WORTH = 64  # characters from which on arguments and chunks are packed
OUTSIDE = ("hash", "signature", "payloads")
SCHEME = "sha256:"


class Record(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The fields of a record. `events` are packed events, `started` epoch seconds, `cut` what the
    size limit took away.

    `cell` is the id of the cell it was made in, `source` the SHA-256 of that cell's text and
    `occurrence` its number among cells of equal text; `conversation` and `fresh` say where the run
    belongs. `execution` is the id of the execution of the cell that began it; for a run of Python
    code `ordinal` is its number among those that this execution began, from 1, and `call` names the
    call of a tool that began it, as `run/call`.
    """

    format: int = FORMAT
    id: str = ""
    cell: str = ""
    source: str = ""
    occurrence: int = 1
    conversation: str = "main"
    fresh: bool = False
    execution: str = ""
    ordinal: int = 0
    call: str = ""
    started: float = 0.0
    status: str = ""
    events: list[dict[str, Any]] = []
    cut: list[Cut] = []
    payloads: dict[str, Any] = {}
    hash: str = ""
    signature: str = ""


def run_record(
    log: Sequence[Event],
    *,
    cell: str = "",
    source: str = "",
    occurrence: int = 1,
    conversation: str = "main",
    fresh: bool = False,
    execution: str = "",
    ordinal: int = 0,
    call: str = "",
    home: str | None = None,
    cap: int = CAP,
) -> dict[str, Any]:
    """Return the record of a run as a JSON object, with its hash and without a signature
    (`signing.sign` adds it).

    `home` is the folder to hide (default: the user's), `cap` the largest size in bytes of its JSON,
    payloads included.
    """
    packer = Packer(Home(_home(home)))
    run = log.run if isinstance(log, EventLog) else next((e.run for e in log if e.run), "")
    packed = [_packed(event, place, run, packer) for place, event in enumerate(closed(log), 1)]
    cuts = shorten(packed, packer.payloads, cap)
    record = Record(
        id=run,
        cell=cell,
        source=source,
        occurrence=occurrence,
        conversation=conversation,
        fresh=fresh,
        execution=execution,
        ordinal=ordinal,
        call=call,
        started=log[0].ts if len(log) else 0.0,
        status=status_of(log),
        events=packed,
        cut=cuts,
        payloads={key: packer.payloads[key] for key in sorted(_reachable(packed, packer.payloads))},
    )
    made: dict[str, Any] = {"format": FORMAT, **msgspec.to_builtins(record)}
    return {**made, "hash": record_hash(made)}


def record_hash(record: Mapping[str, Any]) -> str:
    """Return the content hash of a record ("" when it is no JSON), made as the one that it names,
    if it names one.
    """
    named = record.get("hash")
    like = named.removeprefix(SCHEME) if isinstance(named, str) and named else EXACT
    try:
        return SCHEME + sha256(
            canonical({k: v for k, v in record.items() if k not in OUTSIDE}), like
        )
    except (ValueError, RecursionError):
        return ""


def published(output: Any) -> dict[str, Any] | None:
    """Return the record that an output carries, None if there is none or it was not shown as a run
    of ours.

    A run of ours is a display that names the run (or the `record` of another) in its metadata, too.
    Nothing that a cell or a tool displays does so by chance; whoever writes such an output into a
    file gains nothing, for it is not signed.
    """
    data, metadata = (
        (output.get("data"), output.get("metadata")) if isinstance(output, dict) else (None, None)
    )
    record = data.get(MIME) if isinstance(data, dict) else None
    numbers = metadata.get(KEY) if isinstance(metadata, dict) else None
    if (
        not isinstance(record, dict)
        or not isinstance(numbers, dict)
        or output.get("output_type") != "display_data"
    ):
        return None
    named = numbers.get("record", numbers.get("run"))
    sound = (
        isinstance(named, str)
        and named == record.get("id")
        and isinstance(record.get("events"), list)
    )
    return record if sound else None


def status_of(log: Sequence[Event]) -> str:
    """Return the status of a run's `end`, or `interrupted` when it has none."""
    last = log[-1] if len(log) else None
    return last.status if isinstance(last, events.End) and not last.span else "interrupted"


def events_of(
    record: Any, payloads: Mapping[str, Any] | None = None, *, home: str | None = None
) -> list[Event]:
    """Return the events of a record, closed, with `seq` and `run`; what is no event in it is left
    out. Raises nothing.

    `payloads` are those beside the runs; the record's own count too.
    """
    if not isinstance(record, Mapping):
        return []
    own = record.get("payloads")
    unpacker = Unpacker(
        {**(payloads or {}), **(own if isinstance(own, dict) else {})}, Home(_home(home))
    )
    run = str(record.get("id", ""))
    stored = record.get("events")
    objects = [o for o in stored if isinstance(o, dict)] if isinstance(stored, list) else []
    return closed(
        _in_order([_restored(o, place, run, unpacker) for place, o in enumerate(objects, 1)])
    )


def log_of(
    record: Any, payloads: Mapping[str, Any] | None = None, *, home: str | None = None
) -> EventLog:
    """Return the log of a record; see `events_of`."""
    return EventLog.of_events(events_of(record, payloads, home=home))


def _home(path: str | None) -> str:
    return os.path.expanduser("~") if path is None else path


def _packed(event: Event, place: int, run: str, packer: Packer) -> dict[str, Any]:
    obj = to_builtins(event)
    if obj.get("run") == run:
        del obj["run"]
    if obj.get("seq") == place:
        del obj["seq"]
    same = (
        isinstance(event, Call)
        and len(event.raw_args) >= WORTH
        and _says(event.raw_args, event.args)
    )
    packed = {k: packer.pack(v) for k, v in obj.items() if not (same and k == "args")}
    if same:
        packed["args"] = {"$raw": True}
    if isinstance(event, Think | Respond | Call) and len(event.chunks) >= WORTH:
        packed["chunks"] = _quiet(pack_chunks, event.chunks)
    return packed


def _says(raw: str, args: dict[str, Any]) -> bool:
    """Return whether `raw` is JSON text of exactly `args`."""
    found = _json(raw)
    return isinstance(found, dict) and found == args and repr(found) == repr(args)


def _json(raw: Any) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, TypeError, UnicodeEncodeError, RecursionError):
        return None


def _quiet(work: Any, text: str) -> str:
    """Return `text` as `work` makes it, or as it is when it is no chunk string."""
    try:
        return str(work(text))
    except ValueError:
        return text


def _restored(obj: dict[str, Any], place: int, run: str, unpacker: Unpacker) -> Event:
    raw = obj.get("args") == {"$raw": True}
    fields = {k: unpacker.unpack(v) for k, v in obj.items() if not (raw and k == "args")}
    if raw:
        found = _json(fields.get("raw_args"))
        fields["args"] = found if isinstance(found, dict) else {}
    chunks = fields.get("chunks")
    if isinstance(chunks, str) and chunks:
        fields["chunks"] = _quiet(unpack_chunks, chunks)
    event = event_from({**({"run": run} if run else {}), **fields, "seq": place})
    return _fitted(event) if isinstance(event, Think | Respond | Call) and event.chunks else event


def _in_order(found: list[Event]) -> list[Event]:
    """Give arguments the order in which the model wrote them, which a notebook's file does not
    keep: keys are sorted there.
    """
    written: dict[str, dict[str, Any]] = {}
    for place, event in enumerate(found):
        if (
            isinstance(event, Call)
            and isinstance(args := _json(event.raw_args), dict)
            and args == event.args
        ):
            written[event.call_id] = args
        elif not (isinstance(event, events.Approval) and event.args):
            continue
        if event.call_id in written:
            found[place] = msgspec.structs.replace(
                event, args=in_order_of(event.args, written[event.call_id])
            )
    return found


def in_order_of(value: Any, like: Any) -> Any:
    """Return a JSON value with the keys of its objects in the order that they have in `like`, those
    that it does not have last.
    """
    if isinstance(value, dict) and isinstance(like, dict):
        keys = [*(k for k in like if k in value), *(k for k in value if k not in like)]
        return {k: in_order_of(value[k], like.get(k)) for k in keys}
    if isinstance(value, list) and isinstance(like, list):
        return [in_order_of(v, w) for v, w in zip(value, like, strict=False)] + value[len(like) :]
    return value


def _fitted(event: Think | Respond | Call) -> Event:
    """Make `chunks` add up to the text, whose length changes when another reader's home stands in
    it; faulty chunks are dropped.
    """
    text = block_text(event)
    try:
        pairs = list(decode_chunks(event.chunks))
    except ValueError:
        return msgspec.structs.replace(event, chunks="")
    if sum(n for n, _ in pairs) == len(text):
        return event
    fitted, left = [], len(text)
    for n, gap in pairs:
        fitted.append((min(n, left), gap))
        left -= fitted[-1][0]
    fitted[-1] = (fitted[-1][0] + left, fitted[-1][1])
    return msgspec.structs.replace(event, chunks=encode_chunks(fitted))


def _reachable(packed: Any, payloads: Mapping[str, Any]) -> set[str]:
    """Return the keys of all payloads that are referred to, from other payloads too."""
    found: set[str] = set()
    todo = references(packed)
    while todo:
        found |= todo
        todo = {
            key for have in todo if have in payloads for key in references(payloads[have])
        } - found
    return found


def payload_keys(record: Any, payloads: Mapping[str, Any] | None = None) -> set[str]:
    """Return the keys of the payloads that a record needs, those that other payloads
    need included.
    """
    own = record.get("payloads") if isinstance(record, Mapping) else None
    known = {**(payloads or {}), **(own if isinstance(own, dict) else {})}
    return _reachable(record.get("events"), known) if isinstance(record, Mapping) else set()


def payload_faults(
    record: Mapping[str, Any], payloads: Mapping[str, Any] | None = None
) -> list[str]:
    """Return what is wrong with the payloads that a record needs: missing, or not what their keys
    say.
    """
    own = record.get("payloads")
    known = {**(payloads or {}), **(own if isinstance(own, dict) else {})}
    faults = []
    for key in sorted(payload_keys(record, payloads)):
        if key not in known:
            faults.append(f"the payload {key[:12]}… is missing")
        elif payload_key(known[key], key) != key:
            faults.append(f"the payload {key[:12]}… was changed")
    return faults


def detach(record: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a record without its payloads, and the payloads, for storing them beside the runs."""
    own = record.get("payloads")
    return {k: v for k, v in record.items() if k != "payloads"}, dict(own) if isinstance(
        own, dict
    ) else {}


def attach(record: Mapping[str, Any], payloads: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record that carries the payloads it needs; the inverse of `detach`."""
    needed = sorted(
        payload_keys(record, payloads) & ({*payloads} | {*(record.get("payloads") or {})})
    )
    known = {**payloads, **(record.get("payloads") or {})}
    whole, _ = detach(record)
    return {**whole, "payloads": {key: known[key] for key in needed}} if needed else whole
