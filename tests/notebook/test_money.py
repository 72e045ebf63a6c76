"""Money and several models in a cell."""

import pytest

from agent_nb import Scripted
from agent_nb.models import tariff
from agent_nb.models.http import retry
from agent_nb.notebook.cell.failure import AgentCellError
from agent_nb.notebook.completion.fitting import LIST_OPTIONS

AWAY = {"error": {"status": 503, "message": "Lab failed (503)"}}


@pytest.fixture(autouse=True)
def no_waits(monkeypatch):
    monkeypatch.setattr(retry, "BUSY_DELAYS", (0.0,) * 4)


def shown(capsys):
    return capsys.readouterr().out


def test_a_cell_shows_what_it_cost(agent, capsys):
    script = Scripted([{"text": "Hi.", "usage": {"input": 1200, "output": 30, "cost": 0.0123}}])
    agent("-m model --view text", model=script)
    assert "$0.012" in shown(capsys)


@pytest.mark.parametrize("usage", [{"input": 9}, {"input": 9, "cost": 0.0}])
def test_no_price_and_no_cost_are_no_figure(agent, capsys, usage):
    agent("-m model --view text", model=Scripted([{"text": "Hi.", "usage": usage}]))
    said = shown(capsys)
    assert "9 in" in said
    assert "$" not in said


def test_a_budget_without_a_price_fails_the_cell_before_anything_is_sent(
    agent, loaded, monkeypatch
):
    monkeypatch.setattr(tariff, "import_library", lambda name: None)
    monkeypatch.setattr(tariff, "find_library", lambda name: None)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    with pytest.raises(AgentCellError, match="the price of openai/gpt-5 is unknown"):
        agent("-m openai/gpt-5 --budget 0.10")
    said = loaded.user_ns["_agent"].error
    assert "pip install 'jupyter-agent-nb[prices]'" in said
    assert '"openai/gpt-5" = {' in said
    assert not loaded.user_ns["_agent"].log.of("node")


def test_a_budget_ends_the_run_at_its_limit(agent):
    turn = {"text": '<execute>[{"name": "list", "args": {}}]</execute>', "usage": {"cost": 0.06}}
    done = agent("-m model -t list --budget 0.10", model=Scripted([turn] * 5))
    assert (done.status, done.reason) == ("limit", "stopped at the limit of $0.10")
    assert done.usage.cost == 0.12


def test_a_cell_goes_on_with_the_next_model_and_says_so(agent, capsys):
    done = agent(
        "-m away,model --view text",
        away=Scripted([AWAY] * 3, "lab/a"),
        model=Scripted(["Hello."], "lab/b"),
    )
    said = shown(capsys)
    assert (done.status, done.answer) == ("ok", "Hello.")
    assert "lab/b  instead of lab/a" in said
    assert "going on with lab/b  Lab failed (503)" in said


def test_the_default_model_may_be_several(loaded, caplog):
    magics = loaded.magics_manager.registry["AgentMagics"]
    loaded.run_line_magic("config", "AgentMagics.model = 'fake,anthropic/x'")
    assert magics.model == "fake,anthropic/x"
    loaded.run_line_magic("config", "AgentMagics.model = 'fake,opnai/x'")
    assert "no provider 'opnai'" in caplog.text
    assert magics.model == "fake,anthropic/x"


def test_completion_goes_on_after_the_comma():
    assert "model" in LIST_OPTIONS
