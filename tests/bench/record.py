"""What a record costs: bytes in the notebook, time to a DataFrame, time of a replay.

    python tests/bench/record.py [size] [pictures] [frame] [replay]

size    bytes of metadata.agent_nb in a saved file per byte of conversation text, for a run of
        20,000 tokens whose chunk timings come back
        exactly, at several paces; beside raw NDJSON of the deltas; and the whole saved notebook per
        byte of text.
pictures a run with ten plots of Matplotlib, each shown twice: bytes of its record and of the saved
        notebook, beside those of the files.
frame   1,000,000 events to a typed frame beside pandas.DataFrame of a dict of Python lists of the
        same content, and beside inspect_ai's
        events_df on the same content (if it is installed; on a tenth of the events, and scaled).
replay  a notebook with 50 tool calls, replayed, beside the execution of the same notebook with
        those tools called directly.

Figures are medians of several rounds.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import nbformat

from agent_nb import events as e
from agent_nb.events.chunks import pack_chunks
from agent_nb.events.event_json import encode_event
from agent_nb.events.log import EventLog
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.record import METADATA_KEY, RECORD_MIME, Provenance, events_of, run_record

TOKENS = 20_000
EVENTS = 1_000_000
CALLS = 50
ROUNDS = 5
TEXT = (
    "The median of the prices is 28.9 and two values stand out so far that they are looked at one by one before the table is drawn "
    "again without them ; für größere Dateien lohnt sich « un second regard » and (naïve) code such as `df.groupby('day').sum()` helps ."
)
WORDS = TEXT.split()
PACES: dict[str, Callable[[random.Random], float]] = {
    "60 tokens/s": lambda r: max(0.0, r.gauss(0.016, 0.006)),
    "20 tokens/s": lambda r: max(0.0, r.gauss(0.050, 0.020)),
    "in bursts": lambda r: r.choice((0.0, 0.0, 0.0, 0.0, 0.001, 0.120)),
    "network jitter": lambda r: r.expovariate(30),
}


def run(pace: Callable[[random.Random], float], seed: int = 1) -> tuple[EventLog, list[e.Delta]]:
    """Return a run of TOKENS tokens in ten turns: thoughts, calls with progress and results, a long
    answer; and its deltas.
    """
    chance, now, deltas = random.Random(seed), [1_763_760_000.0], []
    log = EventLog("bench", clock=lambda: now[0])
    log.subscribe(lambda event: deltas.append(event) if isinstance(event, e.Delta) else None)

    def block(of: str, number: str, turn: int, tokens: int) -> str:
        pieces = []
        for n in range(tokens):
            now[0] += pace(chance)
            pieces.append(
                ("" if not n else "\n\n" if chance.random() < 0.01 else " ") + chance.choice(WORDS)
            )
            log.append(e.Delta(block=number, of=of, text=pieces[-1], turn=turn, origin="model"))
        return "".join(pieces)

    log.append(
        e.RunStart(
            model="openai/gpt-5-mini",
            dialect="native",
            tools=("python",),
            settings={"system": "", "hash": "0" * 16},
        )
    )
    log.append(e.User(content="Look at the prices and tell me what stands out.", origin="user"))
    for turn in range(1, 11):
        data = {"attempt": 1, "messages": turn, "internal": True}
        log.append(e.Node(name="llm", phase="enter", span=f"llm-{turn}", turn=turn, data=data))
        thought = block("think", f"{turn}.1", turn, TOKENS // 25)
        log.append(e.Think(content=thought, block=f"{turn}.1", turn=turn, origin="model"))
        if turn < 10:
            text = block("call", f"{turn}.2", turn, TOKENS // 50)
            args = {"code": text}
            raw = json.dumps(args, ensure_ascii=False)
            call = {"call_id": f"call_{turn}", "name": "python", "turn": turn}
            log.append(
                e.Call(
                    args=args,
                    raw_args=raw,
                    block=f"{turn}.2",
                    batch=f"{turn}",
                    origin="model",
                    **call,
                )
            )
            log.append(
                e.Execute(batch=f"{turn}", calls=(f"call_{turn}",), turn=turn, origin="model")
            )
            log.append(e.Started(origin="tool", **call))
            for n in range(3):
                log.append(
                    e.Progress(call_id=f"call_{turn}", fraction=n / 3, turn=turn, origin="tool")
                )
            log.append(
                e.Result(
                    content=" ".join(chance.choice(WORDS) for _ in range(60)),
                    duration=0.5,
                    origin="tool",
                    **call,
                )
            )
        else:
            answer = block(
                "respond", f"{turn}.3", turn, TOKENS - TOKENS // 25 * 10 - TOKENS // 50 * 9
            )
            log.append(e.Respond(content=answer, block=f"{turn}.3", turn=turn, origin="model"))
        log.append(
            e.Node(
                name="llm",
                phase="exit",
                span=f"llm-{turn}",
                turn=turn,
                result="ok",
                data={"status": 200},
            )
        )
        counts = e.Counts(input=1000 * turn, output=TOKENS // 10, duration=9.5, ttft=0.4)
        log.append(e.Metric(step=counts, total=counts, turn=turn))
    log.append(e.End(finish_reason="stop"))
    return log, deltas


def conversation(log: EventLog) -> int:
    """Return the bytes of conversation text: what was said, asked for and answered (each text
    once).
    """
    kinds = (e.User, e.Think, e.Respond, e.Result)
    texts = [x.content for x in log if isinstance(x, kinds)] + [
        x.raw_args for x in log if isinstance(x, e.Call)
    ]
    return sum(len(str(t).encode()) for t in texts)


def size() -> None:
    """Print bytes per byte."""
    from agent_nb.view.bundle import make_bundle

    print(
        f"A run of {TOKENS:,} tokens: bytes per byte of conversation text (bars: record 1.5, notebook 6)"
    )
    for name, pace in PACES.items():
        log, deltas = run(pace)
        text = conversation(log)
        record = run_record(log, Provenance(cell="c1"))
        nb = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell("%%agent\nLook at the prices.", id="c1")]
        )
        data = {**make_bundle(log), RECORD_MIME: record}
        nb.cells[0].outputs = [
            nbformat.v4.new_output(
                "display_data", data=data, metadata={METADATA_KEY: {"run": log.run}}
            )
        ]
        NotebookRuns(nb).lift()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "n.ipynb"
            nbformat.write(nb, path)
            whole = path.stat().st_size
            saved = json.loads(path.read_text(encoding="utf-8"))
            nbformat.write(
                nbformat.from_dict(
                    {
                        **saved,
                        "metadata": {METADATA_KEY: saved["metadata"][METADATA_KEY]},
                        "cells": [],
                    }
                ),
                path,
            )
            ours = path.stat().st_size
        back = EventLog.of_events(events_of(saved["metadata"][METADATA_KEY]["runs"]["c1"][0]))
        assert list(back) == list(log)
        assert sorted(back.deltas(), key=lambda d: (d.block, d.ts)) == sorted(
            _whole_blocks(log, deltas), key=lambda d: (d.block, d.ts)
        )
        raw = sum(len(encode_event(d)) + 1 for d in deltas)
        chunks = sum(
            len(pack_chunks(x.chunks)) for x in log if isinstance(x, e.Think | e.Respond | e.Call)
        )
        print(
            f"  {name:15} record {ours / text:5.2f}   notebook {whole / text:5.2f}   (chunk timings alone {chunks / text:.2f}, "
            f"raw NDJSON of the deltas {raw / text:.1f}; {len(log)} events, {text:,} bytes of text)"
        )


def pictures() -> None:
    """Print the size of a record with ten plots. Needs Matplotlib."""
    from agent_nb.view.bundle import make_bundle
    from agent_nb.wire.media import clean_attachment

    plots = [clean_attachment({"data": png}) for png in map(_plot, range(10))]
    log = EventLog()
    log.append(e.RunStart(model="m"))
    log.append(e.User(content="Plot the prices."))
    for turn in (1, 2):
        for number, plot in enumerate(plots):
            call = {"call_id": f"c{turn}_{number}", "name": "python", "turn": turn}
            log.append(e.Call(**call, args={"code": f"plot({number})"}))
            log.append(e.Result(**call, content="[figure 1]", attachments=(plot,)))
    log.append(e.End())
    record = run_record(log, Provenance(cell="c1"))
    text = json.dumps(record)
    files = sum(len(plot["data"]) for plot in plots)
    once = sum(text.count(plot["data"]) for plot in plots)
    assert list(events_of(record)) == list(log)
    page = len(make_bundle(log)["text/html"])
    print(
        f"Ten plots, each shown twice: record {len(text) / 1000:,.0f} kB ({once} pictures in it, {files / 1000:,.0f} kB of base64, "
        f"{len(text) - files:,} bytes of all else), page {page / 1000:,.0f} kB"
    )


def _plot(number: int) -> bytes:
    """Return a plot as the inline backend draws it."""
    from io import BytesIO

    from matplotlib.figure import Figure

    figure, source, target = Figure((7, 3)), random.Random(number), BytesIO()
    axes = figure.subplots()
    axes.plot([source.gauss(28.9, 4) for _ in range(365)])
    axes.set_title(f"Prices of shop {number}")
    figure.savefig(target, format="png", bbox_inches="tight")
    return target.getvalue()


def _whole_blocks(log: EventLog, deltas: list[e.Delta]) -> list[e.Delta]:
    """Return the deltas of blocks whose text they add up to (a call's raw text is written otherwise
    in this bench).
    """
    kept = {x.block for x in log if isinstance(x, e.Think | e.Respond | e.Call) and x.chunks}
    return [d for d in deltas if d.block in kept]


def many(count: int) -> list[e.Event]:
    """Return `count` events of runs with thoughts, calls, progress, results, answers
    and metrics.
    """
    out: list[e.Event] = []
    ts, turn = 1_763_760_000.0, 0
    while len(out) < count:
        turn += 1
        call = {"call_id": f"call_{turn}", "name": ("python", "read", "search")[turn % 3]}
        for event, fields in (
            (e.Node, {"name": "llm", "span": f"llm-{turn % 50}", "data": {"internal": True}}),
            (
                e.Think,
                {"content": f"thinking about step {turn}", "block": f"{turn}.1", "origin": "model"},
            ),
            (
                e.Call,
                {
                    **call,
                    "args": {"code": f"step({turn})"},
                    "raw_args": f'{{"code": "step({turn})"}}',
                    "origin": "model",
                },
            ),
            (e.Execute, {"calls": (f"call_{turn}",)}),
            (e.Started, {**call, "origin": "tool"}),
            (e.Progress, {"call_id": f"call_{turn}", "text": f"line {turn}\n", "origin": "tool"}),
            (e.Progress, {"call_id": f"call_{turn}", "fraction": 0.5, "origin": "tool"}),
            (e.Result, {**call, "content": f"result {turn}", "duration": 0.2, "origin": "tool"}),
            (
                e.Respond,
                {"content": f"The answer of step {turn}.", "block": f"{turn}.2", "origin": "model"},
            ),
            (e.Metric, {"step": e.Counts(input=10, output=20, duration=0.4)}),
        ):
            ts = round(ts + 0.01, 3)
            out.append(
                event(seq=len(out) + 1, ts=ts, run=f"run{turn // 1000}", turn=turn % 1000, **fields)
            )
    return out[:count]


def frame() -> None:
    """Print seconds to a frame."""
    import pandas as pd

    from agent_nb.events.frame import to_frame

    events = many(EVENTS)
    took = {}
    for columns in ("events", "all"):
        lists = _lists(events, columns)
        works = partial(to_frame, events, columns), partial(pd.DataFrame, lists)
        ours, peer = _medians(*works, clock=time.process_time)
        took[columns] = ours
        print(
            f"{EVENTS:,} events to a typed frame of the {len(lists)} columns {columns!r}: {ours:.2f} s of CPU time;"
        )
        print(
            f"  pandas.DataFrame of a dict of lists: {peer:.2f} s, ratio {ours / peer:.2f} (bar 2.5)"
        )
    _inspect(events[: EVENTS // 10], took["all"])


def _lists(events: list[e.Event], columns: str) -> dict[str, list[object]]:
    """Return the content of the frame as plain Python lists, one per column."""
    from agent_nb.events.frame import to_frame

    table = to_frame(events, columns)
    lists: dict[str, list[object]] = {}
    for name in table.columns:
        values = table[name].astype(object)
        lists[name] = values.where(values.notna(), None).tolist()
    start: dict[str, float] = {}
    lists["seconds"] = [x.ts - start.setdefault(x.run, x.ts) for x in events]
    if columns == "all":
        lists |= {"ts": [x.ts for x in events], "dt": lists["seconds"]}
        lists |= {
            n: [x.total_seconds() if x is not None else None for x in lists[n]]
            for n in ("duration", "ttft")
        }
    return lists


def _inspect(events: list[e.Event], ours: float) -> None:
    """Let inspect_ai make its frame of a log with the same content."""
    try:
        from inspect_ai.analysis import events_df
        from inspect_ai.event import InfoEvent
        from inspect_ai.log import (
            EvalConfig,
            EvalDataset,
            EvalLog,
            EvalSample,
            EvalSpec,
            write_eval_log,
        )
    except ImportError:
        print("  inspect_ai is not installed: not compared")
        return
    infos = [InfoEvent(source=x.type, data=json.loads(encode_event(x))) for x in events]
    sample = EvalSample(id=1, epoch=1, input="", target="", events=list(infos))
    spec = EvalSpec(
        created="2025-11-21T00:00:00+00:00",
        task="bench",
        dataset=EvalDataset(),
        model="none",
        config=EvalConfig(),
    )
    with tempfile.TemporaryDirectory() as folder:
        write_eval_log(
            EvalLog(eval=spec, samples=[sample], status="success"), f"{folder}/bench.eval"
        )
        start = time.process_time()
        events_df(folder, quiet=True)
        took = (time.process_time() - start) * EVENTS / len(events)
    print(
        f"  inspect_ai events_df (from its log file, scaled): {took:.1f} s, {took / ours:.0f} times ours"
    )


SETUP = """%load_ext agent_nb
from agent_nb import Scripted, tool

@tool(effect="{effect}", thread="main")
def work(n: int) -> int:
    "Ten milliseconds of work."
    found[n] = sum(i * i for i in range(150_000)) + n
    return found[n]

found = {{}}
model = Scripted(['<execute>' + {batch!r} + '</execute>', 'done'])"""


def replay() -> None:
    """Print seconds to execute notebooks. The kernels may write byte code, as an installed package
    has it; one execution warms up.
    """
    from agent_nb.runner.client import execute_notebook
    from agent_nb.runner.execution_options import ExecutionOptions

    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    batch = json.dumps([{"name": "work", "args": {"n": n}} for n in range(CALLS)])
    last = "print(len(found))"
    print(
        f"A notebook with {CALLS} tool calls of 10 ms replayed, beside the same notebook with the tools called directly (bar 1.3)"
    )
    for effect, how in (("kernel", "run again"), ("none", "from the tape")):
        setup = SETUP.format(effect=effect, batch=batch)
        with tempfile.TemporaryDirectory() as folder:
            os.environ["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "agent-nb-bench")
            recorded, plain = Path(folder) / "recorded.ipynb", Path(folder) / "plain.ipynb"
            _save(recorded, [setup, "%%agent -m model -t work --approve auto\ngo", last])
            _save(plain, [setup, "\n".join(f"work({n})" for n in range(CALLS)), last])
            outcome = execute_notebook(recorded, ExecutionOptions(rerun="live"))
            assert not outcome.failure, outcome.failure
            outcome.write(recorded)
            check = execute_notebook(recorded, ExecutionOptions(rerun="replay"))
            assert check.runs[0][1]["replayed"], check
            assert "drift" not in check.runs[0][1], check
            ours, peer = _medians(  # called at once, so the names of this round count
                lambda: execute_notebook(recorded, ExecutionOptions(rerun="replay")),  # noqa: B023
                lambda: execute_notebook(plain),  # noqa: B023
            )
        print(f"  tools {how:14} {ours:.2f} s, directly {peer:.2f} s, ratio {ours / peer:.2f}")


def _medians(
    one: Callable[[], object],
    other: Callable[[], object],
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, float]:
    """Return the medians of two works that take turns, so that both see the same machine."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for work, taken in zip((one, other), times, strict=True):
            start = clock()
            work()
            taken.append(clock() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def _save(path: Path, sources: list[str]) -> None:
    cells = [nbformat.v4.new_code_cell(source, id=f"c{n}") for n, source in enumerate(sources)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)


if __name__ == "__main__":
    parts = {"size": size, "pictures": pictures, "frame": frame, "replay": replay}
    for part in sys.argv[1:] or parts:
        parts[part]()
