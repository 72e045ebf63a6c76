"""Kernel code that runs again: results that may differ between machines, and those that may not."""

from .making import Recipe, png


def running(code: str, before: str = "") -> str:
    """Return two cells: `before` with a model that runs `code`, and an agent cell of it."""
    return f"""{before}
runner = Scripted([call("python", code='''{code}'''), "It is done."])
# %%
%%agent -m runner -t python --approve auto --new
Run it.
"""


MEASURED = "print(f'{time.time() - time.time() + extra:.1f} s')"
RECIPES = [
    Recipe(
        "python",
        "the tool python",
        running("print('adding')\nbase + 2", "base = 40")
        + """# %%
assert _agent.answer
""",
    ),
    Recipe(
        "variables",
        "a plain function that uses and changes variables",
        """
found = []
prices = {"oak": 61, "pine": 24}

def price(wood: str) -> int:
    "Look up a price."
    found.append(wood)
    return prices[wood]

m = Scripted([call("price", wood="oak"), call("price", wood="elm"), "Oak is 61; there is no elm."])
# %%
%%agent -m m -t price --new
What do oak and elm cost?
# %%
assert found == ["oak", "elm"], found
""",
    ),
    Recipe(
        "numbers",
        "what reads like a duration, an address, a path or a date, and is data",
        running(
            """
for name, value in data.items():
    print(name, value)
""",
            """
data = {"limit": "12 ms", "each": "3.5 s", "mask": "0x1F", "read": "/data/2024/x.csv", "from": "2024-05-01", "at": "10:15:00.5"}
""",
        ),
    ),
    Recipe(
        "sets",
        "sets of texts, whose order is that of the hash seed",
        running(
            "print(words)\nfrozenset(words)",
            """
words = {"oak", "pine", "birch", "elm", "ash", "beech"}
""",
        ),
    ),
    Recipe(
        "addresses",
        "reprs with an address",
        running(
            "print(thing, object(), lambda: 1)\n[thing]",
            """
class Thing:
    pass

thing = Thing()
""",
        ),
    ),
    Recipe(
        "clock",
        "the date and the time, written in several ways",
        running(
            """
print(datetime.datetime.now() + later)
print(datetime.datetime.now(datetime.timezone.utc).isoformat())
print(time.strftime("%Y-%m-%d %H:%M:%S"))
print(datetime.date.today())
""",
            """
import datetime, time
later = datetime.timedelta(0)
""",
        ),
    ),
    Recipe(
        "timings",
        "%time and %timeit",
        running(
            """
%time total = sum(numbers)
%timeit -n 2 -r 2 sum(range(10))
total
""",
            "numbers = range(1000)",
        ),
    ),
    Recipe(
        "measured",
        "a duration beside a clock",
        running(MEASURED, "import time\nextra = 2.0"),
    ),
    Recipe(
        "exact",
        "the same with --compare exact",
        running(MEASURED, "import time\nextra = 2.0").replace("--new", "--new --compare exact"),
    ),
    Recipe(
        "bars",
        "progress bars of tqdm",
        running(
            """
for _ in tqdm(range(3), desc="at work"):
    time.sleep(0.01)
'over'
""",
            "import time\nfrom tqdm import tqdm",
        ),
        needs=("tqdm",),
    ),
    Recipe(
        "tracebacks",
        "exceptions in the tool python and in a function of the notebook",
        """
base = 3

def check(n: int) -> int:
    "Check a number."
    if n > base:
        raise ValueError(f"{n} is above {base}")
    return n

code = '''
def f(x):
    return 1 / x

f(base - 3)
'''
m = Scripted([calls(("python", {"code": code}), ("check", {"n": 5})), "Both fail."])
# %%
%%agent -m m -t python,check --approve auto --new
Try both.
""",
    ),
    Recipe(
        "folders",
        "the working folder, a temporary folder, and files in them",
        running(
            """
print(os.getcwd())
print(place)
pathlib.Path(place, name).write_text('one')
print(sorted(os.listdir(place)))
""",
            """
import os, pathlib, tempfile
place = tempfile.mkdtemp()
name = "x.txt"
""",
        ),
    ),
    Recipe(
        "threads",
        "reprs of threads",
        running(
            """
print(threading.current_thread())
other.start()
other.join()
other
""",
            """
import threading
other = threading.Thread(target=print, name="other")
""",
        ),
    ),
    Recipe(
        "frames",
        "DataFrames, grouped",
        running(
            """
print(wood.dtypes)
wood.groupby("kind").agg(mean=("price", "mean"), n=("price", "size"))
""",
            """
import pandas as pd
wood = pd.DataFrame({"kind": ["oak", "pine", "oak"], "price": [61, 24, 63.5]})
""",
        ),
    ),
    Recipe(
        "figure",
        "a picture that code displays",
        running(
            "display(Image(data=shade))",
            """
from pathlib import Path
from IPython.display import Image, display
shade = Path("shade.png").read_bytes()
""",
        ),
        {"shade.png": png(side=8)},
    ),
    Recipe(
        "plotted",
        "a figure of matplotlib",
        running(
            "figure",
            """
from matplotlib.figure import Figure
figure = Figure((2, 2))
figure.subplots().plot([1, 3, 2])
""",
        ),
        needs=("matplotlib",),
    ),
    Recipe(
        "environment",
        "a value that is the environment's by intention: this cell may drift",
        running(
            """
os.environ.get("CORPUS_PLACE", "nowhere")
""",
            "import os",
        ),
        varies=(3,),
    ),
    Recipe(
        "randomness",
        "random numbers with a seed",
        running(
            "[random.randint(1, 100) for _ in range(3)]",
            """
import random
random.seed(7)
""",
        ),
    ),
]
