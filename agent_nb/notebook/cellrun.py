"""One `%%agent` cell from its text to its record: options, agent, driver, view, and what stays afterwards.

Why here: this is the only place that knows all of them.

Rules
- What can be wrong before the run (options, `{{ }}`, model, tools) is shown like a run that failed, with a valid log, and no
  model is called.
- Whatever happens, the view is closed with a static bundle, the conversation is released, and the log ends with `end`.
- The run is left in `_agent` and in the variable of `-o`, also when it failed.
- A run that ended in an error fails the cell; an interrupted one or one that hit a limit does not: what there is, is kept.
- A run that failed without an answer is no turn of the conversation.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import msgspec

from .. import events
from ..agent import Agent, Replay, Stream
from ..errors import AgentError, Cancelled, UsageError
from ..journal import Journal
from ..log import EventLog
from ..published import Announced, announce
from ..record import KEY, MIME, closed, run_record
from ..redact import redact_value
from ..replay import Resume
from ..run import Run
from ..signing import sign, user_key
from ..tape import Match
from ..tools.base import Asker
from ..view.bundle import bundle
from ..view.live import LiveView, open_view
from ..view.renderer import HERTZ
from .asking import Clicks, either_asker, printable, stdin_asker
from .cell import Cell, content_hash
from .conversations import Conversation, Turn
from .driver import Driver
from .failure import AgentCellError
from .frontend import can_click, headless, may_click, view_kind
from .interpolate import interpolate
from .options import Options
from .publish import publish
from .relay import send
from .rerun import Choice, choose, mode, trusted
from .session import Session, secrets
from .summary import summary

ABANDONED = "abandoned: the run did not stop when it was asked to"
UNSEEN = 1.0  # paints a second where nobody looks on; the last one counts
DRIFT = 2000  # characters of each side of a drift that are told


class Work:
    """A stream as the driver runs it."""

    def __init__(self, stream: Stream, agent: Agent, driver: Driver) -> None:
        self.stream = stream
        self._driver = driver
        self._agent = agent

    async def run(self) -> None:
        """Run to the end and close the model's connections."""
        try:
            await self.stream
        finally:
            await self._agent.aclose()

    def cancel(self) -> None:
        """Stop the run as the user's interrupt."""
        self.stream.cancel("user", self._driver.stopped_by)


class CellRun:
    """One cell's run."""

    def __init__(self, session: Session, cell: Cell, options: Callable[[], Options]) -> None:
        self.session = session
        self.cell = cell
        self.options = Options()
        self._parse = options
        self._held = ExitStack()
        self._conversation: Conversation | None = None
        self._stream: Stream | None = None
        self._view: LiveView | None = None
        self._clicks: Clicks | None = None
        self._choice = Choice(Match(status="unrecorded"))
        self._start: Callable[[Driver, Resume | None], Work] | None = None
        self._announced: Announced | None = None  # held while the run goes on

    async def go(self) -> None:
        """Run the cell. Raises AgentCellError."""
        with self._held:
            try:
                driver = Driver(self.session.shell)
                await driver.drive(lambda: self._make(driver))
                if (resume := self._drifted()) is not None and not driver.abandoned:
                    driver = Driver(self.session.shell)
                    await driver.drive(lambda: self._go_on(driver, resume))
            except Cancelled as stop:
                self._before(events.Interrupt(detail=stop.detail), events.End(status="interrupted", finish_reason="user"))
                return
            except AgentError as fault:
                raise AgentCellError(self._refuse(fault)) from None
            run = Run(self._log(driver), cell=self.cell.id)
            self._finish(run)
        if run.status == "error":
            raise AgentCellError(run.error or "the run ended in an error")

    def _make(self, driver: Driver) -> Work:
        """Prepare everything the run needs, and decide whether it is a replay. Raises UsageError."""
        cell = self.cell
        self.options = options = _sent(self._parse(), cell)
        prompt = interpolate(cell.body.replace("\r\n", "\n").strip(), self.session.shell.user_ns)
        conversation = self._conversation = self._held.enter_context(
            self.session.conversations.claim(options.conversation, cell.key)
        )
        rebuilt = 0 if options.new else self.session.rebuild(conversation, self.cell)
        history = conversation.before(self.cell.key, fresh=options.new)
        notes = [*_rebuilt(rebuilt), *_notes(conversation.later(self.cell.key))]
        if view_kind(options.view, cell) == "widgets" and may_click(cell):
            self._clicks = Clicks()
        agent = self._agent(driver, options)
        wanted = mode("live" if options.live else options.rerun, self.cell)
        records = () if wanted == "live" else self.session.library.of(self.cell)
        attached = [self.session.shell.user_ns.get(name, name) for name in options.attach]
        inputs = agent.inputs(prompt, attachments=attached, history=history)
        can_ask = self._clicks is not None or self.cell.stdin
        placed = self.session.library.path(self.cell.sent) is not None
        self._choice = choice = choose(wanted, records, agent, inputs, trust=trusted(self.cell), can_ask=can_ask, placed=placed)

        if choice.found.status == "tampered":
            sys.stderr.write(f"agent_nb: {choice.found.problem}. It is not played; the cell runs live.\n")

        def start(driver: Driver, resume: Resume | None) -> Work:
            agent.host, agent.ask = driver.host, self._asker(driver)
            stream = agent(prompt, attachments=attached, history=history, notes=notes, resume=resume)
            self._keep_journal(stream.log)
            return self._open(driver, stream, agent)

        self._start = start
        return self._open(driver, agent.replay(choice.tape), agent, choice.badge) if choice.tape is not None else start(driver, None)

    def _open(self, driver: Driver, stream: Stream, agent: Agent, badge: str = "") -> Work:
        """Show a stream that is about to start."""
        self._stream = stream
        self._announced = announce(
            stream.log, conversation=self.options.conversation, questions=stream.questions, cancel=partial(driver.stop, "from elsewhere")
        )
        send(self.cell, stream.log)
        self._view = open_view(
            stream.log,
            kind=view_kind(self.options.view, self.cell),
            actions={"stop": driver.stop, **(self._clicks.actions if self._clicks else {})},
            thoughts=self.options.thoughts,
            can_click=self._can_click,
            publish=publish,
            badge=badge,
            hz=UNSEEN if headless(self.cell) else HERTZ,
        )
        return Work(stream, agent, driver)

    def _can_click(self) -> bool:
        return self._clicks is not None and can_click(self.session.shell, self.cell)

    def _drifted(self) -> Resume | None:
        return self._stream.played.resume if isinstance(self._stream, Replay) else None

    def _go_on(self, driver: Driver, resume: Resume) -> Work:
        """Go on live where the replay drifted."""
        note = redact_value(f"The replay went another way, so the run goes on live. {resume.drift}", secrets=secrets())
        if self._view is not None:
            self._view.close({"text/plain": printable(note)}, {})
        self._choice = Choice(self._choice.found)
        assert self._start is not None
        return self._start(driver, resume)

    def _keep_journal(self, log: EventLog) -> None:
        """Write a live run down as it happens, unless it is to leave no trace."""
        if not self.options.record:
            return
        path = self.session.library.path(self.cell.sent)
        journal = Journal(log.run, cell=self.cell.key, notebook=str(path or ""), conversation=self.options.conversation)
        log.subscribe(journal)
        self._held.callback(journal.close)
        if journal.warning and not self.session.warned:
            self.session.warned = True
            sys.stderr.write(f"agent_nb: {journal.warning}\n")

    def _asker(self, driver: Driver) -> Asker:
        typed = stdin_asker(driver.host, self.cell.stdin, lambda: self._view is None or self._view.caught_up)
        return either_asker(self._clicks, typed, self._can_click) if self._clicks else typed

    def _agent(self, driver: Driver, options: Options) -> Agent:
        hidden = secrets()
        driver.host.clean = partial(redact_value, secrets=hidden)
        agent = Agent(
            options.model,
            options.tools,
            system=options.system,
            dialect=options.dialect,
            approve=options.approve,
            limits=options.limits,
            settings=options.settings,
            folder=os.curdir,
            memory=options.memory,
            thought_tags=options.thought_tags,
            secrets=hidden,
            host=driver.host,
            ask=self._asker(driver),
            namespace=self.session.shell.user_ns,
            late=True,
        )
        agent.source = options.model_source or agent.source
        return agent

    def _log(self, driver: Driver) -> EventLog:
        """Return the log of the run, ended: as it is, or closed here when the run was left behind or broke."""
        assert self._stream is not None
        log = self._stream.log
        if log.ended and not driver.abandoned:
            return log
        found = list(log)
        if driver.fault is not None:
            fault = f"{type(driver.fault).__name__}: {driver.fault}"
            found.append(events.Error(code="internal", message=fault, run=log.run, ts=log.now()))
        whole = EventLog.of_events(closed(found))
        return EventLog.of_events(_abandoned(e) for e in whole) if driver.abandoned else whole

    def _finish(self, run: Run) -> None:
        """Show, record and remember an ended run."""
        self.session.keep(self.cell, run, self.options.output)
        self._show(run, recorded=self.options.record)
        if self._conversation is not None:
            self._conversation.commit(Turn(self.cell.key, run.log, self.options.new), live=self._choice.tape is None)
            if run.status == "error" and not run.answer:
                self._conversation.forget(self.cell.key)
        for _, fault in run.log.faults:
            sys.stderr.write(f"agent_nb: something that followed the run was detached: {type(fault).__name__}: {fault}\n")

    def _refuse(self, fault: AgentError) -> str:
        """Show a run that could not start; return the message."""
        message: str = redact_value(str(fault), secrets=secrets())
        code = "usage" if isinstance(fault, UsageError) else "model"
        self._before(events.Error(code=code, message=message), events.End(status="error", finish_reason=code))
        return message

    def _before(self, *ending: events.Event) -> None:
        """Show a run that ended before there was a stream, as a log of its own."""
        log = EventLog()
        said = redact_value(self.cell.body.strip(), secrets=secrets())
        for event in (events.RunStart(model=self.options.model or ""), events.User(content=said, origin="user"), *ending):
            log.append(event)
        run = Run(log)
        self.session.keep(self.cell, run, self.options.output)
        self._show(run, recorded=False)

    def _show(self, run: Run, *, recorded: bool) -> None:
        """Leave the static view of an ended run in the output, and its record if it is to be kept."""
        record = {MIME: self._record(run)} if recorded else {}
        numbers = {KEY: {**summary(run, recorded=recorded), **self._replayed()}}
        final = {**bundle(run.log, thoughts=self.options.thoughts, badge=self._choice.badge), **record}
        if self._view is not None:
            self._view.close(final, numbers)
        if view_kind(self.options.view, self.cell) != "text":
            if self._view is None:
                publish(final, numbers, {}, False)
        elif self.cell.kernel and recorded:
            publish(record, numbers, {}, False)  # the text is there already; alone the record shows nothing

    def _record(self, run: Run) -> dict[str, Any]:
        """Return the record of a live run, signed; that of a replay is the one it was played from."""
        if self._choice.record is not None:
            return dict(self._choice.record)
        record = run_record(
            run.log,
            cell=self.cell.id,
            source=content_hash(self.cell.line, self.cell.body),
            conversation=self.options.conversation,
            fresh=self.options.new,
        )
        signed = sign(record, user_key())
        self.session.library.keep(self.cell.key, signed)
        return signed

    def _replayed(self) -> dict[str, Any]:
        """Return what the numbers of a replay say beside those of its run; a drift is told on stderr too."""
        if self._choice.tape is None:
            return {}
        drift = self._stream.played.drift if isinstance(self._stream, Replay) else None
        if drift is None:
            return {"replayed": True}
        sys.stderr.write(f"agent_nb: the replay drifted: {printable(redact_value(str(drift), secrets=secrets()))}\n")
        told = {k: v[:DRIFT] if isinstance(v, str) else v for k, v in msgspec.to_builtins(drift).items()}
        return {"replayed": True, "drift": redact_value(told, secrets=secrets())}


def _sent(options: Options, cell: Cell) -> Options:
    """Return the options with what our runner sent in their place."""
    model = cell.sent.get("model")
    return msgspec.structs.replace(options, model=model, model_source="from --model") if isinstance(model, str) and model else options


def _abandoned(event: events.Event) -> events.Event:
    last = isinstance(event, events.Interrupt) and not event.span
    return msgspec.structs.replace(event, detail=ABANDONED) if last else event


def _rebuilt(turns: int) -> list[str]:
    return [f"The conversation was rebuilt from the records of {turns} cell{'' if turns == 1 else 's'} above."] if turns else []


def _notes(later: int) -> list[str]:
    if not later:
        return []
    turns = "turn was" if later == 1 else f"{later} turns were"
    return [f"The later {turns} dropped from the conversation: what came after this cell answered its former text."]
