"""What an answer costs in a saved notebook: bytes of its page a character of the answer.

    python tests/bench/page.py [CHARACTERS]

The answers are dense in markup: bold, code, links, a list, a block of code and a table every few
lines; and the same with more of them in each line. `texts` are the HTML, the markdown and the plain
text by themselves, `in the file` is what they add to the notebook as nbformat writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import nbformat
from common import PART

from agent_nb import events as e
from agent_nb.events.log import EventLog
from agent_nb.view.bundle import make_bundle

DENSER = """### Part {i}: **bold {i}** and `code_{i}`

Use **`x{i}`** with a [link](https://example.com/{i}), *soft* and `y`; see **b** or ~~no~~.

- **a**: `f({i})` or [g](https://example.com/g)
- *b*: `h`
1. **one** `o`
2. [two](https://example.com/2)

| **k** | `v` | [l](https://example.com/l) |
|---|:-:|--:|
| a | `1` | **2** |
| b | `3` | *4* |

"""


def repeat(part: str, size: int) -> str:
    """Return numbered copies of a part, at least `size` characters of them."""
    copies = range(1, 2 + size // len(part.replace("{i}", "1")))
    return "".join(part.replace("{i}", str(i)) for i in copies)


def stored(data: Mapping[str, str]) -> int:
    """Return the bytes that an output adds to a notebook file."""
    return _file_size([nbformat.v4.new_output("display_data", data=dict(data))]) - _file_size([])


def _file_size(outputs: list[nbformat.NotebookNode]) -> int:
    cell = nbformat.v4.new_code_cell("", id="c1", outputs=outputs)
    return len(nbformat.writes(nbformat.v4.new_notebook(cells=[cell])).encode())


def main() -> None:
    """Print a line for each answer."""
    size = int(sys.argv[1]) if sys.argv[1:] else 100_000
    for name, part in (("dense", PART), ("denser", DENSER)):
        answer = repeat(part, size)
        log = EventLog()
        log.append(e.RunStart(model="bench"))
        log.append(e.Respond(block="r", content=answer))
        log.append(e.End())
        forms = make_bundle(log)
        texts = {kind: len(text.encode()) / len(answer) for kind, text in forms.items()}
        kinds = "  ".join(f"{kind.partition('/')[2]} {share:.2f}" for kind, share in texts.items())
        print(
            f"{name:8} texts {sum(texts.values()):5.2f} ({kinds})   "
            f"in the file {stored(forms) / len(answer):5.2f}"
        )


if __name__ == "__main__":
    main()
