"""Pictures of results on their way through a run: log, record, replay."""

import asyncio
import base64
import json
import sys

import msgspec
import pytest
from helpers.pictures import attached, png
from helpers.replays import replay
from helpers.scripts import batch
from helpers.waiting import wait

from agent_nb import Agent, Scripted, ToolContext, tool
from agent_nb.agent import result_pictures
from agent_nb.agent.recorded_turns import RecordedTurns
from agent_nb.agent.replay_approver import ReplayApprover
from agent_nb.events import Call, Delta, Result, Started
from agent_nb.record.pictures import PictureComparison
from agent_nb.record.record import events_of, run_record
from agent_nb.tools import figures as tool_figures
from agent_nb.tools.base import Outcome, Pictured, Update
from agent_nb.tools.runner import ToolRunner
from agent_nb.tools.toolset import Toolset
from agent_nb.view.cards.base import Context, draw
from agent_nb.view.state.fold import RunView

SECRET = b"sk-proj-" + b"a1B2" * 8
PLAIN = png(40, 30, noise=1)


@tool
def look():
    """Look."""
    return Pictured("seen", [PLAIN])


def run(*tools):
    """Run one call of each tool and return the log."""
    turns = [batch(*((t.__name__, {}) for t in tools)), "ok"]
    return wait(lambda: Agent(Scripted(turns), list(tools), secrets={}, approve="auto")("go")).log


def test_the_pictures_of_a_tool_stand_in_its_result():
    (result,) = run(look).of("result")
    assert (result.content, result.attachments) == ("seen", (attached(PLAIN),))


def test_the_name_of_a_picture_of_a_prompt_has_no_secret():
    key = SECRET.decode()
    named = {**attached(PLAIN), "name": f"plot({key!r})"}
    log = wait(lambda: Agent(Scripted(["ok"]), secrets={"K": key})("go", attachments=[named])).log
    (user,) = log.of("user")
    assert user.attachments[0]["name"].startswith("plot(")
    assert key not in log.to_ndjson()


def test_a_picture_has_no_text_in_the_log_whatever_made_the_outcome():
    @tool
    def leak():
        """Leak."""
        hidden = {**attached(png(text=SECRET)), "note": SECRET.decode()}
        return Outcome("ok", "seen", attachments=(hidden, {"media_type": "image/png"}))

    (result,) = run(leak).of("result")
    assert result.attachments == (attached(png()),)


def test_a_record_holds_each_picture_once_and_a_replay_has_them_all():
    log = run(look, look)
    record = run_record(log, home="/root")
    text = str(record)
    assert text.count(base64.b64encode(PLAIN).decode()) == 1
    assert events_of(record, home="/home/else") == list(log)
    played = wait(lambda: replay(record)).log
    assert [r.attachments for r in played.of("result")] == [(attached(PLAIN),)] * 2


def test_a_picture_that_contains_the_path_of_a_home_folder_stays_a_picture():
    data = base64.b64encode(PLAIN).decode()
    at = next(n for n in range(200, len(data)) if not data[n - 1].isalnum())
    path = f"{data[:at]}/root+{data[at + 6 :]}"
    assert len(path) % 4 == 0
    from agent_nb.events import End

    log = [Result(seq=1, attachments=({"media_type": "image/png", "data": path},)), End(seq=2)]
    assert events_of(run_record(log, home="/root"), home="/home/else")[0].attachments[0] == {
        "media_type": "image/png",
        "data": path,
    }


def test_pictures_are_cut_before_words_when_a_record_grows_too_large():
    record = run_record(run(look), cap=6_000)
    (result,) = (e for e in events_of(record) if e.type == "result")
    assert (result.content, result.attachments) == ("seen", ())
    assert [c["field"] for c in record["cut"]] == ["attachments"]


# Replays: calls that run again draw again.


def played(first, again, compare="full", change=list):
    """Record a call that draws `first`, replay it where it draws `again`; return the drift.

    `change` returns the events to record.
    """
    shows = [first]

    @tool(effect="reads", compare=compare)
    def draw():
        """Draw."""
        return shows[-1]

    record = run_record(change(run(draw)))
    shows.append(again)
    runner = ToolRunner(Toolset.resolve([draw]))
    runner.approver = ReplayApprover(RecordedTurns.of(record, trust=True))
    return wait(lambda: replay(record, runner, trust=True)).drift


def stripes(number):
    """Return a plot with so many dark columns of a hundred."""
    from PIL import Image

    picture = Image.new("RGB", (100, 50), "white")
    picture.paste("black", (0, 0, number, 50))
    return picture


@pytest.mark.parametrize(
    ("first", "again", "how"),
    [
        (png(9, 9, noise=1), png(9, 9, noise=1, level=1), None),
        (png(9, 9), png(9, 9, (216, 46, 46)), None),
        (png(9, 9), png(9, 9, (217, 30, 30)), "figure 1: 100.0% of its pixels differ"),
        (stripes(10), stripes(11), None),
        (stripes(10), stripes(12), "figure 1: 2.0% of its pixels differ"),
        (["x", png(3, 3)], ["x", png(3, 3), png(3, 4)], ""),
        (
            Pictured("seen", [png()]),
            Pictured("seen", [png(), png(3, 4)]),
            "it shows 2 pictures, and the recording 1",
        ),
        (Pictured("seen", [png()]), "seen", "it shows 0 pictures, and the recording 1"),
        ("seen", Pictured("seen", [png()]), "it shows 1 picture, and the recording 0"),
        (
            Pictured("seen", [png(), png(5, 5)]),
            Pictured("seen", [png(), png(5, 6)]),
            "figure 2: it is 5 × 6 pixels, not 5 × 5",
        ),
    ],
    ids=(
        "another zlib level",
        "sixteen darker",
        "seventeen darker",
        "one pixel in a hundred",
        "two pixels in a hundred",
        "one more in a list",
        "one more",
        "none",
        "a new one",
        "another size",
    ),
)
def test_a_replay_compares_the_pictures_of_what_runs_again(first, again, how):
    drift = played(first, again)
    assert (drift if drift is None else drift.how) == how


def test_a_tool_of_which_only_the_text_counts_may_draw_anew():
    assert played(png(9, 9), png(9, 9, (0, 0, 0)), compare="text") is None


class Chart:
    """A value that is taken for a chart of Plotly; only its JSON says its height."""

    def __init__(self, height):
        self.height = height

    def __repr__(self):
        return "a chart"

    def to_json(self):
        return json.dumps({"data": [{"y": [self.height]}]})


Chart.__module__ = "plotly.fakes"
WITHOUT, WITH = b"", png(30, 20)  # what draws a chart without and with the package for it


@pytest.mark.parametrize("drawn", [(WITHOUT, WITH), (WITH, WITHOUT), (WITH, png(40, 20))])
@pytest.mark.parametrize(
    ("height", "how"),
    [(1, None), (2, "display 1: its plotly chart differs: {} was, {} is")],
    ids=["same", "changed"],
)
def test_a_chart_is_compared_by_its_json_whatever_draws_its_picture(
    monkeypatch, drawn, height, how
):
    pictures = iter(drawn)
    monkeypatch.setattr(tool_figures, "draw_chart", lambda kind, chart: next(pictures))
    drift = played(Chart(1), Chart(height))
    assert list(pictures) == []
    sides = ('…{"data":[{"y":[1]}]}…', '…{"data":[{"y":[2]}]}…')
    assert (drift and drift.how) == (how and how.format(*sides))


def test_a_record_older_than_charts_replays_where_their_pictures_are_drawn(monkeypatch):
    def older(log):
        return [
            msgspec.structs.replace(e, attachments=()) if isinstance(e, Result) else e for e in log
        ]

    pictures = iter((WITHOUT, WITH))
    monkeypatch.setattr(tool_figures, "draw_chart", lambda kind, chart: next(pictures))
    assert played(Chart(1), Chart(1), change=older) is None
    assert list(pictures) == []


def test_without_pillow_pictures_of_other_bytes_are_no_drift(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert played(png(9, 9, noise=1), png(9, 9, noise=1, level=1)) is None
    assert PictureComparison.of_all(["AAAA"], ["AAAB"]).unseen


OLD = [
    ("<Figure size 400x200 with 1 Axes>\n", "[figure 1: 361×197 pixels]\n"),
    ("<Figure size 400x200 with 1 Axes>\nFigure(400x200)", "[figure 1: 361×197 pixels]"),
    ("one\n<PIL.Image.Image image mode=RGB size=2x2>\ntwo", "one\n[figure 1: 2×2 pixels]\ntwo"),
    ("<IPython.core.display.Image object>\n", "[figure 1: 2×2 pixels]\n"),
    ("(image/png, 1,234 bytes)", "[figure 1: 2×2 pixels]"),
    ("Image 20 × 10 RGB", "[figure 1: 20×10 pixels]"),
]


@pytest.mark.parametrize(("before", "now"), OLD)
def test_an_older_record_named_its_pictures_otherwise(before, now):
    result = Result(content=before)
    outcome = Outcome("ok", now, attachments=(attached(png()),))
    assert result_pictures.is_before_pictures(result, outcome)
    unnamed = result_pictures.unify_names
    assert unnamed(before).strip() == unnamed(now).strip()
    assert not result_pictures.compare_result_pictures(result, outcome).difference


def test_a_record_without_a_picture_in_its_text_is_not_older():
    outcome = Outcome("ok", "3", attachments=(attached(png()),))
    for text in ("3", "a" * 300_000, "<Figure size " * 20_000):  # without endless search
        assert not result_pictures.is_before_pictures(Result(content=text), outcome)
    assert result_pictures.compare_result_pictures(Result(content="3"), outcome).difference


def test_the_picture_of_an_older_result_must_be_among_those_of_today():
    result = Result(content="Figure(4x3)", display={"image/png": attached(png())["data"]})
    same = Outcome("ok", "", attachments=(attached(png(9, 9)), attached(png())))
    other = Outcome("ok", "", attachments=(attached(png(9, 9)),))
    assert not result_pictures.compare_result_pictures(result, same).difference
    assert result_pictures.compare_result_pictures(result, other).difference


@pytest.mark.parametrize(
    ("content", "display", "left"),
    [
        ("<Figure size 4x2 with 1 Axes>\nshown\n", None, 1),
        ("<Figure size 4x2 with 1 Axes>\n<Figure size 4x2 with 1 Axes>", "image", 1),
        ("Image 4 × 3 RGB", "image", 0),
    ],
)
def test_what_an_older_record_left_to_the_cell_is_shown_there_again(content, display, left):
    @tool(effect="reads")
    def draw():
        """Draw."""
        lines = [line for line in dict.fromkeys(content.splitlines()) if line == "shown"]
        text = "\n".join(["[figure 1: 4×3 pixels]", *lines])
        return Outcome("ok", text, attachments=(attached(png()),))

    older = [
        msgspec.structs.replace(
            e,
            content=content,
            display={"image/png": attached(png())["data"]} if display else None,
            attachments=(),
        )
        if isinstance(e, Result)
        else e
        for e in run(draw)
    ]
    record = run_record(older)
    runner = ToolRunner(Toolset.resolve([draw]))
    runner.approver = ReplayApprover(RecordedTurns.of(record, trust=True))
    done = wait(lambda: replay(record, runner, trust=True))
    assert done.drift is None
    assert done.unrecorded == (attached(png()),) * left


# While a call runs, its pictures are announced.


def test_a_picture_is_announced_while_its_call_runs_and_not_stored():
    @tool
    def paint(context: ToolContext):
        """Draw."""
        context.progress(Update(picture=(0, attached(png(text=SECRET)))))
        context.progress(Update(picture=(0, None)))
        context.progress(Update(picture=(0, attached(PLAIN))))
        return Pictured("done", [PLAIN])

    heard = []
    stream = Agent(Scripted([batch(("paint", {})), "ok"]), [paint], secrets={}, approve="auto")(
        "go"
    )
    stream.log.subscribe(heard.append)
    log = wait(lambda: stream).log
    news = [e for e in heard if e.type == "delta" and e.of == "picture"]
    assert [json.loads(e.text) for e in news] == [
        [0, attached(png())],
        [0, None],
        [0, attached(PLAIN)],
    ]
    assert len({e.name for e in news}) == 3
    assert all(heard.index(e) < heard.index(log.of("result")[0]) for e in news)
    assert not log.of("progress")
    assert not log.of("delta")


def test_the_card_of_a_running_call_shows_its_pictures():
    def news(index, picture):
        return Delta(block="c1", of="picture", text=json.dumps([index, picture]))

    one, two = attached(png(3, 3)), attached(png(4, 4))
    view = RunView().extend([Call(call_id="c1", name="draw"), Started(call_id="c1")])
    for shown, expected in (
        (news(0, one), (one,)),
        (news(1, two), (one, two)),
        (news(0, two), (two, two)),
        (Delta(block="c1", of="picture", text="{"), (two, two)),
        (Delta(block="c2", of="picture", text="[0, null]"), (two, two)),
        (news(0, None), ()),
    ):
        view.apply(shown)
        assert view.cards[0].attachments == expected
    view.apply(news(0, one))
    assert str(draw(view.cards[0], Context())).count("Image(") == 1
    view.apply(Result(call_id="c1", attachments=(two,)))
    view.apply(news(0, one))
    assert view.cards[0].attachments == (two,)


def test_a_stopped_call_keeps_the_pictures_it_had_shown():
    @tool(timeout=0.05)
    async def paint(context: ToolContext):
        """Draw."""
        context.progress(Update(picture=(0, attached(PLAIN))))
        await asyncio.sleep(60)

    (result,) = run(paint).of("result")
    assert (result.status, result.attachments) == ("timeout", (attached(PLAIN),))
