"""One `%%agent` cell from its text to its record: options, agent, driver, display, ending.

Rules
- What is wrong before the run (options, `{{ }}`, model, tools) is shown like a run that failed,
  with a valid log, and no model is called.
- Whatever happens, the live view is replaced by a static page, the conversation is released, and
  the log ends with `end`.
- The run is left in `_agent` and in the variable of `-o`, also when it failed.
- A run that ended in an error fails the cell, unless `--expect` says so. A run that hit a limit
  does not, nor does the replay of an interrupted run.
- When the user stops the run (kernel interrupt, button, or from elsewhere), the cell ends with
  AgentStopped after all that, so that no queued cell runs. A press at any moment of the cell
  counts, also after the run.
- A replay that drifts in the mode `auto` goes on live in the same view. The button of a replay runs
  live in its place.
- An offered cell that the user chose is inserted after a live run that ended well, and only then.
- Turns from records of others are named before a model reads them; if the user
  cannot be asked, they need trust.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial

import msgspec

from ...agent import REGISTRY, Announced, Context, Resume, Run, Stream
from ...errors import AgentError, AgentStopped, Cancelled, UsageError
from ...events import EventLog
from ...host import read_launch
from ...models import collect_secrets
from ...record import Journal
from ...rows import Agent
from ...tools import OutputCapture
from ...wire import redact_value
from ..conversations import Conversation
from ..identity import Cell
from ..notices import print_warning
from ..options import Options
from ..runner_options import RunnerOptions
from ..session import Session
from . import trusting
from .capture import show_bars
from .controls import Controls
from .display import Display, UntilDrift
from .driver import Driver, Work
from .ending import UNDECIDED, Ending, Replaced, ended_log
from .event_file import write_events
from .failure import AgentCellError
from .frontend import is_unshown
from .interrupts import Interrupts
from .kernel_interrupts import cell_interrupts
from .prepare import (
    Asking,
    gather_context,
    make_agent,
    open_journal,
    prepare_inputs,
    prompt_of,
    use_recorded_turn,
)
from .rerun import (
    Choice,
    as_sent,
    decide_replay,
    replay_strictness,
    require_trust,
    rerun_mode,
    trusted_records,
)
from .run_live_button import RunLive


class CellRun:
    """One cell's run. `options` returns the cell's options or raises UsageError.

    `replaced` is the replay whose place the run takes; then a button started it and no cell runs.
    """

    def __init__(
        self,
        session: Session,
        cell: Cell,
        options: Callable[[], Options],
        *,
        replaced: Replaced | None = None,
    ) -> None:
        self.session, self.cell = session, cell
        self._parse = options
        self._replaced = replaced
        self._held = ExitStack()
        self._controls = Controls(
            session.shell, cell, lambda: self._display.views, alone=replaced is not None
        )
        self._secrets: Mapping[str, str] = {}
        self._options = Options()
        self._display = self._new_display()
        self._conversation: Conversation | None = None
        self._inputs: Asking | None = None
        self._agent: Agent | None = None
        self._context = Context()
        self._choice = UNDECIDED
        self._driver: Driver | None = None  # of the stream
        self._stream: Stream | None = None
        self._journal: Journal | None = None
        self._again: RunLive | None = None
        self._announced: Announced | None = None  # held while the run goes on
        self._unplaced = ""  # what to do if the notebook of the cell is not known

    async def go(self) -> None:
        """Run the cell. Raises AgentCellError, and AgentStopped when the user stopped it."""
        button = self._replaced is not None
        with cell_interrupts(self.session.shell, alone=button) as interrupts:
            if not button:
                self.session.put_away(self.cell.key, gone=True)
            run = await self._run(interrupts)
        if interrupts.stopped:
            raise AgentStopped(interrupts.by, run)
        if run.status == "ok" and self._choice.tape is None:
            self._controls.chosen.insert(self.session.shell)

    async def _run(self, interrupts: Interrupts) -> Run:
        """Run the cell, leave what stays of it and return the run. Raises AgentCellError."""
        with self._held, OutputCapture.mark_shown(), show_bars(self.session.shell):
            try:
                log = await self._drive(interrupts)
                known = self._agent.output if self._agent is not None else None
                run = Run(log, cell=self.cell.id, output=known)
            except Cancelled as stop:
                return self._ending().stopped(stop.detail, self._unused_log())
            except AgentError as fault:
                ending = self._ending()
                message = ending.refuse(fault, self._unused_log())
                raise AgentCellError(message, ending.line("the run could not start")) from None
            assert self._conversation is not None
            assert self._inputs is not None
            self._inputs.leave(self.session.shell.user_ns, self._options)
            ending = self._ending()
            ending.finish(run, self._conversation)
        ending.judge(run, self._unplaced)
        return run

    async def _drive(self, interrupts: Interrupts) -> EventLog:
        """Run to the end, also past a drift; return the ended log.

        Raises Cancelled if no event came, and AgentError if the run could not start.
        """
        driver = self._new_driver(interrupts)
        await driver.drive(lambda: self._make(driver))
        resume = self._stream.played.resume if self._stream is not None else None
        if resume is not None and not interrupts.stopped:
            self._choice = Choice(self._choice.match)  # live from the drift on
            driver = self._new_driver(interrupts)
            await driver.drive(lambda: self._start(driver, resume))
        assert self._stream is not None
        return ended_log(self._stream.log, driver)

    def _make(self, driver: Driver) -> Work:
        """Prepare the run, and decide whether it is a replay. Raises UsageError."""
        cell, session = self.cell, self.session
        self._options = options = as_sent(self._parse(), cell)
        question = prompt_of(session, cell, options)
        self._conversation = conversation = self._held.enter_context(
            session.conversations.claim(options.conversation, cell.key)
        )
        self._inputs = prepare_inputs(session, cell, options, conversation, question)
        self._display = self._new_display()
        self._controls.shown_as(self._display.kind)
        self._secrets = collect_secrets()
        self._agent = agent = make_agent(
            session,
            cell,
            options,
            host=driver.host,
            ask=self._controls.approval_source(driver, self._caught_up),
            secrets=self._secrets,
        )
        self._context = gather_context(session, cell, options, agent, question.prompt)
        self._choice = choice = self._choose(agent, conversation)
        if choice.match.status == "tampered":
            print_warning(f"{choice.match.problem}. It is not played; the cell runs live.")
        if choice.tape is None:
            changed = choice.why_anew
            self._context = msgspec.structs.replace(self._context, changed=changed)
            return self._start(driver, None)
        if choice.tape.all_again(agent.tools):
            self._permit(agent, live=False)
        replay = self._inputs.replay(agent, choice.tape, replay_strictness(cell, options.compare))
        return self._open(driver, replay, agent, choice.badge)

    def _choose(self, agent: Agent, conversation: Conversation) -> Choice:
        """Decide between the model and a record. Raises UsageError."""
        assert self._inputs is not None
        library, options = self.session.library, self._options
        wanted = rerun_mode("live" if options.live else options.rerun, self.cell)
        question = self._inputs.question
        wanted = question.only_replayed(wanted)
        records = () if wanted == "live" else library.of(self.cell)
        inputs = self._inputs.given(agent)
        self._unplaced = "" if wanted == "live" else library.unplaced(self.cell)
        try:
            trust = trusted_records(self.cell)
            make = partial(
                decide_replay,
                wanted,
                records,
                agent,
                inputs,
                trust=trust,
                can_ask=self._controls.can_ask,
                unplaced=self._unplaced,
                namespace=self.session.shell.user_ns,
            )
            choice = self._inputs.settle(make, records, wanted=wanted, trust=trust)
            if choice.tape is None and wanted != "live" and (remark := library.unplayed(self.cell)):
                print_warning(remark)
            return msgspec.structs.replace(choice, remark=question.remark)
        except UsageError:
            use_recorded_turn(self.session, self.cell, options, conversation, records)
            raise

    def _start(self, driver: Driver, resume: Resume | None) -> Work:
        """Start the agent, where a replay drifted (`resume`) or from the prompt on."""
        agent, inputs, options = self._agent, self._inputs, self._options
        assert agent is not None
        assert inputs is not None
        vouch = require_trust(
            inputs.foreign, trust=trusted_records(self.cell), can_ask=self._controls.can_ask
        )
        self._permit(agent, live=True)
        live = agent.within(
            host=driver.host, ask=self._controls.approval_source(driver, self._caught_up)
        )
        stream = inputs.ask(live, notes=vouch, resume=resume, context=self._context)
        self._journal = open_journal(self.session, self.cell, options, stream.log)
        if self._journal is not None:
            self._held.callback(self._journal.close)
        taken = len(resume.events) if resume is not None else 0
        return self._open(driver, stream, live, taken=taken)

    def _open(
        self, driver: Driver, stream: Stream, agent: Agent, badge: str = "", taken: int = 0
    ) -> Work:
        """Show a stream that is about to start; `taken` is the number of events it begins with."""
        self._stream, self._driver = stream, driver
        self._controls.steer(driver)
        self._controls.unseen.end(stream)
        self._announced = REGISTRY.announce(
            stream.log,
            conversation=self._options.conversation,
            questions=stream.questions,
            cancel=partial(driver.stop, "from elsewhere"),
        )
        write_events(self.cell, stream.log)
        replay = self._choice.tape is not None
        heard = UntilDrift(stream) if replay else stream.log
        journaled = self._journal is not None
        if self._display.opened:
            self._display.follow(heard, badge=badge, events=taken, journal=journaled)
        elif not is_unshown(self.cell):
            self._display.open(heard, badge=badge, recorded=replay, journal=journaled)
            if self._replaced is not None:  # the old button keeps the subshell of presses alive
                self.session.put_away(self.cell.key)
            self._again = self._button() if replay else None

        async def run() -> None:
            try:
                await stream
            finally:
                await agent.aclose()

        return Work(run, lambda: stream.cancel("user", driver.interrupts.by))

    def _button(self) -> RunLive | None:
        """Return the button that runs this replayed cell live, None where no press arrives."""
        if read_launch().why_not_live or not (self.cell.kernel and self._display.kind == "widgets"):
            return None
        return RunLive(self.session.shell, self._go_live, self._busy)

    def _busy(self) -> str:
        name = self._options.conversation
        if not self.session.conversations[name].running:
            return ""
        return f"The conversation {name!r} is busy: a run is still going on. Press again when it is over."

    async def _go_live(self) -> None:
        """Run this cell live in the place of its replay."""
        sent: RunnerOptions = {**self.cell.sent, "rerun": "live"}
        cell = msgspec.structs.replace(self.cell, stdin=False, sent=sent)
        replaced = Replaced(self._display.id, self._choice.record)
        await CellRun(self.session, cell, self._parse, replaced=replaced).go()

    def _ending(self) -> Ending:
        return Ending(
            self.session,
            self.cell,
            self._options,
            self._display,
            choice=self._choice,
            played=self._stream.played if self._stream is not None else None,
            replaced=self._replaced,
            again=self._again,
        )

    def _unused_log(self) -> EventLog | None:
        """Return the empty log of a stream that no thread writes to, None if there is none.

        Discard the journal: there is nothing to recover.
        """
        if self._journal is not None:
            self._journal.close(discard=True)
        if self._stream is None or self._driver is None or self._driver.abandoned:
            return None
        return None if len(self._stream.log) else self._stream.log

    def _permit(self, agent: Agent, *, live: bool) -> None:
        """Ask about the offers of the folder. Raises NotAllowed."""
        offers = partial(agent.offers, live=live)
        trusting.ask_permissions(offers, declined=self.session.declined, stdin=self.cell.stdin)

    def _new_display(self) -> Display:
        return Display(
            self.cell,
            self._options,
            actions=self._controls.actions,
            can_click=self._controls.can_click,
            replaces=self._replaced.display_id if self._replaced is not None else "",
        )

    def _new_driver(self, interrupts: Interrupts) -> Driver:
        return Driver(
            self.session.shell, interrupts, lambda it: redact_value(it, secrets=self._secrets)
        )

    def _caught_up(self) -> bool:
        return self._display.caught_up
