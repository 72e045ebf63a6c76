"""The tape of a notebook: which model call gets a recorded answer, which is sent, which is refused.

Read `NotebookTape` from `start` on: `_answer` decides about each call, `_end_cell` hands those that
have ended to `taped_output`.

Rules
- A call belongs to the cell that runs when it arrives, else to the last one: a relay cannot see its
  caller. A call that ends after its cell is recorded when the next cell ends.
- The modes are those of `--rerun`. `auto` sends a call that has no record, or whose recorded answer
  is an error. `replay` refuses an unrecorded call; a test fails even if code catches the error.
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

from ...errors import UsageError
from ...host import DIVERTED, read_launch
from ...models import collect_secrets
from ...record import Journal
from ...tape import (
    PROVIDERS,
    CallJournal,
    Exchange,
    HostWatch,
    Live,
    Recording,
    Refusal,
    Relay,
    Request,
    Response,
    Sent,
    redact_exchange,
)
from ..notices import print_warning
from .executions import executions_of
from .hidden_texts import hide_texts
from .interrupts import Interrupts
from .kernel_interrupts import abort_queue
from .publish import is_captured
from .refusing import guard_hosts
from .rerun import recording_advice, rerun_mode
from .taped_calls import CellCalls, TapedCall
from .taped_output import TapedOutput
from .taped_records import TapedRecords

if TYPE_CHECKING:
    from ..session import Session

_KEY = "agent-nb-replays-without-a-key"  # for libraries that do not start without a key
_LONGEST_WAIT = 0.25  # seconds that the end of a cell waits for calls that go on


class NotebookTape:
    """The tape of one kernel, from `start` to `stop`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.RLock()
        self._call_ended = threading.Condition(self._lock)
        self._calls: dict[str, CellCalls] = {}  # by the id of the execution
        self._last_ended = ""  # the id of the execution whose cell ended last
        self._output = TapedOutput(session)
        self._records = TapedRecords(session.library)
        self._until_stop = ExitStack()  # undoes what `start` did
        self._guard = guard_hosts(session.shell) if read_launch().strict else None
        self._watch = HostWatch()  # reports hosts where no guard refuses them
        self._relay = Relay(
            {p.name: DIVERTED.read_original(p.variable) or p.official for p in PROVIDERS},
            self._answer,
            self._guard.watch.refuse_target if self._guard is not None else None,
            self._is_quick,
            {name: DIVERTED.read_original(name) for p in PROVIDERS for name in p.aliases},
        )

    def start(self) -> None:
        """Start the relay, and point the variables of libraries to it. Raises UsageError."""
        try:
            self._relay.start()
        except OSError as fault:
            raise UsageError(f"The tape cannot listen on 127.0.0.1: {fault}.") from None
        events, undo = self._session.shell.events, self._until_stop  # undone in reverse order
        undo.callback(hide_texts(self._session.shell, self._list_hidden))
        self._divert_libraries()
        undo.callback(DIVERTED.restore)
        undo.callback(self._end_cell)  # records the calls that the end of the relay has ended
        undo.callback(self._relay.stop)
        events.register("post_run_cell", self._end_cell)
        undo.callback(events.unregister, "post_run_cell", self._end_cell)
        if self._guard is not None:
            self._guard.refuse_all(self._relay.proxy)
        else:
            self._watch.start()
            undo.callback(self._watch.stop)

    def _list_hidden(self) -> dict[str, str]:
        """Return what names the relay -> its replacement in the notebook; see `hide_texts`."""
        base = self._relay.base
        address, _, secret = base.rpartition("/")
        return {**self._relay.list_addresses(), base: address, secret: "[redacted]"}

    def _divert_libraries(self) -> None:
        values = self._relay.list_variables()
        if read_launch().why_not_live:
            values |= {p.key: _KEY for p in PROVIDERS if not DIVERTED.read_original(p.key)}
        if self._guard is None:
            values |= _pass_by_proxies()
        base = self._relay.base
        # a text that names our own address differs in each kernel
        secrets = {"address of the tape": base, "secret of the tape": base.rpartition("/")[2]}
        DIVERTED.divert(values, secrets)

    def limit(self, rpm: float | None, concurrency: float | None, budget: float | None) -> None:
        """Limit the calls that are sent, as `Relay.limit` does."""
        self._relay.limit(rpm, concurrency, budget)

    def stop(self) -> None:
        """End the open calls, record the calls not yet recorded, and restore the variables."""
        self._until_stop.close()

    def _is_quick(self) -> bool:
        """Return whether `_answer` is brief now, or cannot hold up the stream of an answer."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            latest = executions_of(self._session.shell).latest
            calls = self._calls.get(latest.id) if latest is not None else None
            if calls is None:
                return False
            streams = any(each.open for each in self._calls.values())
            return calls.mode == "replay" or calls.is_live or not streams
        finally:
            self._lock.release()

    def _answer(self, request: Request, headers: Mapping[str, str]) -> Live | Response | Refusal:
        """Decide whether a request is answered from a record, sent or refused."""
        with self._lock:
            calls = self._find_calls()
            if calls.is_live:
                return self._go_live(calls, request, headers)
            index, redacted = calls.served.index, request
            # most requests hold no secret, and equal their recording as they are: collecting the
            # secrets for each, and redacting it, would take half the time of a replay
            if not index.has_recording(request, calls.secrets):
                exchange = Exchange(request=request, response=Response())
                redacted = self._redact(exchange, headers).request
            cell, only_replays = calls.execution.cell.id, calls.mode == "replay"
            answer = index.take_recording(redacted, cell, calls.used, errors=only_replays)
            if isinstance(answer, Recording):
                now = time.time()
                calls.ended.append(TapedCall(answer.exchange, now, now, now, answer.record))
                return _refuse_retries(answer.exchange.response)
            why = f"{answer.why}.{calls.served.remark}"
            calls.misses.append(why)
            if only_replays:
                return Refusal(f"Nothing to replay: {why} {recording_advice()}")
            return self._go_live(calls, request, headers)

    def _find_calls(self) -> CellCalls:
        """Return the calls of the execution that a call which arrives now belongs to."""
        executions = executions_of(self._session.shell)
        execution = executions.latest or executions.current()
        if execution.id not in self._calls:
            mode = rerun_mode(str(self._session.defaults().get("rerun", "")), execution.cell)
            calls = CellCalls(execution, self._records.read(execution.cell), mode)
            if execution.id == self._last_ended:  # a thread calls between two cells
                calls.line.end()
            self._calls[execution.id] = calls
        return self._calls[execution.id]

    def _go_live(self, calls: CellCalls, request: Request, headers: Mapping[str, str]) -> Live:
        journal = CallJournal(request, headers)
        calls.open += 1
        return Live(
            finish=partial(self._finish, calls, journal),
            begin=partial(self._begin, calls, journal),
            receive=journal.receive,
        )

    def _begin(self, calls: CellCalls, journal: CallJournal) -> None:
        cell, library = calls.execution.cell, self._session.library
        open_journal = partial(
            Journal,
            cell=cell.key,
            notebook=str(library.finder.path(cell.runner_options) or ""),
            execution=calls.execution.id,
            clean=not calls.journals,  # for the first call of an execution
            warn=self._session.warn,
        )
        journal.open(collect_secrets(), open_journal)
        calls.journals.append(journal)
        calls.line.redraw_soon()

    def _finish(self, calls: CellCalls, journal: CallJournal, sent: Sent | None) -> None:
        """Keep an exchange, redacted, until its cell ends; `sent` None: no answer began."""
        call = None
        try:
            if sent is not None:
                exchange = self._redact(sent.exchange, sent.headers)
                call = TapedCall(
                    exchange, sent.began, sent.ended, answered=sent.answered, run=journal.log.run
                )
            journal.end(None if call is None else call.exchange)
        finally:
            with self._lock:
                calls.open -= 1
                if call is not None:
                    calls.ended.append(call)
                elif journal in calls.journals:
                    calls.journals.remove(journal)
                self._call_ended.notify_all()
            calls.line.redraw_soon()

    def _end_cell(self, result: Any = None) -> None:
        """Record and show the calls that have ended; IPython's event `post_run_cell`.

        A press of the stop button ends the waiting, loses no record, and aborts queued cells.
        """
        if result is not None and is_captured():
            return  # the cell around it ends next, and its output stays
        latest, is_stopped = executions_of(self._session.shell).latest, False
        try:
            self._wait_for_calls()
        except KeyboardInterrupt:
            is_stopped = True
        with Interrupts() as interrupts:
            with self._lock:
                self._last_ended = latest.id if latest is not None else ""
                executions = list(self._calls.values())
                taken = [(calls, calls.take_ended()) for calls in executions]
                for calls in executions:
                    execution = calls.execution.id
                    if not calls.open and execution != self._last_ended:
                        del self._calls[execution]
            for calls in executions:
                calls.line.end()
            for contact in self._watch.take_contacts():
                print_warning(contact.notice)
            for calls, ended in taken:
                if ended.calls or ended.misses:
                    self._output.publish(calls, ended)
        if is_stopped or interrupts.stopped:
            abort_queue(getattr(self._session.shell, "kernel", None))

    def _wait_for_calls(self) -> None:
        """Wait a moment for calls that go on, and longer for answers that are being read."""
        with self._lock:
            # a library may return before the relay has seen the end of the answer
            self._call_ended.wait_for(
                lambda: not any(c.open for c in self._calls.values()), _LONGEST_WAIT
            )
        self._relay.wait_for_endings()

    def _redact(self, exchange: Exchange, headers: Mapping[str, str]) -> Exchange:
        return redact_exchange(exchange, collect_secrets(), headers)


def start_tape(session: Session) -> None:
    """Start the tape of a kernel unless it is on. Raises UsageError."""
    if session.tape is None:
        tape = NotebookTape(session)
        tape.start()
        session.tape = tape


def _refuse_retries(response: Response) -> Response:
    """Return a recorded answer that keeps a library from sending its request again."""
    if not response.is_retried:
        return response
    headers = {**response.headers, "x-should-retry": "false"}
    return msgspec.structs.replace(response, headers=headers)


def _pass_by_proxies() -> dict[str, str]:
    """Return the variables that keep programs from asking for the relay through a proxy.

    {} if no proxy is set; that of https counts, since some programs use it for http, too.
    """
    if not getproxies_environment().keys() & {"http", "https", "all"}:
        return {}
    excepted = DIVERTED.read_original("no_proxy") or DIVERTED.read_original("NO_PROXY")
    if excepted.strip() == "*":
        return {}
    return dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join(filter(None, (excepted, "127.0.0.1"))))
