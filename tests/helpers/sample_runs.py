"""Plausible recorded runs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from agent_nb import events as e
from agent_nb.events.log import EventLog

MakeLog = Callable[..., EventLog]


def _stream(
    log: EventLog, block: str, of: str, text: str, turn: int, chance: random.Random
) -> None:
    at = 0
    while at < len(text):
        size = chance.choice((1, 2, 3, 4, 5, 6, 8))
        log.append(e.Delta(block=block, of=of, text=text[at : at + size], turn=turn))
        at += size


def make_log(
    run: str = "run000000001",
    *,
    turns: int = 2,
    words: int = 40,
    seed: int = 1,
    start: float = 1_763_760_000.0,
    effect_tool: str = "python",
    result: Any = "42",
    end: bool = True,
) -> EventLog:
    """Return a plausible run of `turns` model turns: all but the last call a tool, the last one
    answers.
    """
    chance = random.Random(seed)
    now = [start]

    def clock() -> float:
        now[0] += chance.choice((0.0, 0.004, 0.016, 0.031))
        return now[0]

    def text() -> str:
        return " ".join(
            chance.choice(("alpha", "beta", "über", "naïve", "値", "gamma,", "delta."))
            for _ in range(words)
        )

    log = EventLog(run, clock=clock)
    log.append(
        e.RunStart(
            agent="",
            model="scripted/a",
            dialect="xml",
            tools=(effect_tool,),
            settings={"hash": "h"},
        )
    )
    log.append(e.User(content="What is the sum?", origin="user"))
    for turn in range(1, turns + 1):
        log.append(
            e.Node(
                name="llm", phase="enter", span=f"llm-{turn}", turn=turn, data={"internal": True}
            )
        )
        thought = text()
        _stream(log, f"{turn}.1", "think", thought, turn, chance)
        log.append(e.Think(content=thought, block=f"{turn}.1", turn=turn, origin="model"))
        if turn < turns:
            _call(log, turn, effect_tool, result, chance)
        else:
            answer = text()
            _stream(log, f"{turn}.3", "respond", answer, turn, chance)
            log.append(e.Respond(content=answer, block=f"{turn}.3", turn=turn, origin="model"))
        step = e.Counts(input=100, output=50, duration=0.5, ttft=0.1)
        log.append(
            e.Metric(step=step, total=e.Counts(input=100 * turn, output=50 * turn), turn=turn)
        )
    if end:
        log.append(e.End(status="ok", finish_reason="stop"))
    return log


def _call(log: EventLog, turn: int, name: str, result: Any, chance: random.Random) -> None:
    raw = (
        '{"code": "total = base + 2  # a comment that makes this longer than the shortest\\ntotal"}'
    )
    args = {"code": "total = base + 2  # a comment that makes this longer than the shortest\ntotal"}
    _stream(log, f"{turn}.2", "call", raw, turn, chance)
    call_id = f"call_{turn}_1"
    log.append(
        e.Call(
            call_id=call_id,
            name=name,
            args=args,
            raw_args=raw,
            block=f"{turn}.2",
            batch=f"{turn}.b",
            turn=turn,
            origin="model",
        )
    )
    log.append(e.Execute(batch=f"{turn}.b", calls=(call_id,), turn=turn, origin="model"))
    log.append(e.Started(call_id=call_id, name=name, turn=turn, origin="tool"))
    log.append(e.Progress(call_id=call_id, text="working\n", turn=turn, origin="tool"))
    log.append(
        e.Result(
            call_id=call_id, name=name, content=result, duration=0.25, turn=turn, origin="tool"
        )
    )
