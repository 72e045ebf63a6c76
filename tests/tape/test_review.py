"""What a signer reads of the answers that a tape serves."""

import json

import pytest
from helpers.notebooks import code_cell
from tape.answers import chat_chunks, chat_whole, google_chunks, google_whole, message_events, sse
from tape.test_packed import exchange, packed

from agent_nb.notebook.files.review import call_lines, review_records
from agent_nb.record.record import Provenance, run_record
from agent_nb.record.signing import UserKey

CALL = ("ls", ['{"path": ', '"/"}'])
HARMLESS = "    answer: Hello."


def make_record(made, events=None):
    """Return a record of an exchange; `events`: the exchange whose events it shows instead."""
    log, form = packed(made)
    # texts of the exchange refer to its events, which a forger keeps; calls do not
    shown = packed(events)[0] if events is not None else log
    return UserKey(b"key").sign(run_record(shown, Provenance(cell="cell1"), exchange=form))


def review(record):
    ours = {"version": 1, "runs": {"cell1": [record]}}
    cells = [code_cell(1, "ask()")]
    nb = {"cells": cells, "metadata": {"agent_nb": ours}, "nbformat": 4, "nbformat_minor": 5}
    (item,) = review_records(nb)
    assert not item.problem
    return str(item).splitlines()[1:]


ANSWERS = {
    "streamed": sse(*chat_chunks(["Hel", "lo."], call=CALL)),
    "messages": sse(*message_events(["Hel", "lo."], call=CALL), names=True),
    "google": json.dumps(google_whole(["Hel", "lo."], call=CALL)).encode(),
}
PATHS = {"messages": "/messages", "google": "/models/g:generateContent"}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_signer_reads_the_answer_and_its_calls(name):
    kind = "application/json" if name == "google" else "text/event-stream"
    made = exchange(PATHS.get(name, "/chat/completions"), {}, ANSWERS[name], kind)
    record = make_record(made)
    # a tool of the notebook's own may have the name of a harmless one of ours
    assert review(record) == [HARMLESS, "    ls", "      path = /"]
    assert call_lines(record, {"ls"}) == ['serves: ls: {"path": "/"}']


def test_a_call_that_the_events_of_a_record_leave_out_is_read():
    made = exchange("/chat/completions", {}, sse(*chat_chunks(["Hello."], call=CALL)))
    record = make_record(made, exchange("/chat/completions", {}, sse(*chat_chunks(["Hello."]))))
    assert not [e for e in record["events"] if e["type"] == "call"]
    assert review(record) == [HARMLESS, "    ls", "      path = /"]


def test_each_choice_of_an_answer_is_read():
    call = {"id": "c", "type": "function", "function": {"name": "rm", "arguments": "{}"}}
    whole = chat_whole("Hello.")
    hidden = {"index": 0, "message": {"role": "assistant", "content": "Bye.", "tool_calls": [call]}}
    whole["choices"].append(hidden)
    made = exchange("/chat/completions", {}, json.dumps(whole).encode(), "application/json")
    assert review(make_record(made)) == [HARMLESS, "    answer: Bye.", "    rm"]


def test_the_choices_of_a_stream_are_read_apart():
    chunks = [*chat_chunks(["Hello."])]
    other = json.loads(json.dumps([*chat_chunks(["Bye."], call=CALL)]))
    for chunk in other:
        for choice in chunk["choices"]:
            choice["index"] = 1
    made = exchange("/chat/completions", {}, sse(*chunks, *other))
    assert review(make_record(made)) == [
        HARMLESS, "    answer: Bye.", "    ls", "      path = /",
    ]  # fmt: skip


def test_the_choices_of_a_list_of_chunks_are_read_apart():
    first = google_chunks(["Hel", "lo."])
    other = google_whole(["Bye."], call=CALL)
    other["candidates"][0]["index"] = 1
    data = json.dumps([*first, other]).encode()
    made = exchange("/models/g:streamGenerateContent", {}, data, "application/json")
    assert review(make_record(made)) == [
        HARMLESS, "    answer: Bye.", "    ls", "      path = /",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "data"), [("/rerank", b'{"best": "rm -rf"}'), ("/files", b"plain")]
)
def test_an_answer_that_no_decoder_reads_is_shown_as_it_is(path, data):
    kind = "application/json" if data.startswith(b"{") else "text/plain"
    text = data.decode().replace(": ", ":")
    assert review(make_record(exchange(path, {}, data, kind))) == [f"    answer: {text}"]


def test_a_text_cannot_imitate_a_call():
    made = exchange("/chat/completions", {}, sse(*chat_chunks(["Hello.\n    rm\n      x = 1"])))
    lines = review(make_record(made))
    assert lines[0] == HARMLESS
    assert all(line.startswith("      ") for line in lines[1:])


def test_an_answer_with_too_many_choices_is_not_signed():
    whole = chat_whole("Hello.")
    whole["choices"] *= 200
    record = make_record(
        exchange("/chat/completions", {}, json.dumps(whole).encode(), "application/json")
    )
    assert call_lines(record, ()) == ["The answer has 200 choices; at most 100 can be read."]
