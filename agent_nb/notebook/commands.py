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
from ..record import KEY, MIME
from .asking import printable
from .failure import AgentCellError
from .metadata import FORGET
from .options import words

if TYPE_CHECKING:
    from ..agent import Agent
    from ..journal import Found
    from ..run import Run
    from .magic import AgentMagics
    from .options import Options

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
    """the agent cells: recorded, stale or unrecorded; the conversations, turn by turn; runs that were lost"""
    parts = [_cells(magics), _turns(magics), _lost(magics)]
    say("\n\n".join(p for p in parts if p) or "No cell has run an agent yet.")


def _cells(magics: AgentMagics) -> str:
    import time

    from .statuses import standings

    found = standings(magics.session.library, magics.read_options, lambda o: _agent(magics, o), magics.shell.user_ns)
    rows = [("cell", "status", "recorded", "prompt")]
    for cell in found:
        when = time.strftime("%d %b %Y %H:%M", time.localtime(cell.recorded)) if cell.recorded else "-"
        rows.append((cell.cell, cell.status, when, cell.prompt))
    return table(rows) if found else ""


def _agent(magics: AgentMagics, options: Options) -> Agent:
    """Return the agent that a cell with these options would have, for its inputs."""
    from ..agent import Agent
    from .session import secrets

    return Agent(
        options.model, options.tools, system=options.system, dialect=options.dialect, settings=options.settings,
        namespace=magics.shell.user_ns, secrets=secrets(), late=True,
    )  # fmt: skip


def _turns(magics: AgentMagics) -> str:
    from ..run import Run

    rows = [("conversation", "turn", "run", "status", "prompt")]
    for conversation in magics.session.conversations:
        for number, turn in enumerate(conversation.turns, 1):
            run = Run(turn.events)  # type: ignore[arg-type]  # turns of cells hold logs
            id_ = run.log[0].run if len(run.log) else "?"
            rows.append((conversation.name, str(number), id_, run.status, " ".join(run.prompt.split())[:60]))
    return table(rows) if len(rows) > 1 else ""


def _lost(magics: AgentMagics) -> str:
    count = len([f for f in _offered(magics) if f.status == "lost"])
    return f"{count} run{' was' if count == 1 else 's were'} lost: %agent recover" if count else ""


def _offered(magics: AgentMagics, *, unsaved: bool = False) -> list[Found]:
    """Return the lost runs, with `unsaved` also those that only this kernel knows."""
    from .recovery import offered

    session = magics.session
    known = {run.id for listed in session.runs.values() for run in listed if not unsaved}
    known |= {str(r.get("id", "")) for listed in session.library.file().runs.values() for r in listed}
    return offered(known, str(session.library.path() or ""))


def recover(magics: AgentMagics, arguments: list[str]) -> None:
    """[RUN|all]: the runs that never reached the notebook; with a run, bring it back"""
    from ..run import Run
    from ..view.bundle import bundle
    from .publish import publish
    from .recovery import chosen, rows
    from .recovery import recover as bring_back
    from .summary import summary

    found, unsaved = _offered(magics), _offered(magics, unsaved=True)
    if not found and arguments in ([], ["all"]):
        say("Nothing was lost: every run of this user is in a notebook, or its journal is gone.")
    elif not arguments:
        say(f"{table(rows(found))}\nBring one back with %agent recover RUN, or all.")
    here = [f for f in unsaved if f.header.run not in {g.header.run for g in found}]
    if here and not arguments:
        say(f"Made by this kernel, not in the saved file (save it; if a page was closed meanwhile, recover):\n{table(rows(here))}")
    for one in chosen(found if arguments[0] == "all" else unsaved, arguments[0]) if arguments else ():
        log, record = bring_back(one, magics.session.library)
        run = Run(log)
        cell = magics.session.cells.current(magics.shell, "recover", run.id)
        magics.session.keep(cell, run, "_agent")
        data = {**bundle(log, badge=f"recovered, ended {one.status}"), MIME: record}
        publish(data, {KEY: summary(run)}, {}, False)


def forget(magics: AgentMagics, arguments: list[str]) -> None:
    """[CELL|all]: remove the records of a cell (by its id; default: the latest run's) from the notebook, this kernel and the journals"""
    from .publish import publish
    from .recovery import drop

    session = magics.session
    keys = _keys(magics, arguments)
    runs = [run for key in (keys if keys is not None else list(session.runs)) for run in session.runs.pop(key, ())]
    ids = sorted({*session.library.forget(keys), *(run.id for run in runs)} - {""})
    for conversation in session.conversations:
        for key in keys if keys is not None else [t.cell for t in conversation.turns]:
            conversation.forget(key)
    drop(ids)
    count = f"{len(ids)} run{'' if len(ids) == 1 else 's'} forgotten"
    text = f"{count}. They leave the file with its next save; what the outputs show stays until you clear it."
    publish({"text/plain": text}, {KEY: {FORGET: ids}}, {}, False)


def _keys(magics: AgentMagics, arguments: list[str]) -> list[str] | None:
    """Return the cells that are meant (None: all). Raises UsageError for one that has no runs."""
    session = magics.session
    known = [*session.runs, *session.library.file().runs]
    if arguments[:1] == ["all"]:
        return None
    if not arguments:
        latest = session.latest
        return [key for key, listed in session.runs.items() if latest in listed]
    found = [key for key in dict.fromkeys(known) if key.startswith(arguments[0])]
    if not found:
        raise UsageError(f"No cell with runs begins with {arguments[0]!r}. Known: {', '.join(dict.fromkeys(known)) or 'none'}.")
    return found


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
    "recover": recover,
    "forget": forget,
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
