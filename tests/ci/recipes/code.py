"""Runs that Python code begins, and cells without an agent."""

from .making import Recipe

DOUBLE = """
@tool
def double(x: int) -> int:
    "Double a number."
    return 2 * x

m = Scripted([call("double", x=4), "Eight."])
"""

RECIPES = [
    Recipe(
        "awaited",
        "await agent(…), two in a cell",
        f"""{DOUBLE}
# %%
run = await Agent(m, [double])("Double 4.")
run.answer
# %%
first = await Agent(Scripted(["One."]))("Say one.")
second = await Agent(Scripted(["Two."]))("Say two.")
assert first.answer == "One."
""",
        runs=3,
    ),
    Recipe(
        "loop",
        "five runs of one cell, the same and different",
        f"""{DOUBLE}
# %%
agent = Agent(m, [double])
said = [(await agent(f"Go {{n % 3}}.")).answer for n in range(5)]
said
""",
        runs=5,
    ),
    Recipe(
        "gathered",
        "runs at the same time",
        """
import asyncio
models = [Scripted(["A."]), Scripted(["B."]), Scripted(["C."])]
# %%
runs = await asyncio.gather(*(Agent(model)("Say it.", view=None) for model in models))
[run.answer for run in runs]
""",
        runs=3,
    ),
    Recipe(
        "synced",
        "run_sync in a worker thread",
        f"""{DOUBLE}
import asyncio
# %%
run = await asyncio.to_thread(Agent(m, [double]).run_sync, "Double 4.")
run.answer
""",
    ),
    Recipe(
        "thread",
        "run_sync in a thread of one's own",
        f"""{DOUBLE}
import threading
said = []
# %%
worker = threading.Thread(target=lambda: said.append(Agent(m, [double]).run_sync("Double 4.").answer))
worker.start()
worker.join()
assert said == ["Eight."]
""",
    ),
    Recipe(
        "iterated",
        "async for over the events",
        f"""{DOUBLE}
# %%
kinds = [event.type async for event in Agent(m, [double])("Double 4.")]
assert kinds[-1] == "end", kinds
""",
    ),
    Recipe(
        "unseen",
        "await with view=None",
        f"""{DOUBLE}
# %%
run = await Agent(m, [double])("Double 4.", view=None)
assert run.answer == "Eight."
""",
    ),
    Recipe(
        "module",
        "functions of a module of the folder that call agents",
        """
from asking import ask
# %%
[await ask(word) for word in ("one", "two")]
""",
        {
            "asking.py": """
from agent_nb import Agent, Scripted

async def ask(word):
    run = await Agent(Scripted([f"Here is {word}."]))(f"Say {word}.")
    return run.answer
"""
        },
        runs=2,
    ),
    Recipe(
        "watched",
        "watch: events of another system",
        """
async def theirs():
    yield {"type": "thought", "content": "The kettle first."}
    yield {"type": "stream", "content": "Tea is ready."}
    yield {"type": "final"}
# %%
tea = await watch(theirs(), prompt="Tea, please.")
assert tea.answer.startswith("Tea")
""",
    ),
    Recipe(
        "widgets",
        "ipywidgets.Output, which keeps what is printed and shown",
        """
import ipywidgets
from IPython.display import display
out = ipywidgets.Output()
display(out)
with out:
    print("inside")
# %%
with out:
    display({"a": 1})
out.clear_output()
field = ipywidgets.IntSlider(3)
field
# %%
m = Scripted(["Nothing more."])
# %%
%%agent -m m --new
Is there more?
""",
    ),
    Recipe(
        "plain",
        "cells without an agent whose outputs differ each time",
        """
%time sum(range(1000))
%timeit -n 2 -r 2 sum(range(10))
import datetime, threading
print(datetime.datetime.now(), object(), threading.current_thread())
# %%
%%capture said
print("kept")
# %%
assert said.stdout == "kept\\n", said.stdout
# %%
from pathlib import Path
Path("left.txt").write_text("x")
print(Path.cwd())
m = Scripted(["All is well."])
# %%
%%agent -m m --new
How is it?
""",
    ),
]
