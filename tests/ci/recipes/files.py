"""Files of the folder."""

from .kernel import running
from .making import Recipe

RECIPES = [
    Recipe(
        "reading",
        "the tools read and list",
        """
m = Scripted([call("read", file="notes.txt"), call("list"), "It says that oak is 61."])
# %%
%%agent -m m -t read,list --new
What do the notes say?
""",
        {"notes.txt": "Oak is 61.\nPine is 24.\n"},
    ),
    Recipe(
        "loading",
        "code of the kernel that reads a file",
        running(
            """
table = pd.read_csv("wood.csv")
print(len(table))
table["price"].sum()
""",
            "import pandas as pd",
        ),
        {"wood.csv": "kind,price\noak,61\npine,24\n"},
    ),
    Recipe(
        "missing",
        "read of a file that is not there",
        """
m = Scripted([call("read", file="nothing.txt"), "There is no such file."])
# %%
%%agent -m m -t read --new
Read it.
""",
    ),
    Recipe(
        "mixed",
        "a file, a function and code in one turn",
        """
base = 40

@tool
def double(x: int) -> int:
    "Double a number."
    return 2 * x

m = Scripted([calls(("read", {"file": "n.txt"}), ("double", {"x": 2}), ("python", {"code": "base + 2"})), "Three results."])
# %%
%%agent -m m -t read,double,python --approve auto --new
Do all three.
""",
        {"n.txt": "7\n"},
    ),
]
