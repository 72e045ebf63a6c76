"""Pictures of results on their way through a run: log, record, replay."""

import base64

from helpers.pictures import attached, png
from helpers.scripts import batch
from helpers.waiting import wait

from agent_nb import Agent, Scripted, tool
from agent_nb.agent.replay import replay
from agent_nb.record.record import events_of, run_record
from agent_nb.tools.base import Outcome, Pictured

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
    from agent_nb.events import End, Result

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
