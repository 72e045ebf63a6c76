"""A run as a JSON object, its record: made from the events of the run, and read back into events.

Why: a run must outlive its kernel, and be read, compared and replayed on another machine. So
records of other versions are read as far as possible.

Rules
- The hash protects the payloads although it does not cover them, because the events refer to each
  payload by its SHA-256.
- A hash is compared in the scheme it was made with (`packing.hash_text`), so that hashes of older
  records stay valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from ..events import End, Event, EventLog, complete_log
from ..wire import as_list, encode_canonical, replace_surrogates
from .packed_events import PackedExchange, pack_event, restore_argument_order, unpack_event
from .packing import EXACT, Packer, Payloads, Unpacker, hash_text, home_at
from .size_limit import CAP, Cut, shorten_events

FORMAT = 1  # of a record
METADATA_KEY = "agent_nb"  # the key of our metadata in a notebook, a cell or an output
METADATA_VERSION = 1  # the version of our metadata in a notebook
RECORD_MIME = "application/vnd.agent-nb.run+json"
OUTSIDE = ("hash", "signature", "payloads")  # fields that the hash does not cover
SCHEME = "sha256:"  # the prefix of every content hash

# A record as JSON. It may come from a stranger: no field is sure to exist or to have its type.
Record = Mapping[str, Any]


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Which cell, execution and call began a run.

    `RecordFields` describes these fields too: its docstring is a part of the published schema.
    """

    # the `conversation` of a run that Python code began, or that a cell only followed
    NO_CONVERSATION: ClassVar = ""

    cell: str = ""
    source: str = ""
    occurrence: int = 1  # from 1
    conversation: str = "main"
    fresh: bool = False
    execution: str = ""
    ordinal: int = 0
    call: str = ""


class RecordFields(Provenance, frozen=True, kw_only=True, omit_defaults=True):
    """The fields of a record.

    id, started, status: the run's id, its start in epoch seconds, the status of its end.
    cell, source, occurrence: id of the cell, SHA-256 of its text, number among equal texts.
    conversation, fresh: the name of the conversation of the run, and whether the run began it anew.
    execution: the id of the execution of the cell that began the run.
    ordinal: the number of a run that Python code began, among those of its execution, from 1.
    call: the tool call that began the run, as `run/call`.
    tape: 1 if the run is a model call of other code, which a tape recorded; else 0.
    row: the key of the row of a map that the run answers.
    beside: what that row needed besides this run: seconds that it `waited` for a slot, `broken`
        runs before it, and what these used (`input`, `written`, `cost`).
    events: packed events. cut: what the size limit removed. payloads: what these refer to.
    """

    format: int = FORMAT
    id: str = ""
    tape: int = 0
    row: str = ""  # a key of `rows.store.row_store`
    beside: dict[str, float] = {}  # `input` and `written` are tokens, `cost` is in dollars
    started: float = 0.0
    status: str = ""
    events: list[dict[str, Any]] = []
    cut: list[Cut] = []
    payloads: dict[str, Any] = {}
    hash: str = ""
    signature: str = ""


UNPLACED = Provenance()  # of a run that no cell began


def run_record(
    log: Sequence[Event],
    provenance: Provenance = UNPLACED,
    *,
    started: float | None = None,
    beside: Mapping[str, float] | None = None,
    exchange: PackedExchange | None = None,
    taped: bool = False,
    home: str | None = None,
    cap: int = CAP,
) -> dict[str, Any]:
    """Return the unsigned record of a run; `signing.UserKey.sign` adds the signature.

    started: epoch seconds (default: the time of the first event).
    beside: what its row needed in addition to the run (`RecordFields`).
    exchange: what a tape recorded; it becomes the event before `end`, and is never cut.
    taped: a tape recorded the run, also if no exchange is given.
    home: the home folder, which the record must not name (default: the user's).
    cap: about the largest size of its JSON in bytes, with payloads but without the exchange.
    """
    packer = Packer(home_at(home))
    # a plain list of events may begin with some that have no run id
    run = log.run if isinstance(log, EventLog) else next((e.run for e in log if e.run), "")
    packed = [pack_event(e, n, run, packer) for n, e in enumerate(complete_log(log), 1)]
    cuts = shorten_events(packed, packer.payloads, cap)
    if exchange is not None:  # before `end`, which `complete_log` puts last
        packed.insert(-1, exchange.to_event(packed[-1].get("ts", 0.0)))
        packer.payloads |= exchange.payloads
    # a cut may have removed the last reference to a payload
    needed = Payloads.find_needed_keys(packed, packer.payloads) if packer.payloads else ()
    first = log[0].ts if len(log) else 0.0
    record = RecordFields(
        id=run,
        **msgspec.structs.asdict(provenance),
        tape=int(taped or exchange is not None),
        beside=dict(beside or {}),
        started=first if started is None else started,
        status=End.status_in(log),
        events=packed,
        cut=cuts,
        payloads={key: packer.payloads[key] for key in sorted(needed)},
    )
    # `to_builtins` omits fields with their default value; the format is always written
    fields: dict[str, Any] = {"format": FORMAT, **msgspec.to_builtins(record)}
    return {**fields, "hash": record_hash(fields)}


def record_hash(record: Record) -> str:
    """Return the content hash of a record; see `hash_and_text`."""
    return hash_and_text(record)[0]


def hash_and_text(record: Record) -> tuple[str, str]:
    """Return the content hash of a record and the canonical text that is hashed.

    The record's own hash decides the scheme; a record without a hash gets the newest scheme. Hash
    and text are "" if the record is not JSON.
    """
    stated = record.get("hash")
    scheme = stated.removeprefix(SCHEME) if isinstance(stated, str) and stated else EXACT
    try:
        text = encode_canonical({k: v for k, v in record.items() if k not in OUTSIDE})
        return SCHEME + hash_text(text, scheme), text
    except (ValueError, RecursionError):
        return "", ""


def events_of(
    record: Any, payloads: Mapping[str, Any] | None = None, *, home: str | None = None
) -> list[Event]:
    """Return the events of a record, numbered from 1; a run without an end gets one.

    Raises nothing. Entries that are not objects are skipped. `payloads` are those beside the
    record; a payload inside it takes precedence. `home`: the home folder to restore in texts
    (default: the user's).
    """
    if not isinstance(record, Mapping):
        return []
    unpacker = Unpacker(Payloads.of(payloads, record.get("payloads")), home_at(home))
    run = replace_surrogates(str(record.get("id", "")))
    objects = [o for o in as_list(record.get("events")) if isinstance(o, dict)]
    unpacked = [unpack_event(obj, n, run, unpacker) for n, obj in enumerate(objects, 1)]
    return complete_log(restore_argument_order(unpacked))


def log_of(record: Any) -> EventLog:
    """Return the log of a record; see `events_of`."""
    return EventLog.of_events(events_of(record))
