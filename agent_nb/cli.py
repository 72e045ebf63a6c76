"""The command line: `jupyter agent-nb COMMAND …` (also `python -m agent_nb`).

Rules
- Exit codes: 0 ok, 1 something that was run has failed, 2 the command was wrong.
- Results go to stdout (`--json`: one JSON value), progress and complaints to stderr.
- A command is a function of the table at the end; what takes time to import is imported in it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import __version__
from .errors import AgentError, UsageError

OK, FAILED, USAGE = 0, 1, 2
Arguments = argparse.Namespace


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = parser().parse_args(argv)
    try:
        code: int = arguments.command(arguments)
        return code
    except UsageError as fault:
        complain(str(fault))
        return USAGE
    except AgentError as fault:
        complain(str(fault))
        return FAILED
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone: Python's own complaint about it would be the only output
        return OK
    except KeyboardInterrupt:
        complain("interrupted")
        return FAILED


def complain(text: str) -> None:
    """Write a line to stderr."""
    print(f"jupyter agent-nb: {text}", file=sys.stderr)


def run(arguments: Arguments) -> int:
    """execute notebooks; each is written to NAME.run.ipynb, also when a cell has failed"""
    from .notebook.execute import execute, write
    from .notebook.progress import Progress

    targets = _targets(arguments)
    reports = []
    for path, target in targets:
        with Progress(path.name) as progress:
            outcome = execute(
                path,
                model=arguments.model,
                rerun="live" if arguments.live else arguments.rerun,
                trust=arguments.trust_record,
                timeout=arguments.timeout,
                kernel=arguments.kernel,
                on_cell=progress.cell,
            )
        _written(lambda: write(outcome.notebook, target), target)  # noqa: B023  (called at once)
        reports.append(_report(path, target, outcome))
        if not arguments.json:
            _tell(reports[-1])
    if arguments.json:
        print(json.dumps(reports, ensure_ascii=False, indent=2))
    return OK if all(r["ok"] for r in reports) else FAILED


def pack(arguments: Arguments) -> int:
    """move the records of notebooks from their outputs into their metadata"""
    from .notebook.metadata import lift, load, save

    for path in _files(arguments.notebooks):
        nb = load(path)
        before = json.dumps(nb)
        if lift(nb) and json.dumps(nb) != before:
            _written(lambda: save(nb, path), path)  # noqa: B023  (called at once)
            print(f"{path}: packed")
        else:
            print(f"{path}: nothing to do")
    return OK


def strip(arguments: Arguments) -> int:
    """remove the records from notebooks; with no file: from stdin to stdout, as a git filter"""
    from .notebook import metadata

    if not arguments.notebooks:
        return _strip_filter()
    for path in _files(arguments.notebooks):
        nb = metadata.load(path)
        count = metadata.strip(nb)
        if count:
            _written(lambda: metadata.save(nb, path), path)  # noqa: B023  (called at once)
        print(f"{path}: {count or 'no'} record{'' if count == 1 else 's'} or references removed")
    return OK


def events(arguments: Arguments) -> int:
    """print the events of the newest run of each cell"""
    from .notebook.metadata import load, records
    from .record import log_of

    logs = [(cell, log_of(listed[0])) for path in _files(arguments.notebooks) for cell, listed in records(load(path)).items()]
    if arguments.json:
        for _, log in logs:
            sys.stdout.write(log.to_ndjson())
        return OK
    for cell, log in logs:
        print(f"cell {cell}, run {log.run}")
        print(log.to_frame().to_string(max_colwidth=60))
    return OK


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = argparse.ArgumentParser(prog="jupyter agent-nb", description="Run and inspect notebooks with %%agent cells.")
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for name, (function, describe) in COMMANDS.items():
        text = (function.__doc__ or "").strip()
        sub = commands.add_parser(name, help=text, description=text[:1].upper() + text[1:])
        describe(sub)
        sub.set_defaults(command=function)
    return top


def _run_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("notebooks", nargs="+", metavar="NOTEBOOK")
    sub.add_argument("--live", action="store_true", help="call the models, whatever is recorded")
    sub.add_argument("--rerun", choices=("auto", "live", "replay"), default="", help="auto plays what has not changed (the default)")
    _trust_option(sub)
    sub.add_argument("--model", default="", metavar="MODEL", help="use this model in every cell")
    sub.add_argument("--timeout", type=_seconds, metavar="S", help="seconds a cell may take (default: no limit)")
    sub.add_argument("--kernel", default="", metavar="NAME", help="the kernel to use (default: the notebook's)")
    place = sub.add_mutually_exclusive_group()
    place.add_argument("-o", "--output", metavar="FILE", help="where to write (a folder for several notebooks)")
    place.add_argument("--inplace", action="store_true", help="write over the notebook itself")
    sub.add_argument("--json", action="store_true", help="print the results as JSON")


def _trust_option(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--trust-record", action="store_true", help="let code of records run again that you have not signed")


def _file_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("notebooks", nargs="+", metavar="NOTEBOOK")


def _strip_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("notebooks", nargs="*", metavar="NOTEBOOK")


def _events_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("notebooks", nargs="+", metavar="NOTEBOOK")
    sub.add_argument("--json", action="store_true", help="one JSON object a line")


COMMANDS: dict[str, tuple[Callable[[Arguments], int], Callable[[argparse.ArgumentParser], None]]] = {
    "run": (run, _run_options),
    "events": (events, _events_options),
    "pack": (pack, _file_options),
    "strip": (strip, _strip_options),
}


def _seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError("it must be more than 0")
    return value


def _files(given: Sequence[str]) -> list[Path]:
    """Return the notebooks that are named. Raises UsageError for one that is not there."""
    paths = [Path(name) for name in given]
    for path in paths:
        if not path.is_file():
            raise UsageError(f"There is no file {path}.")
    return paths


def _targets(arguments: Arguments) -> list[tuple[Path, Path]]:
    """Return (notebook, where to write it) for each notebook. Raises UsageError."""
    paths = _files(arguments.notebooks)
    if arguments.inplace:
        return [(p, p) for p in paths]
    if not arguments.output:
        return [(p, p.with_name(f"{p.stem.removesuffix('.run')}.run.ipynb")) for p in paths]
    output = Path(arguments.output)
    if output.is_dir():
        return [(p, output / p.name) for p in paths]
    if len(paths) > 1:
        raise UsageError(f"-o {output} is no folder; several notebooks need one.")
    if not output.parent.is_dir():
        raise UsageError(f"There is no folder {output.parent} to write to.")
    return [(paths[0], output)]


def _written(write: Callable[[], None], path: Path) -> None:
    try:
        write()
    except OSError as fault:
        raise UsageError(f"{path} cannot be written: {fault.strerror or fault}.") from fault


def _report(path: Path, target: Path, outcome: Any) -> dict[str, Any]:
    runs = [{"cell": number, **{k: v for k, v in numbers.items() if k != "version"}} for number, numbers in outcome.runs]
    return {
        "notebook": str(path),
        "output": str(target),
        "ok": not outcome.failure,
        **({"failure": outcome.failure} if outcome.failure else {}),
        "runs": runs,
    }


def _tell(report: dict[str, Any]) -> None:
    from .notebook.summary import line

    print(f"{report['output']}: {'ok' if report['ok'] else 'failed'}")
    for numbers in report["runs"]:
        print(f"  cell {numbers['cell']} · {line(numbers)}")
    if not report["ok"]:
        complain(f"{report['notebook']}: {report['failure']}")


def _strip_filter() -> int:
    from .notebook.metadata import strip as clean

    text = sys.stdin.read()
    try:
        nb = json.loads(text)
    except ValueError as fault:
        raise UsageError(f"stdin is no notebook: {fault}") from fault
    if not isinstance(nb, dict) or not clean(nb):
        sys.stdout.write(text)
        return OK
    sys.stdout.write(json.dumps(nb, ensure_ascii=False, indent=1) + "\n")
    return OK


if __name__ == "__main__":
    sys.exit(main())
