"""The inputs of a cell that asks one prompt.

`MapInputs` has the same methods, so that `run` treats both alike; some arguments serve maps only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ...agent import Context, RecordedTurns, ReplayStrictness, Resume, Stream
from ...events import Event, State
from ...record import Record, RunInputs
from ...rows import Agent
from ..options import Options
from .cell_prompt import CellPrompt
from .rerun import ReplayChoice, ReplayRules


class PromptInputs(msgspec.Struct, frozen=True):
    """The inputs of one prompt in a conversation."""

    prompt: CellPrompt
    attachments: list[Any]
    history: list[Sequence[Event]]  # the earlier runs of the conversation
    foreign_count: int  # how many of these come from other users' records
    notes: list[str]  # remarks on the conversation, for the header of a live run

    def run_inputs(self, agent: Agent) -> RunInputs:
        """Return the inputs of the agent's run, by which a record is found."""
        return agent.make_inputs(
            self.prompt.text, attachments=self.attachments, history=self.history
        )

    def choose_replay(
        self, decide: Callable[[], ReplayChoice], records: Sequence[Record], rules: ReplayRules
    ) -> ReplayChoice:
        """Return what `decide` decides: play a record, or call the model."""
        return decide()

    def start(
        self, agent: Agent, *, notes: Sequence[str | State], resume: Resume | None, context: Context
    ) -> Stream:
        """Return the stream of a live run, which goes on where a replay drifted (`resume`)."""
        return agent(
            self.prompt.text,
            attachments=self.attachments,
            history=self.history,
            notes=[*self.notes, *notes],
            resume=resume,
            context=context,
            check=False,  # the cell itself fails, and makes the record
            record=False,
        )

    def replay(
        self, agent: Agent, turns: RecordedTurns, strictness: ReplayStrictness | None
    ) -> Stream:
        """Return the stream of a recorded run; `strictness`: see `rerun.replay_strictness`."""
        return agent.replay(turns, check=False, wish=strictness)

    def publish_result(self, namespace: dict[str, Any], options: Options) -> None:
        """Do nothing: only a map leaves more than its run."""
