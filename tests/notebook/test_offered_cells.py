"""Cells that an agent offers: inserted after a press and a good end, on request, never else."""

import threading

import pytest
from helpers.scripts import batch, calling
from helpers.shells import press as interrupt

from agent_nb import Agent, Scripted, tool
from agent_nb import events as e
from agent_nb.errors import AgentStopped
from agent_nb.notebook.cell import controls, offered_cells
from agent_nb.notebook.cell.failure import AgentCellError
from agent_nb.notebook.cell.offered_cells import list_offers


@pytest.fixture
def inserted(loaded, monkeypatch):
    """What the shell was asked to insert: (code, replace)."""
    found = []
    monkeypatch.setattr(
        loaded,
        "set_next_input",
        lambda code, replace=False: found.append((code, replace)),
        raising=False,
    )
    return found


@pytest.fixture
def press(monkeypatch):
    """Press *Insert below* of these codes, in this order, when the run begins; "" withdraws."""

    def press(*codes):
        plain = controls.Controls.set_driver

        def set_driver(self, driver):
            plain(self, driver)
            for code in codes:
                thread = threading.Thread(target=self.actions["insert"], args=(code,))
                thread.start()
                thread.join()

        monkeypatch.setattr(controls.Controls, "set_driver", set_driver)

    return press


OFFER = [calling("add_cell", code="df.head()", why="To see it."), "Done."]


def test_nothing_is_inserted_without_a_press(agent, inserted):
    assert agent("-m model -t add_cell", model=Scripted(OFFER)).status == "ok"
    assert inserted == []


def test_the_cell_of_the_last_pressed_button_is_inserted_below_the_run(agent, inserted, press):
    press("df.head()", "df.tail()")
    agent("-m model -t add_cell", model=Scripted(OFFER))
    assert inserted == [("df.tail()", False)]


def test_a_withdrawn_choice_inserts_nothing(agent, inserted, press):
    press("df.head()", "")
    agent("-m model -t add_cell", model=Scripted(OFFER))
    assert inserted == []


def test_nothing_is_inserted_after_a_failed_run(agent, inserted, press):
    press("df.head()")
    with pytest.raises(AgentCellError):
        agent("-m model -t add_cell", model=Scripted(OFFER[:1]))
    assert inserted == []


def test_nothing_is_inserted_after_a_run_that_hit_a_limit(agent, inserted, press):
    press("df.head()")
    run = agent("-m model -t add_cell --max-turns 1", model=Scripted(OFFER))
    assert (run.status, inserted) == ("limit", [])


def test_nothing_is_inserted_after_a_run_that_the_user_stopped(agent, inserted, press):
    @tool(thread="main")
    def stop():
        """Stop the run."""
        interrupt()

    press("df.head()")
    with pytest.raises(AgentStopped):
        agent("-m model -t stop", stop=stop, model=Scripted([calling("stop"), "Done."]))
    assert inserted == []


def test_a_cell_with_hidden_characters_is_not_inserted(agent, inserted, press):
    press("x = '\u202e'")
    agent("-m model", model=Scripted(["Done."]))
    assert inserted == []


@pytest.fixture
def offered(agent, inserted):
    """A run that offered two cells; a third was refused."""
    turn = batch(
        ("add_cell", {"code": "df.head()", "why": "To see it."}),
        ("add_cell", {"code": " "}),
        ("add_cell", {"code": "a = 1\r\nb = 2"}),
    )
    return agent("-m model -t add_cell", model=Scripted([turn, "Done."]))


def test_the_offers_of_a_run_are_its_good_calls_in_order(offered):
    assert [o.code for o in list_offers(offered.log)] == ["df.head()", "a = 1\nb = 2"]


def test_the_offers_of_sub_agents_come_last():
    helper = Agent(Scripted([calling("add_cell", code="inner"), "."]), ["add_cell"], name="helper")
    turn = batch(("helper", {"prompt": "Offer."}), ("add_cell", {"code": "outer"}))
    boss = Agent(Scripted([turn, "Done."]), [helper, "add_cell"])
    assert [o.code for o in list_offers(boss.run_sync("Go.").log)] == ["outer", "inner"]


def test_cell_lists_the_offers(offered, loaded, capsys):
    capsys.readouterr()
    loaded.run_line_magic("agent", "cell")
    out = capsys.readouterr().out
    assert "To see it." in out
    assert "df.head()" in out
    assert "2 lines" in out


def test_cell_with_a_number_inserts_that_one(offered, loaded, inserted):
    loaded.run_line_magic("agent", "cell 2")
    assert inserted == [("a = 1\nb = 2", False)]


def test_cell_of_an_older_run_is_inserted_by_its_id(offered, agent, loaded, inserted):
    agent("-m model", "more", model=Scripted(["No cell."]))
    with pytest.raises(AgentCellError, match="offered no cell '1'"):
        loaded.run_line_magic("agent", "cell 1")
    loaded.run_line_magic("agent", f"cell 1 {offered.id}")
    assert inserted == [("df.head()", False)]


def test_an_error_about_a_number_says_what_the_run_offered(offered, agent, loaded):
    with pytest.raises(AgentCellError, match=r"It offered 2 cells: %agent cell lists them\."):
        loaded.run_line_magic("agent", "cell 3")
    agent("-m model", "more", model=Scripted(["No cell."]))
    with pytest.raises(AgentCellError, match=r"It offered none\.$"):
        loaded.run_line_magic("agent", "cell 1")
    with pytest.raises(AgentCellError, match=r"It offered 2 cells, numbered from 1\.$"):
        loaded.run_line_magic("agent", f"cell 3 {offered.id}")


def test_a_cell_that_is_this_command_alone_is_replaced(offered, loaded, inserted, monkeypatch):
    from agent_nb.notebook.commands import cells

    monkeypatch.setattr(cells, "current_request", lambda shell: ("", "%agent cell 1\n"))
    loaded.run_line_magic("agent", "cell 1")
    monkeypatch.setattr(cells, "current_request", lambda shell: ("", "x = 1\n%agent cell 1"))
    loaded.run_line_magic("agent", "cell 1")
    assert [replace for _, replace in inserted] == [True, False]


@pytest.mark.parametrize("number", ["0", "3", "-1", "one", "9" * 5000, "²"])
def test_a_number_without_an_offer_is_one_line(offered, loaded, inserted, number):
    with pytest.raises(AgentCellError, match="2 cells: %agent cell lists them"):
        loaded.run_line_magic("agent", f"cell {number}")
    assert inserted == []


def test_a_forged_offer_with_hidden_characters_is_refused(loaded, inserted):
    place = offered_cells.insert_offer
    with pytest.raises(Exception, match=r"not inserted.*U\+202E"):
        place(loaded, offered_cells.Offer("x = '\u202e'"), replace=False)
    assert inserted == []


@pytest.mark.parametrize("args", [{}, {"code": 7}, {"code": None, "why": []}])
def test_forged_calls_offer_nothing_that_is_inserted(args):
    log = [e.Call(call_id="k", name="add_cell", args=args), e.Result(call_id="k", name="add_cell")]
    assert [o.code for o in list_offers(log)] == [""]
