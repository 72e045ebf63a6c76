"""Replays of records without an agent: the player alone, with or without tools."""

from agent_nb.agent.recorded_turns import RecordedTurns
from agent_nb.agent.replay import Player
from agent_nb.events import EventLog


async def replay(record, runner=None, **trust):
    """Play a record to its end and return its log and the drift.

    `runner` runs the kernel calls again (None: they too come from the record). `trust`: see
    `RecordedTurns.of`.
    """
    turns = RecordedTurns.of(record, **trust)
    player = Player(turns, EventLog(turns.run), runner)
    await player.run()
    return player.played
