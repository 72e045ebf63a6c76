"""What tools print stands in their card and nowhere below the cell, in every kernel."""

import pytest

pytestmark = pytest.mark.kernel

SETUP = """
%load_ext agent_nb
import asyncio, json, logging, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from IPython.display import display
import ipywidgets
from agent_nb import Agent, Scripted, tool

handler = logging.StreamHandler()  # holds the kernel's stderr
log = logging.Logger("mine")
log.addHandler(handler)
pool = ThreadPoolExecutor(1)
pool.submit(int).result()

@tool
def plain(n: int) -> int:
    "Print in every way."
    print("plain")
    print("warned", file=sys.stderr)
    log.warning("logged")
    thread = threading.Thread(target=print, args=("thread",))
    thread.start()
    thread.join()
    pool.submit(print, "pool").result()
    return n

@tool
async def waiting() -> str:
    "Print and wait."
    print("coroutine")
    await asyncio.sleep(0)
    await asyncio.to_thread(print, "to_thread")
    await asyncio.get_running_loop().run_in_executor(None, print, "executor")
    return "waited"

@tool(thread="main")
def main() -> str:
    "Print on the main thread."
    print("main")
    return "main"

class TqdmHBox(ipywidgets.HBox):  # as tqdm.notebook has it
    __module__ = "tqdm.notebook"
    def __repr__(self):
        return f"{self.n * 25:3}%|##  | {self.n}/4 [00:0{self.n}<00:01, 3.{self.n}1it/s]"

@tool
def bar() -> str:
    "Move a bar of tqdm.notebook."
    box = TqdmHBox([ipywidgets.HTML(), ipywidgets.FloatProgress(max=4), ipywidgets.HTML()])
    box.n = 0
    display(box)
    for box.n in range(1, 5):
        box.children[2].value = str(box.n)
        time.sleep(0.06)
    return "moved"

def batch(*calls):
    return "<execute>" + json.dumps([{"name": name, "args": args} for name, args in calls]) + "</execute>"

def call(*names):
    return batch(*((name, {"n": 3} if name == "plain" else {}) for name in names))

m = Scripted([call("plain", "waiting", "main"), "ok"])
b = Scripted([call("bar"), "ok"])
p = Scripted([batch(("python", {"code": "box = TqdmHBox([ipywidgets.HTML()]); box.n = 3; display(box); print('said')"})), "ok"])
"""
WORDS = {
    "plain",
    "warned",
    "logged",
    "thread",
    "pool",
    "coroutine",
    "to_thread",
    "executor",
    "main",
}
CELL = "%%agent -m m -t plain,waiting,main --live\ngo"
AWAITED = "_ = await Agent(m, [plain, waiting, main])('go')"


@pytest.fixture
def ready(kernel):
    status, said, _ = kernel.run(SETUP)
    assert status == "ok", said
    return kernel


def value(kernel, expression):
    return kernel.run(f"print({expression})")[1].strip()


@pytest.mark.parametrize("cell", [CELL, AWAITED], ids=["cell", "awaited"])
def test_every_print_is_in_the_card_of_its_call_and_nothing_below_the_cell(ready, cell):
    status, said, shown = ready.run(cell, cell="c1")
    assert (status, said) == ("ok", "")
    assert len(shown) == 1
    text = value(ready, "''.join(e.text for e in _agent.log.of('progress'))")
    assert set(text.split()) == WORDS
    of_the_first = "''.join(e.text for e in _agent.log.of('progress') if e.call_id == _agent.log.of('call')[0].call_id)"
    assert set(value(ready, of_the_first).split()) == {
        "plain",
        "warned",
        "logged",
        "thread",
        "pool",
    }


def test_the_model_reads_what_went_to_stdout(ready):
    ready.run(CELL, cell="c2")
    printed = value(ready, "[e.extra['printed'].split() for e in _agent.log.of('result')]")
    assert (
        printed == "[['plain', 'thread', 'pool'], ['coroutine', 'to_thread', 'executor'], ['main']]"
    )


def test_prints_of_the_users_own_cells_land_where_they_always_did(ready):
    ready.run(CELL, cell="c3")
    thread = "thread = threading.Thread(target=print, args=('mine three',)); thread.start(); thread.join()"
    _, said, _ = ready.run(f"print('mine'); log.warning('mine too'); {thread}")
    assert "mine three" in said
    assert "mine too" in said
    assert said.count("mine") == 3  # stdout and stderr are two streams, whose pieces may come mixed


@pytest.mark.parametrize(
    "cell",
    ["%%agent -m b -t bar --live\ngo", "_ = await Agent(b, [bar])('go')"],
    ids=["cell", "awaited"],
)
def test_a_widget_of_tqdm_moves_the_bar_of_its_card_and_is_not_displayed(ready, cell):
    status, said, shown = ready.run(cell, cell="c4")
    assert (status, said, len(shown)) == ("ok", "", 1)
    assert value(ready, "[e.fraction for e in _agent.log.of('progress')][-1]") == "1.0"
    assert "4/4 · 3.41it/s" in value(ready, "[e.message for e in _agent.log.of('progress')]")


def test_in_a_cell_of_the_user_it_is_displayed_as_ever(ready):
    ready.run("%%agent -m b -t bar --live\ngo", cell="c5")
    _, _, shown = ready.run("box = TqdmHBox([ipywidgets.HTML()]); box.n = 3; display(box)")
    (bundle,) = (content["data"] for content in shown.values())
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert " 75%" in bundle["text/plain"]


def test_code_of_the_python_tool_moves_its_bar_too(ready):
    status, said, shown = ready.run("%%agent -m p -t python --approve auto --live\ngo", cell="c6")
    assert (status, said, len(shown)) == ("ok", "", 1)
    assert (
        value(ready, "[e.fraction for e in _agent.log.of('progress') if e.fraction is not None]")
        == "[0.75]"
    )
    assert value(ready, "_agent.log.of('result')[0].content") == "said"


def test_a_replay_that_runs_tools_again_prints_nothing_below_the_cell(ready):
    ready.run(
        "@tool(effect='kernel')\ndef again() -> int:\n    'Again.'\n    print('again')\n    return 1"
    )
    ready.run("a = Scripted([call('again'), 'ok'])")
    cell = "%%agent -m a -t again --approve auto\ngo"
    ready.run(cell, cell="c7")
    status, said, _ = ready.run(cell, cell="c7")
    assert (status, said) == ("ok", "")
    shown = ready.run(cell, cell="c7")[2].values()  # the page and its button
    assert any("replayed" in content["data"].get("text/plain", "") for content in shown)
