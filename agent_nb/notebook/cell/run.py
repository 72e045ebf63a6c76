"""Run one `%%agent` cell, from its text to its record.

Why one file: the order of the steps is fixed here; `prepare`, `rerun`, `driver`, `display` and
`ending` do them.

Rules
- An error before the run (options, `{{ }}`, model, tools) is shown like a failed run, with a valid
  log; no model is called.
- A press of stop at any moment of the cell ends it with AgentStopped, so that no queued cell runs.
- Before a model reads turns from records of other people, a note names these turns; if the user
  cannot be asked, all records must be trusted (`require_trust`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

import msgspec

from ...agent import REGISTRY, Announced, Changes, Context, RecordedTurns, Resume, Run, Stream
from ...errors import AgentError, AgentStopped, Cancelled, UsageError
from ...events import EventLog
from ...host import read_launch
from ...models import collect_secrets
from ...record import Journal, Record, events_of
from ...rows import Agent
from ...tools import OutputCapture, Toolset
from ...wire import redact_value
from ..conversations import Conversation, Turn, is_turn
from ..identity import Cell
from ..notices import print_warning
from ..options import Options
from ..runner_options import RunnerOptions
from ..session import Session
from . import trusting
from .capture import show_in_cards
from .cell_prompt import CellPrompt
from .cell_tools import add_default_tools
from .controls import Controls
from .display import Display, UntilDrift
from .driver import Driver, Work
from .ending import UNDECIDED, Ending, ReplacedReplay, close_log
from .event_file import write_events
from .failure import AgentCellError
from .frontend import is_unshown
from .interrupts import Interrupts
from .kernel_interrupts import cell_interrupts
from .mentioned import NO_REFERENCES, MentionTargets
from .prepare import (
    CellInputs,
    describe_agent,
    gather_context,
    load_attached,
    prepare_inputs,
    read_prompt,
)
from .rerun import (
    ReplayChoice,
    ReplayRules,
    apply_runner_options,
    decide_replay,
    replay_strictness,
    require_trust,
    rerun_mode,
    select_prompted,
    trusted_records,
)
from .run_live_button import RunLive


class CellRun:
    """One run of a cell; call `go` once.

    `options` returns the cell's options or raises UsageError. `replaced`: the replay whose place
    the run takes; then a button started the run, and the kernel executes no cell.

    `_prepare` reads the cell, makes the agent, and lets `_choose` decide between the model
    (`_start`) and a record (`_replay`); `_open` shows the stream of either. A field that these
    methods have not set yet holds None or an empty value.
    """

    def __init__(
        self,
        session: Session,
        cell: Cell,
        options: Callable[[], Options],
        *,
        replaced: ReplacedReplay | None = None,
    ) -> None:
        self.session, self.cell = session, cell
        self._parse_options = options
        self._replaced = replaced
        self._until_end = ExitStack()  # closed when the run has ended: conversation, journal
        self._controls = Controls(
            session.shell, cell, lambda: self._display, by_button=replaced is not None
        )
        self._secrets: Mapping[str, str] = {}
        self._options = Options()
        self._display = self._new_display()
        self._conversation: Conversation | None = None
        self._inputs: CellInputs | None = None
        self._agent: Agent | None = None
        self._context = Context()
        self._attached = NO_REFERENCES
        self._choice = UNDECIDED
        self._driver: Driver | None = None  # of the latest stream
        self._stream: Stream | None = None
        self._journal: Journal | None = None
        self._run_live: RunLive | None = None
        # other cells and processes find the run in `REGISTRY` as long as this reference is held
        self._announced: Announced | None = None
        self._path_advice = ""  # `NotebookFinder.advice`

    async def go(self) -> None:
        """Run the cell. Raises AgentCellError, and AgentStopped when the user stopped it."""
        by_button = self._replaced is not None
        with cell_interrupts(self.session.shell, by_button=by_button) as interrupts:
            if not by_button:
                self.session.remove_button(self.cell.key, gone=True)
            run = await self._run(interrupts)
        if interrupts.stopped:
            raise AgentStopped(interrupts.by, run)
        if run.status == "ok" and self._choice.turns is None:
            self._controls.chosen.insert(self.session.shell)

    async def _run(self, interrupts: Interrupts) -> Run:
        """Run the cell, write its static page and its record, and return the run.

        Raises AgentCellError if the run could not start, or ended in an error that fails the cell.
        """
        with self._until_end, OutputCapture.mark_shown(), show_in_cards(self.session.shell):
            try:
                log = await self._drive(interrupts)
                output = self._agent.output if self._agent is not None else None
                run = Run(log, cell=self.cell.id, output=output)
            except Cancelled as stop:
                return self._make_ending().show_stopped(stop.detail, self._take_unused_log())
            except AgentError as fault:
                ending = self._make_ending()
                message = ending.show_refused(fault, self._take_unused_log())
                short = ending.short_error_line("the run could not start")
                raise AgentCellError(message, short) from None
            assert self._conversation is not None
            assert self._inputs is not None
            self._inputs.publish_result(self.session.shell.user_ns, self._options)
            ending = self._make_ending()
            ending.finish(run, self._conversation)
        ending.fail_cell(run, self._path_advice)
        return run

    async def _drive(self, interrupts: Interrupts) -> EventLog:
        """Run to the end, also past a drift; return the ended log.

        Raises Cancelled if no event came, and AgentError if the run could not start.
        """
        driver = self._new_driver(interrupts)
        await driver.drive(lambda: self._prepare(driver))
        resume = self._stream.played.resume if self._stream is not None else None
        if resume is not None and not interrupts.stopped:  # the replay drifted: live from there on
            self._choice = ReplayChoice(self._choice.match)
            driver = self._new_driver(interrupts)
            await driver.drive(lambda: self._start(driver, resume))
        assert self._stream is not None
        return close_log(self._stream.log, driver)

    def _prepare(self, driver: Driver) -> Work:
        """Prepare a replay or a live run, and return its work. Raises UsageError."""
        conversation = self._read_cell()
        options, library = self._options, self.session.library
        self._secrets = collect_secrets()
        self._agent = agent = describe_agent(
            self.session,
            options,
            approve=options.approve,
            limits=options.limits,
            folder=os.curdir,
            memory=options.memory,
            thought_tags=options.thought_tags,
            secrets=self._secrets,
            host=driver.host,
            ask=self._controls.approval_source(driver),
            mentioned=lambda: library.read_file(self.cell.runner_options).possible_tools,
            model_source=options.model_source,
        )
        self._choice = choice = self._choose(agent, conversation)
        if choice.match.status == "tampered":
            print_warning(f"{choice.match.problem}. It is not played; the cell runs live.")
        if choice.turns is None:
            return self._start(driver, None)
        return self._replay(driver, agent, choice.turns)

    def _read_cell(self) -> Conversation:
        """Read the cell's options and inputs; return its conversation, claimed for the run."""
        cell, session = self.cell, self.session
        self._options = options = apply_runner_options(self._parse_options(), cell)
        pictures, self._attached = load_attached(session, options)
        prompt = read_prompt(session, cell, options)
        self._conversation = conversation = self._until_end.enter_context(
            session.conversations.claim(options.conversation, cell.key)
        )
        self._inputs = prepare_inputs(
            session, cell, options, conversation, prompt, pictures=pictures
        )
        self._display = self._new_display()  # again: now the options are known
        self._controls.set_view_kind(self._display.kind)
        return conversation

    def _replay(self, driver: Driver, agent: Agent, turns: RecordedTurns) -> Work:
        """Return the work that plays a record with the tools of its run."""
        assert self._inputs is not None
        self._agent = agent = agent.with_tools(turns.choose_tools(agent.tools))
        if turns.live:  # before the calls of the replay change the variables
            self._gather_context(agent)
        reruns = bool(turns.calls_to_rerun_with_rows(agent.tools))
        if reruns:
            self._ask_permissions(agent, live=False)
        strictness = replay_strictness(self.cell, self._options.compare)
        replay = self._inputs.replay(agent, turns, strictness)
        # a replay that draws nothing and calls nothing waits for nothing
        brief = not reruns and is_unshown(self.cell)
        return self._open(driver, replay, agent, self._choice.badge, brief=brief)

    def _choose(self, agent: Agent, conversation: Conversation) -> ReplayChoice:
        """Decide between the model and a record. Raises UsageError."""
        assert self._inputs is not None
        library, options = self.session.library, self._options
        prompt = self._inputs.prompt
        mode = rerun_mode("live" if options.live else options.rerun, self.cell)
        mode = prompt.restrict_mode(mode)
        records = () if mode == "live" else library.rank_records(self.cell)
        inputs = self._inputs.run_inputs(agent)
        self._path_advice = "" if mode == "live" else library.finder.advice(self.cell)
        try:
            rules = ReplayRules(
                mode, trusted_records(self.cell), self._controls.can_ask, self._path_advice
            )
            find_changes = partial(self._find_changes, agent, prompt)
            decide = partial(decide_replay, rules, records, agent, inputs, find_changes)
            choice = self._inputs.choose_replay(decide, records, rules)
            not_replayed = choice.turns is None and mode != "live"
            if not_replayed and (warning := library.finder.ambiguity_warning(self.cell)):
                print_warning(warning)
            return msgspec.structs.replace(choice, reason=prompt.why_replayed)
        except UsageError:
            self._use_recorded_turn(conversation, records)
            raise

    def _use_recorded_turn(self, conversation: Conversation, records: Sequence[Record]) -> None:
        """Where nothing may run live, count the newest record as the turn of this refused cell.

        The cells below can then be replayed, since their conversation is the recorded one.
        """
        newest = next(iter(select_prompted(records)), None)
        if newest is None or not read_launch().why_not_live or not is_turn(events_of(newest)):
            return
        foreign = not self.session.library.is_own(newest)
        turn = Turn(self.cell.key, events_of(newest), self._options.new, foreign=foreign)
        conversation.commit(turn, live=False)

    def _find_changes(
        self, agent: Agent, prompt: CellPrompt, turns: RecordedTurns, tools: Toolset
    ) -> Changes:
        """Return the changes of what a recorded run of the cell used."""
        if prompt.recorded:  # the user has mended the cell that failed, which changes variables
            return Changes()
        shell = self.session.shell
        targets = MentionTargets(shell, self.cell, self.session.library)
        compare = partial(targets.describe_changes, attached=self._attached.mentions)
        return Changes.since(turns, tools, shell.user_ns, compare, agent.secrets)

    def _start(self, driver: Driver, resume: Resume | None) -> Work:
        """Start the agent and return its work: from the prompt on, or where a replay drifted."""
        agent, inputs = self._agent, self._inputs
        assert agent is not None
        assert inputs is not None
        notes = require_trust(
            inputs.foreign_count, trust=trusted_records(self.cell), can_ask=self._controls.can_ask
        )
        self._ask_permissions(agent, live=True)
        if resume is None:
            self._agent = agent = add_default_tools(agent)
            self._gather_context(agent)
        live = agent.with_host(host=driver.host, ask=self._controls.approval_source(driver))
        stream = inputs.start(live, notes=notes, resume=resume, context=self._context)
        if self._options.record:
            self._journal = Journal(
                stream.log.run,
                cell=self.cell.key,
                notebook=str(self.session.library.finder.path(self.cell.runner_options) or ""),
                conversation=self._options.conversation,
                warn=self.session.warn,
            )
            stream.log.subscribe(self._journal)
            self._until_end.callback(self._journal.close)
        replayed = len(resume.events) if resume is not None else 0
        return self._open(driver, stream, live, replayed=replayed)

    def _gather_context(self, agent: Agent) -> None:
        assert self._inputs is not None
        prompt, attached = self._inputs.prompt, self._attached
        context = gather_context(
            self.session, self.cell, self._options, agent, prompt, attached=attached
        )
        self._context = msgspec.structs.replace(context, why_live=self._choice.why_live)

    def _open(
        self,
        driver: Driver,
        stream: Stream,
        agent: Agent,
        badge: str = "",
        *,
        replayed: int = 0,
        brief: bool = False,
    ) -> Work:
        """Show and announce a stream that is about to start, and return its work.

        `replayed`: how many events of a replay the open view shows already. `brief`: see `Work`.
        """
        self._stream, self._driver = stream, driver
        self._controls.set_driver(driver)
        self._controls.unseen.cancel_after_denial(stream)
        self._announced = REGISTRY.announce(
            stream.log,
            conversation=self._options.conversation,
            questions=stream.questions,
            cancel=partial(driver.stop, "from elsewhere"),
        )
        write_events(self.cell, stream.log)
        replay = self._choice.turns is not None
        source = UntilDrift(stream) if replay else stream.log
        journaled = self._journal is not None
        if self._display.opened:
            self._display.follow(source, badge=badge, events=replayed, journal=journaled)
        elif not is_unshown(self.cell):
            self._display.open(source, badge=badge, recorded=replay, journal=journaled)
            # Only now: JupyterLab ends the subshell that receives clicks with the last widget.
            if self._replaced is not None:
                self.session.remove_button(self.cell.key)
            self._run_live = self._make_button() if replay else None

        async def run() -> None:
            try:
                await (stream.run_here() if brief else stream)
            finally:
                await agent.aclose()

        return Work(run, lambda: stream.cancel("user", driver.interrupts.by), brief=brief)

    def _make_button(self) -> RunLive | None:
        """Return the button that runs this replayed cell live, None where it could not be used."""
        if read_launch().why_not_live or not (self.cell.kernel and self._display.kind == "widgets"):
            return None
        return RunLive(self.session.shell, self._go_live, self._why_busy)

    def _why_busy(self) -> str:
        """Return why the button cannot run the cell now, "" if it can."""
        name = self._options.conversation
        if not self.session.conversations[name].running:
            return ""
        return f"The conversation {name!r} is busy: a run is still going on. Press again when it is over."

    async def _go_live(self) -> None:
        """Run this cell live in the place of its replay."""
        options: RunnerOptions = {**self.cell.runner_options, "rerun": "live"}
        cell = msgspec.structs.replace(self.cell, stdin=False, runner_options=options)
        replaced = ReplacedReplay(self._display.id, self._choice.record)
        await CellRun(self.session, cell, self._parse_options, replaced=replaced).go()

    def _make_ending(self) -> Ending:
        """Return the `Ending` of the run, with the state that the run has reached."""
        return Ending(
            self.session,
            self.cell,
            self._options,
            self._display,
            choice=self._choice,
            played=self._stream.played if self._stream is not None else None,
            replaced=self._replaced,
            run_live=self._run_live,
        )

    def _take_unused_log(self) -> EventLog | None:
        """Discard the journal, and return the empty log of a stream that never began, or None.

        The log then shows why the run could not start. The log of an abandoned run is not returned:
        its thread may still write to it.
        """
        if self._journal is not None:
            self._journal.close(discard=True)
        if self._stream is None or self._driver is None or self._driver.abandoned:
            return None
        return None if len(self._stream.log) else self._stream.log

    def _ask_permissions(self, agent: Agent, *, live: bool) -> None:
        """Ask about the keys and rules that the folder offers (`trusting`). Raises NotAllowed."""
        offers = partial(agent.offers, live=live)
        trusting.ask_permissions(offers, declined=self.session.declined, stdin=self.cell.stdin)

    def _new_display(self) -> Display:
        return Display(
            self.cell,
            self._options,
            actions=self._controls.actions,
            can_click=self._controls.can_click,
            above=self.cell.body.replace("\r\n", "\n"),
            replaces=self._replaced.display_id if self._replaced is not None else "",
        )

    def _new_driver(self, interrupts: Interrupts) -> Driver:
        return Driver(
            self.session.shell,
            interrupts,
            lambda bundle: redact_value(bundle, secrets=self._secrets),
        )
