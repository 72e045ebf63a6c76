"""The globs that select events of a log, and of a subscription to a server, by their path."""

import pytest

from agent_nb import events as ev
from agent_nb.events.event_path import match_path


def event_at(path):
    run, _, inner = path.partition("/")
    return ev.Think(run=run, path=inner)


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("r/**", "r", True),
        ("r/**", "r/agent:x/tool:y", True),
        ("r/**", "rx", False),
        ("r/agent:x/**", "r/agent:x/a", True),
        ("r/agent:x/**", "r/agent:y", False),
        ("r/*", "r/a", True),
        ("r/*", "r/a/b", False),
        ("**", "anything/at/all", True),
        ("**/tool:y", "r/agent:x/tool:y", True),
        ("**/tool:y", "tool:y", True),
        ("**/x", "r/max", False),  # the end of a level is no level
        ("**/**/x", "r/x", True),
        ("r/**/x", "r/x", True),
        ("r/**/x", "r/a/b/x", True),
        ("r/**/x", "rx", False),
        ("r.1", "rx1", False),
        ("r/a*", "r/abc", True),
        ("/r/", "r", True),
        # with several stars, a later match is found
        ("r/*b*b", "r/abcbdb", True),
        ("r/*b*bc", "r/abcbdb", False),
        ("**/a/**/a/*", "r/a/a/a/b", True),
        ("**/a/**/a/c", "r/a/a/a/b", False),
        ("**/a/b/**", "r/a/a/b", True),
    ],
)
def test_a_glob_matches_whole_levels(glob, path, fits):
    assert match_path(glob, event_at(path)) is fits


def test_a_path_is_the_run_and_then_the_foreign_path_or_the_span():
    assert match_path("r/p", ev.Think(run="r", path="p", span="s"))
    assert match_path("r/s", ev.Think(run="r", span="s"))
    assert match_path("r", ev.Think(run="r"))


@pytest.mark.parametrize("glob", ["*" * 60 + "x", "*a" * 40 + "x", "**/a/" * 20 + "x"])
def test_a_glob_of_many_stars_is_quick_to_fail(glob):
    assert not match_path(glob, event_at("a" * 80 + "/a" * 60))
