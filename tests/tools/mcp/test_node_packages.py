"""MCP against programs of others, from the npm registry: the conformance suite in client mode, and
the reference server that has every feature.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from helpers import mcp_conformance
from helpers.mcp_runs import says
from helpers.node import installed, node
from helpers.paths import python_path

from agent_nb import Agent, mcp_server

pytestmark = [pytest.mark.extra, pytest.mark.slow, pytest.mark.timeout(300)]

PASSES = (
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/resource-mismatch",
)
FAILS = tuple(yaml.safe_load(Path(__file__).with_name("conformance.yaml").read_text())["client"])
MOST = 21  # expected failures when the file was made; it may only shrink


@pytest.fixture(scope="session")
def modules(tmp_path_factory):
    """The packages, installed once for all workers."""
    return installed(tmp_path_factory.getbasetemp().parent / "node")


@pytest.fixture(scope="session")
def conformance(modules):
    """Run the conformance suite; return (exit code, what it wrote)."""
    program = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

    def run(*arguments):
        environment = {**os.environ, "PYTHONPATH": python_path(), "NODE_NO_WARNINGS": "1"}
        ended = subprocess.run(
            [node(), program, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.returncode, ended.stdout + ended.stderr

    return run


def test_the_list_of_expected_failures_only_shrinks():
    assert len(FAILS) <= MOST
    assert not set(FAILS) & set(PASSES)


def test_every_scenario_of_the_suite_is_tested(conformance):
    code, said = conformance("list", "--client")
    assert code == 0, said
    assert set(re.findall(r"^ +- (\S+)", said, re.MULTILINE)) == {*PASSES, *FAILS}


@pytest.mark.parametrize("scenario", [*PASSES, *FAILS])
def test_a_scenario_passes_unless_it_is_an_expected_failure(conformance, scenario, tmp_path):
    client = f"{sys.executable} {mcp_conformance.__file__}"
    arguments = ("client", "--command", client, "--scenario", scenario, "-o", str(tmp_path))
    code, said = conformance(*arguments)
    assert "Failed to start" not in said
    if scenario in FAILS:
        assert code != 0, f"{scenario} passes now: take it out of conformance.yaml"
    else:
        assert re.search(r"Passed: [1-9]\d*/", said), said
        assert "0 failed" in said, said


@pytest.fixture
def everything(modules):
    """The reference server, made in code."""
    program = modules / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    return mcp_server("everything", node(), [str(program), "stdio"])


@pytest.fixture
def called(everything):
    """Call one tool of the reference server; return the run and its result."""

    def call(name, **args):
        run = Agent(says([(name, args)]), [everything], approve="auto", host=mcp_conformance.User())
        done = run.run_sync("go", check=False)
        return done, done.log.of("result")[0]

    return call


def test_the_reference_server_lists_its_tools(called):
    run, result = called("echo", message="hi")
    assert {"echo", "get-sum", "get-tiny-image", "trigger-long-running-operation"} <= set(
        run.log[0].tools
    )
    assert (result.status, result.content) == ("ok", "Echo: hi")


def test_its_structured_result_is_a_value(called):
    _, result = called("get-structured-content", location="New York")
    assert result.content.keys() == {"temperature", "conditions", "humidity"}


def test_its_picture_is_a_picture(called):
    _, result = called("get-tiny-image")
    assert [p["media_type"] for p in result.attachments] == ["image/png"]


def test_its_progress_is_a_bar(called):
    run, result = called("trigger-long-running-operation", duration=1, steps=4)
    assert result.status == "ok"
    assert run.log.of("progress")[-1].data == {"done": 4, "total": 4}


def test_its_resources_are_words(called):
    _, result = called("get-resource-links", count=2)
    assert result.content.count("a link to") == 2


def test_its_questions_are_asked_and_its_wish_to_sample_is_not_granted(called):
    run, result = called("trigger-elicitation-request")
    assert result.status == "ok"
    assert not {"trigger-sampling-request"} & set(run.log[0].tools)  # only for clients that sample


def test_it_sees_no_key(called, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    _, result = called("get-env")
    assert "PATH" in result.content
    assert "OPENAI" not in result.content


def test_its_wrong_arguments_are_an_error_for_the_model(called):
    _, result = called("get-sum", a="one", b=2)
    assert result.status == "error"
    assert "a" in result.content
