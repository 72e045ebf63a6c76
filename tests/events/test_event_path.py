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
    ],
)
def test_a_glob_matches_whole_levels(glob, path, fits):
    assert match_path(glob, event_at(path)) is fits


def test_a_path_is_the_run_and_then_the_foreign_path_or_the_span():
    assert match_path("r/p", ev.Think(run="r", path="p", span="s"))
    assert match_path("r/s", ev.Think(run="r", span="s"))
    assert match_path("r", ev.Think(run="r"))
