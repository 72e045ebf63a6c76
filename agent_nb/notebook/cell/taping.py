"""The tape of a notebook: which recorded answer a model call gets, and the records of a cell.

Why one class: what a cell is served decides what is recorded of it.

Rules
- A call belongs to the cell that runs when it arrives, else to the last one: a relay cannot see its
  caller. Records are made when a cell ends, since only a later request holds the results of tool
  calls. A model call that ends after its cell is recorded when the next cell ends.
- The modes are those of `--rerun`. `auto` sends a call that has no record, or whose recorded answer
  is an error. `replay` refuses an unrecorded call; a test fails even if code catches the error.
- A record that answers a call is kept: the line below the cell names all that the execution used.
  Those that this kernel made are published again, since the notebook may not have been saved.
- A host that code contacts without the tape is named once; a test refuses it (`refusing`).
- While a call or its cell goes on, the call has a journal, in case the kernel is killed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies_environment

import msgspec

from ...agent import Run
from ...errors import UsageError
from ...events import EventLog
from ...host import DIVERTED, read_launch
from ...models import collect_secrets
from ...record import (
    METADATA_KEY,
    RECORD_MIME,
    Home,
    Journal,
    Provenance,
    RunNumbers,
    run_record,
)
from ...tape import (
    PROVIDERS,
    CallJournal,
    Exchange,
    ExchangePacker,
    HostWatch,
    Live,
    Recording,
    Refusal,
    Relay,
    Request,
    Response,
    Sent,
    make_logs,
    redact_exchange,
)
from ..notices import print_warning
from .executions import Execution, executions_of
from .frontend import is_unshown
from .hidden_texts import hide_texts
from .publish import publish_display
from .refusing import guard_hosts, publish_errors
from .rerun import recording_advice, rerun_mode
from .summary import VERSION, summarize_run
from .taped_calls import CellCalls, TapedCall, drop_retried
from .taped_line import describe_calls
from .taped_records import TapedRecords

if TYPE_CHECKING:
    from ..session import Session

_PLACEHOLDER = "agent-nb-replays-without-a-key"  # for libraries that do not start without a key
_PATIENCE = 0.25  # seconds that the end of a cell waits for calls that go on
_READING = 60.0  # seconds that it waits until the answers that have come are read
_MOST_CARDS = 20  # calls of a cell whose cards are shown


class NotebookTape:
    """The tape of one kernel, from `start` to `stop`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.RLock()
        self._ended = threading.Condition(self._lock)  # a call has ended
        self._slots: dict[str, CellCalls] = {}  # by the id of the execution
        self._last_ended = ""  # the id of the execution whose cell ended last
        self._home = Home.of_user()
        self._packer = ExchangePacker(self._home)
        self._records = TapedRecords(session.library)
        upstreams = {p.name: DIVERTED.read(p.variable) or p.official for p in PROVIDERS}
        self._guard = guard_hosts(session.shell) if read_launch().strict else None
        self._watch = HostWatch()  # reports hosts where no guard refuses them
        refuse = self._guard.watch.refuse_target if self._guard is not None else None
        aliases = {name: DIVERTED.read(name) for p in PROVIDERS for name in p.aliases}
        self._relay = Relay(upstreams, self._answer, refuse, self._is_quick, aliases)

    def start(self) -> None:
        """Start the relay, and point the variables of libraries to it. Raises UsageError."""
        try:
            self._relay.start()
        except OSError as fault:
            raise UsageError(f"The tape cannot listen on 127.0.0.1: {fault}.") from None
        values = self._relay.list_variables()
        if read_launch().why_not_live:
            values |= {p.key: _PLACEHOLDER for p in PROVIDERS if not DIVERTED.read(p.key)}
        if self._guard is None:
            values |= _pass_by_proxies()
        address, _, secret = self._relay.base.rpartition("/")
        # a text that names our own address differs in each kernel
        secrets = {"address of the tape": self._relay.base, "secret of the tape": secret}
        DIVERTED.divert(values, secrets)
        self._show_again = hide_texts(
            self._session.shell,
            lambda: {
                **self._relay.list_addresses(),
                self._relay.base: address,
                secret: "[redacted]",
            },
        )
        self._session.shell.events.register("post_run_cell", self._end_cell)
        if self._guard is not None:
            self._guard.refuse_all(self._relay.proxy)
        else:
            self._watch.start()

    def limit(self, rpm: float | None, concurrency: float | None, budget: float | None) -> None:
        """Limit the calls that are sent, as `Relay.limit` does."""
        self._relay.limit(rpm, concurrency, budget)

    def stop(self) -> None:
        """End the open calls, record the calls not yet recorded, and restore the variables."""
        self._session.shell.events.unregister("post_run_cell", self._end_cell)
        self._watch.stop()
        with ExitStack() as stack:
            for last in (self._show_again, DIVERTED.restore, self._end_cell):
                stack.callback(last)
            self._relay.stop()

    def _is_quick(self) -> bool:
        """Return whether `_answer` returns at once, or no answers stream that it could hold up."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            latest = executions_of(self._session.shell).latest
            slot = self._slots.get(latest.id) if latest is not None else None
            return slot is not None and (slot.mode != "auto" or slot.served.is_empty)
        finally:
            self._lock.release()

    def _answer(self, request: Request, headers: Mapping[str, str]) -> Live | Response | Refusal:
        """Decide whether a request is answered from a record, sent or refused."""
        with self._lock:
            slot = self._find_slot()
            mode = slot.mode
            if mode == "live" or (mode == "auto" and slot.served.is_empty):
                return self._go_live(slot, request, headers)
            redacted = self._redact(Exchange(request=request, response=Response()), headers).request
            errors = mode == "replay"
            answer = slot.served.index.find(
                redacted, slot.execution.cell.id, slot.used, errors=errors
            )
            if isinstance(answer, Recording):
                now, response = time.time(), answer.exchange.response
                slot.calls.append(TapedCall(answer.exchange, now, now, answer.record))
                if not response.retried:
                    return response
                at_once = {**response.headers, "x-should-retry": "false"}
                return msgspec.structs.replace(response, headers=at_once)
            why = f"{answer.why}.{slot.served.remark}"
            slot.misses.append(why)
            if mode == "replay":
                return Refusal(f"Nothing to replay: {why} {recording_advice()}")
            return self._go_live(slot, request, headers)

    def _go_live(self, slot: CellCalls, request: Request, headers: Mapping[str, str]) -> Live:
        journal = CallJournal(request, headers)
        slot.open += 1
        return Live(
            finish=partial(self._finish, slot, journal),
            begin=partial(self._begin, slot, journal),
            receive=journal.receive,
        )

    def _begin(self, slot: CellCalls, journal: CallJournal) -> None:
        cell, library = slot.execution.cell, self._session.library

        def open_journal(run: str) -> Journal:
            return Journal(
                run,
                cell=cell.key,
                notebook=str(library.finder.path(cell.runner_options) or ""),
                execution=slot.execution.id,
                clean=not slot.journals,  # once per execution
                warn=self._session.warn,
            )

        journal.open(collect_secrets(), open_journal)
        slot.journals.append(journal)
        slot.line.note_change()

    def _finish(self, slot: CellCalls, journal: CallJournal, sent: Sent | None) -> None:
        """Keep an exchange, redacted, until its cell ends; `sent` None: no answer began."""
        call = None
        with self._lock:
            slot.open, slot.ending = slot.open - 1, slot.ending + 1
            self._ended.notify_all()
        try:
            if sent is not None:
                exchange = self._redact(sent.exchange, sent.headers)
                call = TapedCall(exchange, sent.began, sent.ended, run=journal.log.run)
            journal.end(None if call is None else call.exchange)
        finally:
            with self._lock:
                slot.ending -= 1
                if call is not None:
                    slot.calls.append(call)
                elif journal in slot.journals:
                    slot.journals.remove(journal)
                self._ended.notify_all()
            slot.line.note_change()

    def _find_slot(self) -> CellCalls:
        executions = executions_of(self._session.shell)
        execution = executions.latest or executions.current()
        if execution.id not in self._slots:
            self._slots[execution.id] = self._make_slot(execution)
        return self._slots[execution.id]

    def _make_slot(self, execution: Execution) -> CellCalls:
        configured = str(self._session.defaults().get("rerun", ""))
        mode = rerun_mode(configured, execution.cell)
        calls = CellCalls(execution, self._records.read(execution.cell), mode)
        if execution.id == self._last_ended:  # a thread calls between two cells
            calls.line.end()
        return calls

    def _end_cell(self, _: Any = None) -> None:
        """Record and show the calls that have ended; IPython's event `post_run_cell`."""
        latest = executions_of(self._session.shell).latest
        with self._lock:
            # a library may return before the relay has seen the end of the answer
            self._ended.wait_for(lambda: not any(s.open for s in self._slots.values()), _PATIENCE)
            self._ended.wait_for(lambda: not any(s.ending for s in self._slots.values()), _READING)
            self._last_ended = latest.id if latest is not None else ""
            lines = [slot.line for slot in self._slots.values()]
            slots = [s for s in self._slots.values() if s.calls or s.misses]
            self._slots = {
                i: s
                for i, s in self._slots.items()
                if s.open or s.ending or (latest and i == latest.id)
            }
            ended = [(slot, slot.calls, slot.misses) for slot in slots]
            for slot in slots:
                slot.calls, slot.misses = [], []
        for line in lines:
            line.end()
        for contact in self._watch.take_contacts():
            print_warning(contact.notice)
        for slot, calls, misses in ended:
            self._show(slot, drop_retried(calls), misses)

    def _show(self, slot: CellCalls, calls: list[TapedCall], misses: list[str]) -> None:
        cell = slot.execution.cell
        logs = make_logs((c.exchange, c.run, c.began, c.ended) for c in calls)
        self._publish_records(slot, calls, logs)
        self._session.library.keep_used(cell.key, slot.ids)
        runs = [Run(log, cell=cell.id) for log in logs]
        replayed = bool(calls) and all(call.recorded for call in calls)
        numbers: dict[str, Any] = {"taped": len(calls), "cell_id": cell.id}
        numbers |= {RunNumbers.TAPE: list(slot.ids)}
        if replayed:
            numbers |= {
                **summarize_run(runs[0], recorded=False),
                "run": calls[0].recorded,
                "replayed": True,
            }
        line = describe_calls(runs, sum(bool(call.recorded) for call in calls), misses)
        bundle: dict[str, Any] = {"text/plain": ""}
        if not is_unshown(cell):
            from ...view import make_folded_bundle

            bundle = make_folded_bundle(line, [run.log for run in runs[:_MOST_CARDS]], misses)
        publish_display(bundle, {METADATA_KEY: numbers}, {}, False)
        if slot.mode == "replay":
            publish_errors(cell, [f"a model call is not recorded: {why}" for why in misses])

    def _publish_records(
        self, slot: CellCalls, calls: list[TapedCall], logs: list[EventLog]
    ) -> None:
        """Record the calls that were sent; publish the served records of this kernel again."""
        library, shown = self._session.library, set(slot.ids)
        for call, log in zip(calls, logs, strict=True):
            name = call.recorded or log.run
            slot.ids += [] if name in shown else [name]
            if not call.recorded:
                slot.ordinal += 1
                self._publish_record(slot, call, log)
            elif name not in shown and library.is_from_kernel(slot.served.records[name]):
                numbers = {"version": VERSION, "record": name}
                publish_display(
                    {RECORD_MIME: slot.served.records[name]}, {METADATA_KEY: numbers}, {}, False
                )
            shown.add(name)

    def _publish_record(self, slot: CellCalls, call: TapedCall, log: EventLog) -> None:
        """Sign the record of a call, and put it into the cell's output, where it shows nothing."""
        cell = slot.execution.cell
        provenance = Provenance(
            cell=cell.id,
            source=cell.text_hash,
            conversation=Provenance.NO_CONVERSATION,
            execution=slot.execution.id,
            ordinal=slot.ordinal,
        )
        packed = self._packer.pack(call.exchange, log)
        record = self._session.sign(run_record(log, provenance, exchange=packed))
        self._session.library.keep(cell.key, record)
        self._session.run_ids.add(log.run)
        numbers = {**summarize_run(Run(log, cell=cell.id)), "cell_id": cell.id}
        publish_display({RECORD_MIME: record}, {METADATA_KEY: numbers}, {}, False)

    def _redact(self, exchange: Exchange, headers: Mapping[str, str]) -> Exchange:
        return redact_exchange(exchange, collect_secrets(), headers)


def start_tape(session: Session) -> None:
    """Start the tape of a kernel unless it is on. Raises UsageError."""
    if session.tape is None:
        tape = NotebookTape(session)
        tape.start()
        session.tape = tape


def _pass_by_proxies() -> dict[str, str]:
    """Return the variables that keep programs from asking for the relay through a proxy.

    {} if no proxy is set; that of https counts, since some programs use it for http, too.
    """
    if not getproxies_environment().keys() & {"http", "https", "all"}:
        return {}
    excepted = DIVERTED.read("no_proxy") or DIVERTED.read("NO_PROXY")
    if excepted.strip() == "*":
        return {}
    return dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join(filter(None, (excepted, "127.0.0.1"))))
