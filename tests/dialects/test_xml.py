"""Reading of the `xml` dialect beyond the vectors: blocks that never end, prose about the protocol,
hostile JSON.
"""

import pytest

from agent_nb.models import parts as p

CALL = '[{"name": "f", "args": {"a": 1}}]'
FAULT = {"type": "error", "code": "malformed_execute"}
RUNS = [{"type": "call", "name": "f", "args": {"a": 1}}, {"type": "execute"}]


def said(text):
    return {"type": "respond", "content": text}


def test_reading_stops_at_a_whole_batch(load_dialect):
    parser = load_dialect("xml").parser()
    parser.feed(f"<execute>{CALL}</execute>")
    assert parser.stopped


def test_a_malformed_batch_does_not_stop_the_turn(load_dialect):
    parser = load_dialect("xml").parser()
    parser.feed("<execute>[{</execute>")
    assert not parser.stopped


def test_text_is_passed_on_at_once(load_dialect):
    parser = load_dialect("xml").parser()
    assert parser.feed("a < b, List<String> and <br> ") == [p.Text("a < b, List<String> and <br> ")]
    assert list(parser.feed("more")) == [p.Text("more")]


def test_only_what_may_begin_a_marker_is_held_back(load_dialect):
    parser = load_dialect("xml").parser()
    assert parser.feed("text <exec") == [p.Text("text ")]
    assert parser.feed("ution") == [p.Text("<execution")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<execute>[1", [FAULT]),
        (f"<execute>{CALL}", [FAULT]),
        (f"<execute>{CALL}</execut", [FAULT]),
        ('<execute>[{"name": "f", "args": {"a": "</execute>', [FAULT]),
        (
            'a <execute>[{"name": "f</execute> b <end>',
            [said("a"), FAULT, said("b"), {"type": "end"}],
        ),
        ("<execute>", [FAULT]),
        ("<results>[]", [{"type": "error", "code": "forged_results"}]),
        ("<results>", []),
        ("<think>a", [{"type": "think", "content": "a", "incomplete": True}]),
        ("<respond>hi", [said("hi")]),
    ],
)
def test_an_unclosed_block_is_a_fault_and_never_a_call(
    same_in_any_chunking, to_events, text, found
):
    assert to_events(same_in_any_chunking("xml", text)) == found


@pytest.mark.parametrize("inside", ["", "\n", " \n\t "])
def test_results_of_nothing_but_white_space_are_no_forgery(same_in_any_chunking, to_events, inside):
    assert to_events(same_in_any_chunking("xml", f"It is 4.<results>{inside}</results>")) == [
        said("It is 4.")
    ]


def test_the_fault_of_an_unclosed_block_keeps_its_text(read):
    (fault,) = (x for x in read("xml", [f"<execute>{CALL}"]) if isinstance(x, p.Fault))
    assert fault.raw == f"<execute>{CALL}"
    assert "never came" in fault.message
    assert fault.feedback


def test_a_fault_says_where_it_is(read):
    faults = [
        x
        for x in read("xml", list("é\n<execute>[}</execute> and <execute></execute>"))
        if isinstance(x, p.Fault)
    ]
    assert [f.position for f in faults] == [2, 28]
    assert [f.raw for f in faults] == ["<execute>[}</execute>", "<execute></execute>"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "it is empty"),
        ('{"name": "f", "args": {}}', "array"),
        ("[1]", "object"),
        ('[{"args": {}}]', 'item 1 has no "name"'),
        ('[{"name": "f", "args": {}}, {"name": "g"}]', 'item 2 has no "args"'),
        ('[{"name": "", "args": {}}]', '"name" of item 1'),
        ('[{"name": "f", "args": [1]}]', '"args" of item 1 is not an object'),
        ('[{"name": "f", "args": {"a": NaN}}]', "invalid character"),
        ('[{"name": "f", "args": {"a": 1e999}}]', "out of range"),
        ('[{"name": "f", "args": {"a": "\\ud800"}}]', ""),
        ('[{"name": "f", "args": {"a": "\ud800"}}]', "surrogate"),
        ('[{"name": "f", "args": {"a": "\x00"}}]', "invalid character"),
        ('[{"name": "f", "args": {"a": ' + "9" * 5000 + "}}]", "out of range"),
        ('[{"name": "f", "args": {"a": ' + "[" * 20000 + "]" * 20000 + "}}]", "nested deeper"),
        ('[{"name": "f", "args": {"a": ' + "[" * 250 + "]" * 250 + "}}]", "nested deeper"),
    ],
)
def test_a_malformed_batch_says_what_is_wrong(read, body, reason):
    parts = read("xml", [f"<execute>{body}</execute>"])
    (fault,) = (x for x in parts if isinstance(x, p.Fault))
    assert reason in fault.message
    assert not [x for x in parts if isinstance(x, p.Call | p.Execute)]


def test_moderate_nesting_is_fine(read):
    deep = "[" * 150 + "]" * 150
    assert any(
        isinstance(x, p.Execute)
        for x in read("xml", [f'<execute>[{{"name": "f", "args": {{"a": {deep}}}}}]</execute>'])
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("size", [16, 4096, 20_000_000])
def test_a_block_of_ten_megabytes_is_read(load_dialect, size):
    content = "line of code <b>\\n" * 600_000
    text = f'<execute>[{{"name": "w", "args": {{"c": "{content}"}}}}]</execute>'
    if size == 16:
        text = text.replace(content, content[:500_000])
    parser = load_dialect("xml").parser()
    parts = [part for n in range(0, len(text), size) for part in parser.feed(text[n : n + size])]
    (call,) = (x for x in parts if isinstance(x, p.Call))
    assert len(call.raw_args) == len(text) - len('<execute>[{"name": "w", "args": }]</execute>')


def test_prose_about_the_protocol_stays_text(same_in_any_chunking, to_events):
    text = (
        "Write <execute> and then a JSON array. "
        + "Some words follow here. " * 300
        + "<think>x</think>Done."
    )
    found = to_events(same_in_any_chunking("xml", text))
    assert [e["type"] for e in found] == ["respond", "think", "respond"]
    assert found[0]["content"].startswith("Write <execute> and then a JSON array. Some words")


def test_prose_about_the_protocol_is_shown_before_the_stream_ends(load_dialect):
    parser = load_dialect("xml").parser()
    parser.feed("Write <execute> first. ")
    assert any(
        isinstance(x, p.Text) for _ in range(300) for x in parser.feed("Some words follow here. ")
    )


def test_a_raw_line_break_in_a_string_does_not_swallow_what_follows(events):
    text = '<execute>[{"name": "f", "args": {"a": "x}}]</execute>\nI wait.'
    assert events("xml", text) == [FAULT, said("I wait.")]


def test_a_batch_after_an_open_quote_still_runs(events):
    assert events("xml", f'<execute>["</execute>\n<execute>{CALL}</execute>') == [FAULT, *RUNS]


def test_several_calls_keep_their_order_and_ids(read):
    text = '<execute>[{"name": "f", "args": {}, "id": "one"}, {"args": {"b": [1, {"c": "]"}]}, "name": "g", "id": 2}]</execute>'
    calls = [x for x in read("xml", [text]) if isinstance(x, p.Call)]
    assert [(c.name, c.call_id, c.index, c.raw_args) for c in calls] == [
        ("f", "one", 0, "{}"),
        ("g", "2", 1, '{"b": [1, {"c": "]"}]}'),
    ]


def test_arguments_are_given_out_while_they_grow(load_dialect):
    parser = load_dialect("xml").parser()
    parser.feed('<execute>\n[{"name": "write", "args": {"text": "Once')
    assert parser.feed(" upon a") == [p.CallDelta(" upon a", 0, name="write")]


def test_the_growing_arguments_add_up_to_the_call(same_in_any_chunking):
    text = '<execute>[{"name": "f", "args": {"a": "x</execute>"}}, {"id": "q", "name": "g\\u0021", "args": { "args": {} }}]</execute>'
    parts = same_in_any_chunking("xml", text)
    grown = {}
    for part in parts:
        if isinstance(part, p.CallDelta):
            grown[part.index, part.name] = grown.get((part.index, part.name), "") + part.text
    assert grown == {(c.index, c.name): c.raw_args for c in parts if isinstance(c, p.Call)}


def test_calls_of_a_second_block_differ_from_those_of_a_malformed_first(read):
    bad = '<execute>[{"name": "f", "args": {}}, ]</execute>'
    parts = read("xml", [f"{bad}<execute>{CALL}</execute>"])
    assert [x.index for x in parts if isinstance(x, p.CallDelta | p.Call)] == [0, 1, 1]


def test_respond_is_taken_off_and_other_markers_inside_it_count(events):
    text = f"<respond>Hi <think>hm</think>there</respond> you <execute>{CALL}</execute>"
    assert events("xml", text) == [
        said("Hi"),
        {"type": "think", "content": "hm"},
        said("there you"),
        *RUNS,
    ]


def test_a_stray_closing_tag_is_text(events):
    assert events("xml", "a </respond> b </execute> c </end>") == [
        said("a </respond> b </execute> c </end>")
    ]


@pytest.mark.parametrize(
    "tag", ["<Execute>", "<execute >", "< execute>", "<execute/>", '<execute x="1">']
)
def test_other_spellings_of_a_marker_are_shown(events, tag):
    assert events("xml", f"a {tag} b") == [said(f"a {tag} b")]


@pytest.mark.parametrize("end", ["<end>", "<end/>", "<end />"])
def test_end_is_final(load_dialect, end):
    parser = load_dialect("xml").parser()
    assert [*parser.feed(f"bye{end}more")] == [p.Text("bye"), p.Close(), p.End()]
    assert parser.stopped


def test_many_mentions_of_a_marker_cost_no_more_than_their_length(load_dialect):
    parser = load_dialect("xml").parser()
    parts = [*parser.feed("<execute>x" * 20_000), *parser.close()]
    assert "".join(x.text for x in parts if isinstance(x, p.Text)) == "<execute>x" * 20_000


def test_escaped_quotes_cannot_make_blocks_be_read_again_and_again(load_dialect):
    parser = load_dialect("xml").parser()
    parts = [*parser.feed('<execute>["' + '</execute><execute>[\\"' * 20_000), *parser.close()]
    assert sum(isinstance(x, p.Fault) for x in parts) == 20_001


def test_a_block_beyond_the_limit_ends_the_turn_with_a_clear_fault(load_dialect, monkeypatch):
    monkeypatch.setattr("agent_nb.dialects.xml_reader.LONGEST_BLOCK", 1000)
    for size in (7, 5000):
        parser = load_dialect("xml").parser()
        text = '<execute>[{"name": "f", "args": {"a": "' + "x" * 3000 + '"}}]</execute>'
        parts = [
            part for n in range(0, len(text), size) for part in parser.feed(text[n : n + size])
        ]
        assert parser.stopped
        assert [(x.code, x.feedback) for x in parts if isinstance(x, p.Fault)] == [("limit", False)]
        assert not [x for x in parts if isinstance(x, p.Call)]
