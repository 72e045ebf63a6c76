"""Under test a notebook without a tape asks no host of models."""

import pytest
from helpers.notebooks import write
from tape import test_bypassed

from agent_nb.runner.client import execute_notebook
from agent_nb.runner.execution_options import ExecutionOptions
from agent_nb.runner.notebook_check import check_notebook
from agent_nb.tape.contact import Contact
from agent_nb.tape.host_watch import HostWatch
from agent_nb.tape.providers import is_model_host

ASK = """\
import socket
def ask(host):
    try:
        socket.create_connection((host, 443), 1)
    except OSError as fault:
        print(fault)
ask("data.invalid")
ask("api.openai.com")
"""
AWAITED = test_bypassed.AWAITED.replace("awaited.invalid", "models.invalid")
SCRIPTED = """\
from agent_nb import Agent, Scripted
print((await Agent(Scripted(["Hello."]))("hi")).answer)
"""
CONFIG = '[endpoints.lab]\nbase_url = "https://models.invalid/v1"\n'


@pytest.mark.few(1)
@pytest.mark.kernel
@pytest.mark.parametrize("first", ["1", "%load_ext agent_nb"])
def test_a_cell_that_asks_a_host_of_models_fails_with_its_line(first, tmp_path, monkeypatch):
    config = tmp_path / "config.toml"
    config.write_text(CONFIG)
    monkeypatch.setenv("AGENT_NB_CONFIG", str(config))
    path = write(tmp_path / "n.ipynb", first, ASK, AWAITED, SCRIPTED)
    texts = [problem.text for problem in check_notebook(path).problems]
    assert len(texts) == 2, texts
    assert texts[0].startswith("cell 2 ")
    assert "line 4 asks api.openai.com: a test asks no model." in texts[0]
    assert "%agent tape" in texts[0]
    assert 'allowed_hosts = ["api.openai.com"]' in texts[0]
    assert texts[1].startswith("cell 3 ")
    assert "line 3 asks models.invalid" in texts[1]


@pytest.mark.kernel
def test_a_cell_below_capture_that_asks_a_host_of_models_fails(tmp_path):
    path = write(tmp_path / "n.ipynb", "1", f"%%capture\n{ASK}")
    texts = [problem.text for problem in check_notebook(path).problems]
    assert len(texts) == 1, texts
    assert texts[0].startswith("cell 2 ")
    assert "line 4 asks api.openai.com: a test asks no model." in texts[0]


@pytest.mark.kernel
def test_the_project_alone_allows_a_host_of_models(tmp_path):
    path = write(tmp_path / "n.ipynb", "import os\n" + test_bypassed.OPENED.split("\n")[0], ASK)
    assert len(check_notebook(path).problems) == 1
    allowed = '[tool.agent_nb]\nallowed_hosts = ["api.openai.com"]\n'
    (tmp_path / "pyproject.toml").write_text(allowed)
    assert not check_notebook(path).problems


QUIET = """\
import os
print(*(os.environ.get(name) for name in ("LITELLM_LOCAL_MODEL_COST_MAP", "OPENAI_AGENTS_DISABLE_TRACING", "LANGSMITH_TRACING_V2")))
"""


@pytest.mark.few("first1")
@pytest.mark.kernel
@pytest.mark.parametrize("first", [QUIET, "%load_ext agent_nb\n%agent tape\n" + QUIET])
def test_in_a_test_libraries_ask_nothing_by_themselves(first, tmp_path, monkeypatch):
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "False")  # a value of the user stays
    path = write(tmp_path / "n.ipynb", first)
    strict, free = (
        execute_notebook(path, ExecutionOptions(strict=strict)).notebook["cells"][0]["outputs"]
        for strict in (True, False)
    )
    assert strict[-1]["text"].splitlines()[-1] == "False true false"
    assert free[-1]["text"].splitlines()[-1] == "False None None"


@pytest.mark.kernel
def test_a_run_that_is_no_test_refuses_no_host(tmp_path):
    path = write(tmp_path / "n.ipynb", "import socket\nprint(socket.getaddrinfo.__module__)")
    outcome = execute_notebook(path, ExecutionOptions())
    assert outcome.notebook["cells"][0]["outputs"][0]["text"] == "socket\n"


@pytest.mark.parametrize(
    ("host", "serves"),
    [
        ("api.openai.com", True),
        ("api.anthropic.com", True),
        ("generativelanguage.googleapis.com", True),
        ("openrouter.ai", True),
        ("lab.openai.azure.com", True),
        ("bedrock-runtime.us-east-1.amazonaws.com", True),
        ("us-central1-aiplatform.googleapis.com", True),
        ("s3.us-east-1.amazonaws.com", False),
        ("storage.googleapis.com", False),
        ("huggingface.co", False),
        ("api.openai.com.example.org", False),
    ],
)
def test_the_hosts_of_models_are_known(host, serves):
    assert is_model_host(host) is serves


@pytest.mark.parametrize(
    "target",
    [
        "api.openai.com:443",
        "http://api.openai.com/v1",
        "http://me:word@api.openai.com/v1",
        "http://api.openai.com?a=1",
        "http://api.openai.com:port/",
    ],
)
def test_a_target_is_refused_by_the_host_that_the_tunnel_asks(target):
    watch = HostWatch(list, models_only=True)
    assert " api.openai.com:" in watch.refuse_target(target)
    assert [contact.host for contact in watch.take_contacts()] == ["api.openai.com"]
    assert watch.refuse_target("http://[2001:db8::1]/") == ""
    assert "the notebook asks" in HostWatch(list).refuse_target("http://[")


def test_the_refusal_of_a_notebook_without_a_tape_says_how_to_record():
    text = Contact("api.openai.com", 443, 3, taped=False).refusal
    assert "jupyter agent-nb run --live --inplace" in text
