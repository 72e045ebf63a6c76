"""What holds for every text, however strange: chunking does not show, nothing is lost, nothing runs
that was not closed, nothing raises.
"""

import json
import re
from itertools import pairwise

import pytest
from helpers.dialect_reading import chunkings
from helpers.examples import count_examples
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent_nb.models import parts as p

CALL = '{"name": "f", "args": {"x": "a </execute> §end <think>"}}'
PIECES = [
    "<think>",
    "</think>",
    "<execute>",
    "</execute>",
    "<results>",
    "</results>",
    "<end>",
    "<end/>",
    "<end />",
    "<respond>",
    "</respond>",
    "<thinking>",
    "</thinking>",
    '<thinking thought="a > b" confidence="0.5"/>',
    "<thinking a='",
    "' b=c",
    "/>",
    "<",
    "<thi",
    "</",
    ">",
    "§think:",
    "§THINK: ",
    "§call:",
    "§Call: ",
    "§respond:",
    "§execute",
    "§EXECUTE\n",
    "§end",
    "§ending",
    "§",
    "[SYSTEM: ",
    "[SYSTEM:",
    "]",
    "[",
    CALL,
    f"[{CALL}]",
    f"<execute>[{CALL}]</execute>",
    f"§call: {CALL}\n",
    "[{",
    '{"name":',
    '"',
    "\\",
    '\\"',
    "\n",
    " ",
    "\t",
    "```",
    "\n```\n",
    "\n~~~~",
    "\ufeff",
    "{",
    "}",
    "plain words",
    "é答🙂",
    "\x00",
    "\ud83d",
    "List<String> a < b",
    "x" * 50,
    "y" * 5000,
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
CUTS = st.lists(st.integers(0, 400), max_size=10)
EASY = settings(
    max_examples=count_examples(120),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

XML = r"</?(?:think|respond)>|<end ?/?>|<results>\s*(?:</results>|\Z)"
TAGS = r"</?think(?:ing)?>|<think(?:ing)?(?:\s+\w+=(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>=`/]+(?=[\s/>])))*\s*/?>"
SECTION = r"(?i:§(?:think|respond|call):\s*|§(?:execute|end)(?!\w))"
MARKUP = {
    "xml": (XML,),
    "section": (SECTION,),
    "thinking": (TAGS,),
    "native": (),
    "thinking+xml": (XML, TAGS),
    "thinking+section": (SECTION, TAGS),
    "leading+native": (TAGS,),
    "leading+xml": (XML, TAGS),
    "leading+section": (SECTION, TAGS),
}


def pieces(text, cuts):
    edges = [0, *sorted(min(c, len(text)) for c in cuts), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


@pytest.mark.parametrize("name", MARKUP)
@given(text=TEXTS, cuts=CUTS)
@EASY
def test_the_parts_do_not_depend_on_the_chunking(read, name, text, cuts):
    whole = read(name, [text])
    assert read(name, pieces(text, cuts)) == whole
    if len(text) < 1000:
        assert read(name, list(text)) == whole


def seen_in(part, name):
    """Return a pattern for what of the text a part stands for."""
    if isinstance(part, p.Fault):
        return re.escape(part.raw)
    if isinstance(part, p.Thought) and part.attributes is not None:
        return f"(?:{re.escape(part.text)})?"  # its words may stand inside the tag, which is markup
    if isinstance(part, p.Text | p.Thought):
        return re.escape(part.text)
    if isinstance(part, p.Call):
        return (
            rf"\{{[\s\S]*?{re.escape(part.raw_args)}[\s\S]*?\}}\s*"
            if "section" in name
            else r"<execute>[\s\S]*"
        )
    return r"[\s\S]*" if isinstance(part, p.Execute | p.End) else ""


@pytest.mark.parametrize("name", MARKUP)
@given(text=TEXTS)
@EASY
def test_every_character_is_in_a_part_or_is_markup(load_dialect, name, text):
    parser = load_dialect(name).parser()
    parts = [*parser.feed(text), *parser.close()]
    markup = f"(?:{'|'.join(MARKUP[name]) or '(?!)'})*"
    shape = "".join(markup + seen_in(part, name) for part in parts) + markup
    assert re.fullmatch(shape, text), shape


@pytest.mark.parametrize("name", MARKUP)
@given(text=TEXTS)
@EASY
def test_no_call_comes_without_a_whole_block(read, name, text):
    parts = read(name, [text])
    calls = [c for c in parts if isinstance(c, p.Call)]
    for call in calls:
        assert json.loads(call.raw_args) == call.args
        assert call.raw_args in text
    if calls and "section" not in name:
        assert "</execute>" in text
        assert isinstance(parts[-1], p.Execute)


@pytest.mark.parametrize("name", MARKUP)
@given(text=TEXTS, cuts=CUTS)
@EASY
def test_blocks_open_and_close_one_after_the_other(read, name, text, cuts):
    kind = None
    for part in read(name, pieces(text, cuts)):
        if isinstance(part, p.Text | p.Thought):
            assert kind in (None, type(part)), "a block began while another was open"
            kind = type(part)
        elif isinstance(part, p.Close):
            assert kind is not None, "nothing was open"
            kind = None
        else:
            assert kind is None, f"{part} came inside a block"
    assert kind is None


@pytest.mark.parametrize("name", MARKUP)
@given(text=TEXTS)
@EASY
def test_after_the_stop_nothing_is_read(load_dialect, name, text):
    parser = load_dialect(name).parser()
    parser.feed(text)
    if parser.stopped:
        assert list(parser.feed("more <think>x</think>")) == []
        assert list(parser.close()) == []


@pytest.mark.parametrize("name", MARKUP)
@given(first=TEXTS, second=TEXTS)
@EASY
def test_two_streams_of_one_dialect_do_not_know_of_each_other(
    load_dialect, read, name, first, second
):
    dialect = load_dialect(name)
    one, two = dialect.parser(), dialect.parser()
    parts = []
    for a, b in zip(first.ljust(len(second)), second.ljust(len(first)), strict=True):
        parts += one.feed(a)
        two.feed(b)
    alone = dialect.parser()
    expected = [q for c in first.ljust(len(second)) for q in alone.feed(c)]
    assert parts == expected


@pytest.mark.parametrize("name", MARKUP)
@given(text=TEXTS, cuts=CUTS)
@example(text=f"<execute>[{CALL}]", cuts=[])
@example(text='<execute>[{"name": "f", "args": {"x": "a </execute> b', cuts=[30])
@example(text=f"<thinking a='<execute>[{CALL}]\\", cuts=[])
@EASY
def test_a_cut_does_not_depend_on_chunking_and_makes_no_half_call(load_dialect, name, text, cuts):
    def read(chunks):
        parser, parts = load_dialect(name).parser(), []
        for chunk in chunks:
            parts += parser.feed(chunk)
        if parser.stopped:
            return "", []
        closing = parser.close(cut=True)
        said = "".join(q.text for q in [*parts, *closing] if isinstance(q, p.Text))
        return said, [q for q in closing if isinstance(q, p.Call | p.Fault)]

    said, found = read([text])
    assert read(pieces(text, cuts)) == (said, found)
    assert all(
        q.incomplete or json.loads(q.raw_args) == q.args for q in found if isinstance(q, p.Call)
    )


VALUES = st.recursive(
    st.sampled_from(PIECES) | st.none() | st.integers(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)
BATCHES = st.lists(
    st.dictionaries(st.sampled_from(PIECES), VALUES, max_size=3), min_size=1, max_size=3
)


@pytest.mark.parametrize("name", ["xml", "thinking+xml"])
@given(batch=BATCHES, cut=st.floats(0, 1), cuts=CUTS)
@EASY
def test_a_valid_batch_that_is_cut_anywhere_is_no_fault_of_the_model(
    load_dialect, name, batch, cut, cuts
):
    text = "<execute>" + json.dumps([{"name": "f", "args": args} for args in batch])
    parser, parts = load_dialect(name).parser(), []
    for piece in pieces(text[: round(cut * len(text))], cuts):
        parts += parser.feed(piece)
    parts += parser.close(cut=True)
    assert not [q for q in parts if isinstance(q, p.Fault) and q.feedback]
    assert all(q.incomplete for q in parts if isinstance(q, p.Call))


CUT_CALLS = {
    "xml": 'I look.\n<execute>[{"name": "ls", "args": {}}, {"name": "read", "args": {"file": "a',
    "section": '§RESPOND: I look.\n§CALL: {"name": "read", "args": {"file": "a',
}


@pytest.mark.parametrize("name", CUT_CALLS)
def test_calls_that_a_cut_left_open_are_incomplete(load_dialect, name):
    parser = load_dialect(name).parser()
    parts = [*parser.feed(CUT_CALLS[name]), *parser.close(cut=True)]
    calls = [q for q in parts if isinstance(q, p.Call)]
    assert [(q.name, q.raw_args, q.incomplete) for q in calls][-1] == ("read", '{"file": "a', True)
    assert not [q for q in parts if isinstance(q, p.Fault | p.Execute)]
    assert "".join(q.text for q in parts if isinstance(q, p.Text)) == "I look.\n"


NO_CALLS = [
    ("xml", "<exec"),
    ("xml", '<execute>[{"na'),
    ("section", "§CAL"),
    ("section", '§CALL: {"n'),
]


@pytest.mark.parametrize(("name", "text"), NO_CALLS)
def test_what_is_no_call_yet_at_a_cut_is_no_text_either(load_dialect, name, text):
    parser = load_dialect(name).parser()
    parts = [*parser.feed(f"I look.{text}"), *parser.close(cut=True)]
    assert "".join(q.text for q in parts if isinstance(q, p.Text)) == "I look."
    assert [q.code for q in parts if isinstance(q, p.Fault)] == (
        ["incomplete"] if "{" in text else []
    )
    assert not any(q.feedback for q in parts if isinstance(q, p.Fault))


@pytest.mark.parametrize("name", MARKUP)
@pytest.mark.parametrize("text", ["if x <", "<", "see §", "a\n§"])
def test_a_lone_first_character_of_a_marker_survives_a_cut(load_dialect, name, text):
    for chunks in ([text], list(text)):
        parser = load_dialect(name).parser()
        parts = [q for chunk in chunks for q in parser.feed(chunk)] + [*parser.close(cut=True)]
        assert "".join(q.text for q in parts if isinstance(q, p.Text)) == text


def cut_texts(dialect, chunks):
    """Return the text and the thoughts that a cut stream leaves."""
    parser = dialect.parser()
    parts = [q for chunk in chunks for q in parser.feed(chunk)] + [*parser.close(cut=True)]
    kinds = (p.Text, p.Thought)
    return tuple("".join(q.text for q in parts if isinstance(q, kind)) for kind in kinds)


HALF_MARKERS = [
    ("thinking", '<think a="1', ("", "")),
    ("thinking", 'hi <think a="1', ("hi ", "")),
    ("thinking", "hi <thinking a=", ("hi ", "")),
    ("thinking", "hi <think a b", ("hi <think a b", "")),
    ("thinking+xml", 'hi <thinking a="<execute>', ("hi ", "")),
    ("thinking+section", "hi <think\t", ("hi ", "")),
    ("leading+native", "<thi", ("", "")),
    ("leading+native", "\n<think", ("\n", "")),
    ("leading+section", "<thi", ("", "")),
    ("leading+section", "<thin k", ("<thin k", "")),
    ("leading+xml", "<thinki", ("", "")),
    ("leading+native", "<think>a</think><thinki", ("", "a")),
    ("xml", "<results></resul", ("<results>", "")),
    ("xml", "<execute>abc</execut", ("<execute>abc", "")),
    ("xml", "<execute>abc<", ("<execute>abc<", "")),
]


@pytest.mark.parametrize(("name", "text", "left"), HALF_MARKERS)
def test_half_a_marker_is_dropped_at_a_cut(load_dialect, name, text, left):
    for chunks in chunkings(text):
        assert cut_texts(load_dialect(name), chunks) == left, chunks


@pytest.mark.parametrize("name", [n for n in MARKUP if n not in ("native", "section")])
@given(text=TEXTS.filter(lambda text: "</think>" not in text), size=st.integers(1, 7), cuts=CUTS)
@EASY
def test_half_the_closing_tag_of_a_thought_is_dropped_at_a_cut(
    load_dialect, name, text, size, cuts
):
    whole = f"<think>{text}{'</think>'[:size]}"
    left = f"{text}<" if size == 1 else text
    assert cut_texts(load_dialect(name), pieces(whole, cuts)) == ("", left)
