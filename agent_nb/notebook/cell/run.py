"""One `%%agent` cell from its text to its record: options, agent, driver, view, and what stays
afterwards.

Why here: this is the only place that knows all of them.

Rules
- What can be wrong before the run (options, `{{ }}`, model, tools) is shown like a run that failed,
  with a valid log, and no model is called.
- Whatever happens, the view is closed with a static bundle, the conversation is released, and the
  log ends with `end`.
- The run is left in `_agent` and in the variable of `-o`, also when it failed.
- A run that ended in an error fails the cell, unless it is expected; one that hit a limit does not,
  nor the replay of one that was interrupted: what there is, is kept. Somebody's stop, of the
  kernel, by button or from elsewhere, ends the cell with AgentStopped when all that is done, so
  that nothing behind it runs; a press at any moment of the cell counts, also when the run is over.
- A replay that drifts in the mode `auto` goes on live in the same view, and the button of a replay
  runs live in its place.
- A run that failed without an answer is no turn of the conversation.
- Turns that come from records of others are named before a model reads them; with nobody to see
  that, they need trust.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from ... import events
from ...agent.agent import Agent
from ...agent.drift import Resume
from ...agent.registry import announce
from ...agent.run import Run
from ...agent.stream import Replay, Stream
from ...errors import AgentError, AgentStopped, Cancelled, UsageError
from ...events.log import EventLog
from ...models.keys import secrets
from ...models.offline import barred
from ...record.journal import Journal
from ...record.record import NONE, events_of
from ...tools.base import Asker
from ...tools.capture import shown
from ...view.live import open_view
from ...wire.redact import redact_value
from ..conversations import Turn, remarks
from ..execute.event_relay import send
from ..interpolate import interpolate
from ..notices import warn
from ..options import Options
from . import trusting
from .approvals import either_asker, stdin_asker
from .capture import bars
from .driver import Driver
from .ending import CellEnd
from .failure import AgentCellError
from .frontend import can_click, headless, may_click, unshown, view_kind
from .identity import RERUN
from .interrupts import Interrupts
from .kernel_interrupts import cell_interrupts
from .publish import publish
from .rerun import Choice, as_sent, choose, mode, trusted, vouched, wish
from .run_live_button import RunLive
from .streams import UntilDrift, Work


class CellRun(CellEnd):
    """One cell's run."""

    async def go(self) -> None:
        """Run the cell. Raises AgentCellError, and AgentStopped when somebody stopped it."""
        with cell_interrupts(self.session.shell, alone=self._taking) as interrupts:
            if not self._taking:
                self.session.put_away(self.cell.key, gone=True)
            run = await self._run(interrupts)
        if interrupts.stopped:
            raise AgentStopped(interrupts.by, run)

    async def _run(self, interrupts: Interrupts) -> Run:
        """Run the cell and leave what stays of it; return the run. Raises AgentCellError."""
        with self._held, shown(), bars(self.session.shell):
            try:
                driver = Driver(self.session.shell, interrupts)
                await driver.drive(lambda: self._make(driver))
                if (resume := self._drifted()) is not None and not interrupts.stopped:
                    driver = Driver(self.session.shell, interrupts)
                    await driver.drive(lambda: self._go_on(driver, resume))
                run = Run(self._log(driver), cell=self.cell.id)
            except Cancelled as stop:
                return self._before(
                    events.Interrupt(detail=stop.detail),
                    events.End(status="interrupted", finish_reason="user"),
                )
            except AgentError as fault:
                raise AgentCellError(
                    self._refuse(fault), self._once("the run could not start")
                ) from None
            self._finish(run)
        expected = self.options.expect
        if expected and run.status not in (expected, "interrupted"):
            raise AgentCellError(
                f"the run ended with status {run.status}, and --expect {expected} says otherwise",
                "",
            )
        if run.status == "error" and not expected:
            raise AgentCellError(
                self._reason(run) or "the run ended in an error",
                self._once("the run failed") if run.reason else "",
            )
        return run

    def _reason(self, run: Run) -> str:
        """Return why a run failed; for the lack of a key, the reason may be that the notebook with
        its record was not found.
        """
        keyless = any(
            isinstance(event, events.Error) and event.code == "no_key" for event in run.log
        )
        return " ".join(
            filter(None, [run.reason, self._unplaced if keyless and headless(self.cell) else ""])
        )

    def _make(self, driver: Driver) -> Work:
        """Prepare everything the run needs, and decide whether it is a replay. Raises
        UsageError.
        """
        cell = self.cell
        self.options = options = as_sent(self._parse(), cell)
        prompt = interpolate(cell.body.replace("\r\n", "\n").strip(), self.session.shell.user_ns)
        conversation = self._conversation = self._held.enter_context(
            self.session.conversations.claim(options.conversation, cell.key)
        )
        rebuilt = 0 if options.new else self.session.rebuild(conversation, self.cell)
        history = conversation.before(self.cell.key, fresh=options.new)
        foreign = conversation.foreign(self.cell.key, fresh=options.new)
        notes = remarks(rebuilt, conversation.later(self.cell.key))
        if view_kind(options.view, cell) == "widgets" and (may_click(cell) or self._taking):
            self._clicks = self._place.clicks
        agent = self._agent(driver, options)
        wanted = mode("live" if options.live else options.rerun, self.cell)
        records = () if wanted == "live" else self.session.library.of(self.cell)
        attached = [self.session.shell.user_ns.get(name, name) for name in options.attach]
        given = agent.given(prompt, attachments=attached, history=history)
        permit = partial(trusting.permit, declined=self.session.declined, stdin=self.cell.stdin)
        can_ask = self._clicks is not None or self.cell.stdin
        self._unplaced = "" if wanted == "live" else self.session.library.unplaced(self.cell)
        try:
            self._choice = choice = choose(
                wanted,
                records,
                agent,
                given,
                trust=trusted(self.cell),
                can_ask=can_ask,
                unplaced=self._unplaced,
            )
        except UsageError:
            self._stand_in(records)
            raise

        if choice.found.status == "tampered":
            warn(f"{choice.found.problem}. It is not played; the cell runs live.")

        def start(driver: Driver, resume: Resume | None) -> Work:
            told: list[str | events.State] = [
                *notes,
                *vouched(foreign, trust=trusted(self.cell), can_ask=can_ask),
            ]
            permit(partial(agent.offers, live=True))
            live = agent.within(host=driver.host, ask=self._asker(driver))
            stream = live(
                prompt,
                attachments=attached,
                history=history,
                notes=told,
                resume=resume,
                check=False,
                record=False,
            )
            self._keep_journal(stream.log)
            return self._open(
                driver, stream, live, taken=len(resume.events) if resume is not None else 0
            )

        self._start = start
        if choice.tape is None:
            return start(driver, None)
        if choice.tape.again(agent.tools):
            permit(partial(agent.offers, live=False))
        replay = agent.replay(choice.tape, check=False, wish=wish(cell, options.compare))
        return self._open(driver, replay, agent, choice.badge)

    def _stand_in(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Put the newest record in the turn of a cell that cannot be replayed, so that one problem
        is not one of every cell below.
        """
        newest = next((r for r in records if r.get("conversation") != NONE), None)
        if newest is not None and barred() and self._conversation is not None:
            turn = Turn(
                self.cell.key,
                events_of(newest),
                self.options.new,
                foreign=not self.session.library.owns(newest),
            )
            self._conversation.commit(turn, live=False)

    def _open(
        self, driver: Driver, stream: Stream, agent: Agent, badge: str = "", taken: int = 0
    ) -> Work:
        """Show a stream that is about to start, in the view that is there or in a new one; `taken`:
        the events it begins with.
        """
        self._stream, self._place.driver, self._place.can_click = stream, driver, self._can_click
        self._announced = announce(
            stream.log,
            conversation=self.options.conversation,
            questions=stream.questions,
            cancel=partial(driver.stop, "from elsewhere"),
        )
        send(self.cell, stream.log)
        heard = UntilDrift(stream) if isinstance(stream, Replay) else stream.log
        journal = self._journal is not None
        if self._place.view is not None:
            self._place.view.follow(heard, badge=badge, events=taken, journal=journal)
            return Work(stream, agent, driver)
        if unshown(self.cell):
            return Work(stream, agent, driver)
        self._place.view = open_view(
            heard,
            kind=view_kind(self.options.view, self.cell),
            actions={"stop": self._place.stop, **self._place.clicks.actions},
            thoughts=self.options.thoughts,
            can_click=lambda: self._place.can_click(),  # noqa: PLW0108  (it changes with the run)
            publish=publish,
            badge=badge,
            recorded=isinstance(stream, Replay),
            journal=journal,
            display_id=self._place.display_id,
            seen=not headless(self.cell),
        )
        if self._taking:
            self.session.put_away(self.cell.key)  # not before the view is there: see `_swap`
        self._again = self._button() if isinstance(stream, Replay) else None
        return Work(stream, agent, driver)

    def _button(self) -> RunLive | None:
        """Return what runs this replayed cell live when its button is pressed, where such a press
        arrives.
        """
        if barred() or not (
            self.cell.kernel and view_kind(self.options.view, self.cell) == "widgets"
        ):
            return None
        return RunLive(self.session.shell, self._go_live, self._busy)

    def _busy(self) -> str:
        name = self.options.conversation
        busy = self.session.conversations[name].running
        return (
            f"The conversation {name!r} is busy: a run is still going on. Press again when it is over."
            if busy
            else ""
        )

    async def _go_live(self) -> None:
        """Run this cell live in the place of its replay."""
        cell = msgspec.structs.replace(
            self.cell, stdin=False, sent={**self.cell.sent, RERUN: "live"}
        )
        self._place.record = self._choice.record
        await type(self)(self.session, cell, self._parse, place=self._place).go()

    def _can_click(self) -> bool:
        return self._clicks is not None and (
            self._taking or can_click(self.session.shell, self.cell)
        )

    def _drifted(self) -> Resume | None:
        return self._stream.played.resume if isinstance(self._stream, Replay) else None

    def _go_on(self, driver: Driver, resume: Resume) -> Work:
        """Go on live where the replay drifted."""
        self._choice = Choice(self._choice.found)
        assert self._start is not None
        return self._start(driver, resume)

    def _keep_journal(self, log: EventLog) -> None:
        """Write a live run down as it happens, unless it is to leave no trace."""
        if not self.options.record:
            return
        path = self.session.library.path(self.cell.sent)
        name = self.options.conversation
        journal = Journal(
            log.run,
            cell=self.cell.key,
            notebook=str(path or ""),
            conversation=name,
            warn=self.session.warn,
        )
        log.subscribe(journal)
        self._journal = journal
        self._held.callback(journal.close)

    def _asker(self, driver: Driver) -> Asker:
        typed = stdin_asker(
            driver.host,
            self.cell.stdin,
            lambda: self._place.view is None or self._place.view.caught_up,
        )
        return either_asker(self._clicks, typed, self._can_click) if self._clicks else typed

    def _agent(self, driver: Driver, options: Options) -> Agent:
        hidden = secrets()
        driver.host.clean = partial(redact_value, secrets=hidden)
        return Agent(
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
            mentioned=lambda: self.session.library.file(self.cell.sent).tools,
            late=True,
            model_source=options.model_source,
        )
