"""The snippets of Markdown pages, and a page of them as a notebook.

- A fence without a language is a `%%agent` cell or a `%agent` line; `python` is a cell.
- `sh` is run by bash in the same place. A line that installs something is not run: its extras are
  looked up in pyproject.toml.
- `text` is what the snippet before it prints: its lines, in order. `…` stands for the rest of a
  line, alone for any lines.
- `<!-- any order -->` above a `text` fence: its lines are printed in any order.
- `<!-- file: NAME -->` above a fence: the fence is a file of this name.
- `<!-- not run: REASON -->` above a fence: the fence cannot run in a test.
- `<!-- fails -->` above a fence: the cell is to end in an error.
- `<!-- before: CODE -->`: a cell that readers do not see, such as the script of a model.
- `<!-- answers: JSON -->`: what a server in the place of the provider answers to each request: a
  text, or a tool call as an object with `name` and `args`. Later it answers "Done.", or any value
  of the schema that it is asked for.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(
    r"^<!-- (?P<hidden>before|answers):(?P<before>.*?)-->$"
    r"|(?:^<!-- (?P<mark>file|not run|fails|any order):? ?(?P<value>[^\n]*?) ?-->\n\n?)?"
    r"^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
INSTALL = re.compile(r"\bpip install\b|-m venv\b")
SHELL = """\
import subprocess as _subprocess
_done = _subprocess.run(["bash", "-euo", "pipefail", "-c", {text!r}], capture_output=True, text=True)
print(_done.stdout + _done.stderr)
assert _done.returncode == 0, _done.returncode"""


class Snippet(NamedTuple):
    """One fence of a page."""

    language: str
    text: str
    mark: str = ""
    value: str = ""

    @property
    def is_directive(self) -> bool:
        return self.language.startswith("{")

    def source(self) -> str:
        """Return the code of its cell; "" if it is none."""
        if self.is_directive or self.mark == "not run" or self.language == "text":
            return ""
        if self.mark == "file":
            return f"import pathlib as _p\n_f = _p.Path({self.value!r})\n_f.parent.mkdir(parents=True, exist_ok=True)\n_f.write_text({self.text!r})\n"
        if self.language == "sh":
            run = [line for line in self.text.splitlines() if not INSTALL.search(line)]
            return SHELL.format(text="\n".join(run)) if "".join(run).strip() else ""
        return self.text if self.language in ("", "python", "before") else ""


def read(page: Path) -> list[Snippet]:
    """Return the snippets of a page in reading order."""
    found = []
    for match in FENCE.finditer(page.read_text(encoding="utf-8")):
        if match["before"] is not None:
            hidden = match["hidden"]
            text = match["before"].strip()
            found.append(Snippet(hidden, text, *((hidden, text) if hidden == "answers" else ())))
        else:
            found.append(
                Snippet(match["language"], match["text"], match["mark"] or "", match["value"] or "")
            )
    return found


def shown(outputs: list[dict[str, object]]) -> str:
    """Return what a cell showed as text."""
    parts = []
    for output in outputs:
        if "text" in output:
            parts.append(str(output["text"]))
        elif "data" in output:
            parts.append(str(output["data"].get("text/plain", "")))  # type: ignore[attr-defined]
        elif "evalue" in output:
            parts.append(f"{output['ename']}: {output['evalue']}")
    return COLOUR.sub("", "\n".join(parts))


def missing_lines(expected: str, printed: str, *, ordered: bool = True) -> list[str]:
    """Return the lines of `expected` that were not printed, in this order if `ordered`."""
    have = [" ".join(line.split()) for line in printed.splitlines()]
    at, missing = 0, []
    for line in expected.splitlines():
        want = " ".join(line.split())
        if want in ("", "…"):
            continue
        pattern = re.compile(".*".join(map(re.escape, want.split("…"))))
        hit = next((n for n in range(at, len(have)) if pattern.fullmatch(have[n])), None)
        if hit is None:
            missing.append(line)
        elif ordered:
            at = hit + 1
        else:
            have.pop(hit)
    return missing
