"""`jupyter agent-nb test --trust-record examples/` with no network and no key, and again, and
again: nothing may ever differ.

`AGENT_NB_REPEATS` says how often (once if it is not set; 20 times is the full proof).
"""

import json
import os

import pytest

from agent_nb.record.normalize import normalize_value
from agent_nb.rows.recorded_runs import runs

# the fast runs replay an example once: `tests/runner/test_examples.py`
pytestmark = [
    pytest.mark.kernel, pytest.mark.early, pytest.mark.long, pytest.mark.timeout(3600),
]  # fmt: skip

REPEATS = int(os.environ.get("AGENT_NB_REPEATS", "1"))
A_FEW = ["scripted.ipynb"]  # of the examples


@pytest.fixture(params=[A_FEW, []], ids=["few", "all"])
def chosen(request, names):
    """The names of some examples, or of all."""
    return request.param or names


@pytest.fixture
def seen(read):
    """What is in a notebook after its execution: events, outputs in normal form, and the record as
    it stands in the file.
    """

    def seen(path):
        nb = read(path)
        outputs = [(c["id"], normalize_value(o)) for c in nb["cells"] for o in c.get("outputs", [])]
        return (
            [list(run.log) for run in runs(path)],
            outputs,
            json.dumps(nb["metadata"]["agent_nb"]),
        )

    return seen


def test_the_examples_replay_every_time(examples, chosen, names, tool):
    before = {name: (examples / name).read_bytes() for name in names}
    paths = ["."] if chosen == names else chosen
    for _ in range(REPEATS):
        done = tool(
            "agent_nb",
            "test",
            "--trust-record",
            *paths,
            cwd=examples,
            AGENT_NB_RERUN="",
            AGENT_NB_TRUST_RECORD="",
        )
        assert all(f"{name}: ok" in done.stdout for name in chosen), done.stdout
    assert {name: (examples / name).read_bytes() for name in names} == before


def test_executing_again_gives_the_same_events_outputs_and_record(
    examples, chosen, tool, seen, original
):
    recorded = {
        name: json.dumps(
            json.loads(original(name).read_text(encoding="utf-8"))["metadata"]["agent_nb"]
        )
        for name in chosen
    }
    first = {}
    for _ in range(max(REPEATS, 2)):
        tool(
            "agent_nb",
            "run",
            "--inplace",
            "--rerun",
            "replay",
            "--trust-record",
            *chosen,
            cwd=examples,
            AGENT_NB_TRUST_RECORD="",
        )
        for name in chosen:
            events, outputs, record = seen(examples / name)
            assert record == recorded[name]
            assert first.setdefault(name, (events, outputs)) == (events, outputs)
