"""`%agent COMMAND …`: a table of small functions.

Rules
- A command says what it has to say as plain text, or returns what the notebook shows (a DataFrame, a Run).
- A wrong command or argument is one line that names the right ones; nothing is changed then.
- No key is ever shown.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import AgentError, UsageError
from .asking import printable
from .failure import AgentCellError
from .options import words

if TYPE_CHECKING:
    from ..run import Run
    from .magic import AgentMagics

Command = Callable[["AgentMagics", list[str]], Any]


def command(magics: AgentMagics, line: str) -> Any:
    """Run one `%agent` command. Raises AgentCellError with one line when it is wrong."""
    try:
        name, *arguments = words(line) or ["help"]
        found = COMMANDS.get(name)
        if found is None:
            near = difflib.get_close_matches(name, COMMANDS, 1)
            hint = f" Did you mean %agent {near[0]}?" if near else ""
            raise UsageError(f"There is no command %agent {name}.{hint} %agent help lists them.")
        return found(magics, arguments)
    except AgentError as fault:
        raise AgentCellError(str(fault)) from None


def say(text: str) -> None:
    """Write a text to the cell's output, harmless whatever it quotes."""
    sys.stdout.write(printable(text) + "\n")


def table(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as lines with aligned columns."""
    cells = [[str(value) for value in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(max(map(len, cells), default=0))] if cells else []
    return "\n".join("  ".join(f"{value:<{width}}" for value, width in zip(row, widths, strict=False)).rstrip() for row in cells)


def help_(magics: AgentMagics, _: list[str]) -> None:
    """list these commands"""
    rows = [(f"%agent {name}", (function.__doc__ or "").strip()) for name, function in COMMANDS.items()]
    say(f"{table(rows)}\n%%agent? lists the options of a cell, %config AgentMagics their defaults.")


def models(magics: AgentMagics, arguments: list[str]) -> None:
    """[PROVIDER]: the model a cell would use now, and the providers; with a provider, the models it offers"""
    from ..models import choose

    if arguments:
        say("\n".join(f"{arguments[0]}/{name}" for name in _elsewhere(lambda: choose.list_models(arguments[0]))) or "(none)")
        return
    try:
        name, where = choose.choose("", magics.model)
        say(f"{name} ({where})")
    except UsageError as fault:
        say(str(fault))
    say(f"Providers: {', '.join(choose.providers())}")


def tools(magics: AgentMagics, _: list[str]) -> None:
    """the tools that -t knows by name"""
    from .. import plugins

    rows = []
    for room in plugins.names("tools"):
        try:
            found = plugins.load("tools", room)
        except AgentError as fault:
            rows.append((room, "", str(fault)))
            continue
        listed = found if isinstance(found, list | tuple) else (found,)
        rows += [(t.name, t.effect, t.spec.description.partition("\n")[0]) for t in listed]
    say(f"{table(rows)}\nAlso any function of this notebook: -t my_function")


def config(magics: AgentMagics, _: list[str]) -> None:
    """the defaults of the options, and the configuration file"""
    from ..models import config as file

    rows = [(f"AgentMagics.{name}", repr(value)) for name, value in sorted(magics.defaults().items())]
    exists = "" if file.path().exists() else " (there is none)"
    say(f"{table(rows)}\nSet one with: %config AgentMagics.model = 'provider/name'\nFile: {_tilde(file.path())}{exists}")


def key(magics: AgentMagics, arguments: list[str]) -> None:
    """[PROVIDER [--keyring]]: where keys come from; with a provider, ask for its key and keep it for this session"""
    from ..models import keys

    if not arguments:
        say(table((provider, source or f"none: set {variable}") for provider, variable, source in keys.describe()))
        return
    provider, *rest = arguments
    if rest not in ([], ["--keyring"]):
        raise UsageError("Write %agent key PROVIDER, or %agent key PROVIDER --keyring. The key is asked for, not written in the cell.")
    from getpass import getpass

    try:
        entered = getpass(f"Key of {printable(provider)}: ")
    except (EOFError, NotImplementedError):
        variable = keys.VARIABLES.get(provider, (f"{provider.upper()}_API_KEY",))[0]
        raise UsageError(f"There is no keyboard here to enter a key. Set the variable {variable}.") from None
    say(f"The key of {provider} is kept in {keys.remember(provider, entered, keyring=bool(rest))}.")


def reset(magics: AgentMagics, arguments: list[str]) -> None:
    """[CONVERSATION]: forget the turns of one conversation, or of all"""
    known = [c.name for c in magics.session.conversations]
    name = arguments[0] if arguments else None
    if name is not None and name not in known:
        raise UsageError(f"There is no conversation {name!r}. Known: {', '.join(known) or 'none'}.")
    count = magics.session.conversations.reset(name)
    say(f"{count} turn{'' if count == 1 else 's'} forgotten. The runs stay in the notebook.")


def show(magics: AgentMagics, arguments: list[str]) -> Run:
    """[RUN]: show a run of this session again"""
    return _run(magics, arguments)


def status(magics: AgentMagics, _: list[str]) -> None:
    """the conversations of this session, turn by turn"""
    from ..run import Run

    session = magics.session
    rows = [("conversation", "turn", "run", "status", "prompt")]
    for conversation in session.conversations:
        for number, turn in enumerate(conversation.turns, 1):
            run = Run(turn.events)  # type: ignore[arg-type]  # turns of cells hold logs
            rows.append((conversation.name, str(number), run.id, run.status, " ".join(run.prompt.split())[:60]))
    say(table(rows) if len(rows) > 1 else "No cell has run an agent yet.")


def events(magics: AgentMagics, arguments: list[str]) -> Any:
    """[RUN]: the events of a run as a DataFrame"""
    return _run(magics, arguments).to_frame()


def export(magics: AgentMagics, arguments: list[str]) -> None:
    """FILE [RUN]: write a run to a .ndjson, .md, .html or .txt file"""
    if not arguments:
        raise UsageError("Write %agent export FILE: the ending says the form (.ndjson, .md, .html, .txt).")
    path, run = Path(arguments[0]), _run(magics, arguments[1:])
    kind = FORMS.get(path.suffix.lower())
    if kind is None:
        raise UsageError(f"{path.name} has no ending that says the form. Known: {', '.join(FORMS)}.")
    try:
        path.write_text(kind(run), encoding="utf-8", newline="\n")
    except OSError as fault:
        raise UsageError(f"{path} cannot be written: {fault.strerror or fault}.") from None
    say(f"Run {run.id} is written to {path}.")


def doctor(magics: AgentMagics, _: list[str]) -> None:
    """what this kernel and its front end can do"""
    from importlib.metadata import PackageNotFoundError, version

    from .frontend import can_click, view_kind

    rows: list[tuple[str, str]] = [("python", sys.version.split()[0])]
    for package in ("jupyter-agent-nb", "ipykernel", "ipython", "ipywidgets", "nbclient", "jupyter-server"):
        try:
            rows.append((package, version(package)))
        except PackageNotFoundError:
            rows.append((package, "not installed here"))
    cell = magics.session.cells.current(magics.shell, "doctor", "")
    rows += [
        ("kernel", "yes" if cell.kernel else "no, a terminal"),
        ("cell ids", "sent" if cell.id else "not sent: reruns cannot be told from new cells"),
        ("view", view_kind("auto", cell)),
        ("clicks while a cell runs", "yes" if can_click(magics.shell, cell) else "no: interrupt the kernel to stop"),
        ("questions", "on the keyboard" if cell.stdin else "none: --approve decides"),
    ]
    say(table(rows))
    models(magics, [])


FORMS: dict[str, Callable[[Run], str]] = {
    ".ndjson": lambda run: run.events.to_ndjson(),
    ".jsonl": lambda run: run.events.to_ndjson(),
    ".md": lambda run: str(run._repr_mimebundle_()["text/markdown"]),
    ".html": lambda run: str(run._repr_mimebundle_()["text/html"]),
    ".txt": lambda run: str(run._repr_mimebundle_()["text/plain"]),
}

COMMANDS: dict[str, Command] = {
    "help": help_,
    "models": models,
    "tools": tools,
    "config": config,
    "key": key,
    "reset": reset,
    "show": show,
    "status": status,
    "events": events,
    "export": export,
    "doctor": doctor,
}


def _run(magics: AgentMagics, arguments: list[str]) -> Run:
    """Return the run whose id begins with the argument, or the latest. Raises UsageError."""
    runs = [run for listed in magics.session.runs.values() for run in listed]
    if not runs:
        raise UsageError("No run yet in this session.")
    if not arguments:
        latest = magics.session.latest
        assert latest is not None
        return latest
    found = [run for run in runs if run.id.startswith(arguments[0])]
    if not found:
        raise UsageError(f"No run of this session begins with {arguments[0]!r}. Known: {', '.join(r.id for r in runs)}.")
    return found[0]


def _elsewhere(work: Callable[[], Any]) -> Any:
    """Run a coroutine function to its end on a loop of another thread and return its value: a magic is synchronous."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


def _tilde(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
