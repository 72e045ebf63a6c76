"""An opening tag with attributes, while it arrives."""

import pytest

from agent_nb.dialects.tags import LONGEST_TAG, TagReader


def read(text, name="t"):
    """Read a tag in one piece and by the character; both must agree."""
    whole = TagReader(name)
    end = whole.read(text, 0)
    by_character = TagReader(name)
    for n in range(len(name) + 2, len(text) + 1):
        found = by_character.read(text[:n], 0)
        if found is not None:
            assert found == end
            assert end < 0 or by_character.attributes == whole.attributes
            return end, whole
    assert end is None
    return end, whole


@pytest.mark.parametrize(
    ("text", "attributes", "closed"),
    [
        ("<t>", {}, False),
        ("<t/>", {}, True),
        ("<t  >", {}, False),
        ("<t />", {}, True),
        ("<t a=\"1\" b='2' c=3>", {"a": "1", "b": "2", "c": "3"}, False),
        ('<t a = "x > y / z" />', {"a": "x > y / z"}, True),
        ('<t a="1" a="2">', {"a": "2"}, False),
        ('<t a="">', {"a": ""}, False),
        ("<t\n  a='\"'\n>", {"a": '"'}, False),
        ("<t a-b.c:d_e=x/>", {"a-b.c:d_e": "x"}, True),
        ('<t a="&lt;&gt;&amp;&quot;&apos;&copy;">', {"a": "<>&\"'&copy;"}, False),
    ],
)
def test_a_tag(text, attributes, closed):
    end, tag = read(text)
    assert (end, tag.attributes, tag.is_empty) == (len(text), attributes, closed)


@pytest.mark.parametrize(
    "text",
    [
        "<t a>",
        "<t a b=c>",
        "<t =c>",
        "<t / >",
        "<t a=<>",
        "<t 1=x>",
        "<t a=b'c>",
        "<t, a=b>",
        '<t a="1"b="2">',
        "<t a==b>",
    ],
)
def test_no_tag(text):
    assert read(text)[0] == -1


@pytest.mark.parametrize(
    "text", ["<t ", "<t a", "<t a=", '<t a="x', "<t a='x>", '<t a="x" ', "<t a=x", "<t /"]
)
def test_a_tag_that_is_not_complete(text):
    assert read(text)[0] is None


def test_a_tag_beyond_the_limit_is_text():
    assert TagReader("t").read('<t a="' + "x" * LONGEST_TAG, 0) == -1
    assert TagReader("t").read('<t a="' + "x" * LONGEST_TAG + '">', 0) == -1


def test_a_tag_may_begin_anywhere_in_the_text():
    assert TagReader("t").read("ab <t x='1'/> cd", 3) == 13
