"""The command line: `jupyter agent-nb COMMAND …` (also `python -m agent_nb`).

Rules
- Exit codes: 0 ok, 1 something that was run has failed, 2 the command was wrong.
- Results go to stdout (`--json`: one JSON value), progress and complaints to stderr.
- A command is a function of the table at the end; what takes time to import is imported in it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TextIO

from . import __version__
from . import cli_options as options
from .errors import AgentError, UsageError

OK, FAILED, USAGE = 0, 1, 2
FORMS = {".csv": "csv", ".json": "json", ".parquet": "parquet", ".pq": "parquet"}
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
    from .notebook.reading import inject, parameters

    values = parameters(arguments.parameter)
    streaming = _streaming(arguments)

    def one(pair: tuple[Path, Path], on_cell: Any) -> dict[str, Any]:
        path, target = pair
        with streaming() as relay:
            outcome = execute(
                path, model=arguments.model, rerun="live" if arguments.live else arguments.rerun, trust=arguments.trust_record,
                timeout=arguments.timeout, kernel=arguments.kernel, on_cell=on_cell, prepare=lambda nb: inject(nb, values),
                stream=relay.path if relay else "",
            )  # fmt: skip
        _written(lambda: write(outcome.notebook, target), target)
        report = _report(path, target, outcome)
        if relay and relay.losses:
            complain(f"{path}: not written as {arguments.stream}:\n{relay.losses}")
        if not arguments.json:
            _tell(report, sys.stderr if relay else sys.stdout)
        return report

    reports = _in_parallel(one, [(pair[0].name, pair) for pair in _targets(arguments)], arguments.jobs)
    if arguments.json:
        print(json.dumps(reports, ensure_ascii=False, indent=2))
    return OK if all(r["ok"] for r in reports) else FAILED


def test(arguments: Arguments) -> int:
    """replay notebooks strictly: every agent cell has a record, nothing drifts, nothing fails; no model is called"""
    import msgspec

    from .notebook.testing import check_notebook

    def one(path: Path, on_cell: Any) -> Any:
        report = check_notebook(
            path, trust=arguments.trust_record, timeout=arguments.timeout, kernel=arguments.kernel, on_cell=on_cell
        )
        if not arguments.json:
            print(report, flush=True)
        return report

    reports = _in_parallel(one, [(path.name, path) for path in _notebooks(arguments.notebooks)], arguments.jobs)
    if arguments.json:
        print(json.dumps([{"ok": r.ok, **msgspec.to_builtins(r)} for r in reports], ensure_ascii=False, indent=2))
    return OK if all(r.ok for r in reports) else FAILED


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
    """print the events of the newest run of each cell, as a table, CSV, JSON or Parquet"""
    from .collect import Runs
    from .notebook import reading

    runs = reading.read_runs(_notebooks(arguments.notebooks), every=arguments.all)
    if arguments.json:
        for run in runs:
            sys.stdout.write(run.log.to_ndjson())
        return OK
    output = Path(arguments.output) if arguments.output else None
    form = arguments.format or (FORMS.get(output.suffix.lower(), "table") if output else "table")
    if output is None and form == "table" and not arguments.columns:
        for run in runs:
            print(f"cell {run.cell}, run {run.id}")
            print(reading.frame(Runs([run])).drop(columns=["notebook"]).to_string(max_colwidth=60))
        return OK
    _out(reading.write_frame(reading.frame(runs, arguments.columns), form, output), output)
    return OK


def export(arguments: Arguments) -> int:
    """write runs as markdown, HTML, text, or in the format of a codec (canonical, loom, ag-ui …)"""
    from .notebook import reading

    runs = [r for r in reading.read_runs(_notebooks(arguments.notebooks), every=bool(arguments.run)) if r.id.startswith(arguments.run)]
    if not runs:
        raise UsageError("There is no recorded run to export" + (f" whose id begins with {arguments.run!r}." if arguments.run else "."))
    output = Path(arguments.output) if arguments.output else None
    form = arguments.to or (output.suffix.lstrip(".").lower() if output else "markdown")
    _out("".join(reading.export(run, form) for run in runs), output)
    return OK


def convert(arguments: Arguments) -> int:
    """translate a run from one format into another, as it comes; what is lost is told on stderr"""
    from .convert import command

    source, target = arguments.source, arguments.output
    if target != "-" and Path(target).exists() and source != "-" and Path(source).exists() and Path(source).samefile(target):
        raise UsageError(f"{source} would be written over while it is read. Choose another file with -o.")
    report = command(source, target, arguments.from_ or None, arguments.to, strict=arguments.strict, framing=arguments.framing)
    complain(str(report))
    return OK


def diff(arguments: Arguments) -> int:
    """compare the newest runs of two notebooks cell by cell; with one notebook, each cell's newest run with the one before"""
    from .notebook import reading

    paths = _files(arguments.notebooks[:2])
    if len(paths) == 2:
        found = reading.compare(reading.read_runs(paths[:1]), reading.read_runs(paths[1:]))
    else:
        found = reading.versions(reading.read_runs(paths, every=True))
    for one in found:
        print(one)
    return FAILED if any(found) else OK


def verify(arguments: Arguments) -> int:
    """check the records of notebooks: shape, hashes, payloads, secrets, signatures"""
    from .notebook.reading import verify as check

    problems: list[str] = []
    remarks: list[str] = []
    for path in _notebooks(arguments.notebooks):
        found = check(path, signed=arguments.signed)
        problems += found[0]
        remarks += found[1]
    if arguments.json:
        print(json.dumps({"ok": not problems, "problems": problems, "remarks": remarks}, ensure_ascii=False, indent=2))
    else:
        print("\n".join([*problems, *remarks]) or "no records")
    return FAILED if problems else OK


def git_setup(arguments: Arguments) -> int:
    """let git show and merge notebooks with records in this repository"""
    from .notebook.git import setup

    print("\n".join(setup(Path(arguments.folder), filtered=arguments.strip)))
    return OK


def git_text(arguments: Arguments) -> int:
    """print a notebook as git's diff shows it (what git-setup installs)"""
    from .notebook.git import text
    from .notebook.metadata import load

    sys.stdout.write(text(load(arguments.notebook)))
    return OK


def git_merge(arguments: Arguments) -> int:
    """merge three versions of a notebook into the second (what git-setup installs)"""
    from .notebook.git import merge

    return OK if merge(Path(arguments.base), Path(arguments.ours), Path(arguments.theirs)) else FAILED


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


COMMANDS: dict[str, tuple[Callable[[Arguments], int], Callable[[argparse.ArgumentParser], None]]] = {
    "run": (run, options.run_options),
    "test": (test, options.test_options),
    "events": (events, options.events_options),
    "export": (export, options.export_options),
    "convert": (convert, options.convert_options),
    "diff": (diff, options.diff_options),
    "verify": (verify, options.verify_options),
    "git-setup": (git_setup, options.git_setup_options),
    "git-text": (git_text, options.git_text_options),
    "git-merge": (git_merge, options.git_merge_options),
    "pack": (pack, options.file_options),
    "strip": (strip, options.strip_options),
}


def _files(given: Sequence[str]) -> list[Path]:
    """Return the notebooks that are named. Raises UsageError for one that is not there."""
    paths = [Path(name) for name in given]
    for path in paths:
        if not path.is_file():
            raise UsageError(f"There is no file {path}.")
    return paths


def _notebooks(given: Sequence[str]) -> list[Path]:
    """Return the files that are named, those of folders and globs included. Raises UsageError for what is not there."""
    from .collect import notebooks

    paths: list[Path] = []
    for name in given:
        found = notebooks(name) if Path(name).is_dir() or any(c in name for c in "*?[") else _files([name])
        if not found:
            raise UsageError(f"There is no notebook in {name}.")
        paths += [p for p in found if p not in paths]
    return paths


def _in_parallel(work: Callable[[Any, Any], Any], items: Sequence[tuple[str, Any]], jobs: int) -> list[Any]:
    """Do `work` for each (name, item), `jobs` at a time, with a progress display; return what it gave, in order."""
    from concurrent.futures import ThreadPoolExecutor

    from .notebook.progress import Progress

    def one(named: tuple[str, Any]) -> Any:
        with Progress(named[0], lines=jobs > 1) as progress:
            return work(named[1], progress.cell)

    if jobs <= 1:
        return [one(item) for item in items]
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, items))


def _out(text: str, path: Path | None) -> None:
    """Write a text to a file or to stdout. Raises UsageError."""
    if path is None:
        sys.stdout.write(text)
    elif text:
        _written(lambda: path.write_text(text, encoding="utf-8", newline="\n"), path)


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


def _written(write: Callable[[], Any], path: Path) -> None:
    try:
        write()
    except OSError as fault:
        raise UsageError(f"{path} cannot be written: {fault.strerror or fault}.") from fault


def _streaming(arguments: Arguments) -> Callable[[], AbstractContextManager[Any]]:
    """Return what makes the relay of one notebook, or nothing when no stream is asked for. Raises UsageError."""
    if not arguments.stream:
        return nullcontext
    from .notebook.relay import Relay, overlapping

    if arguments.json:
        raise UsageError("--stream and --json both write to stdout. Choose one.")
    if arguments.jobs > 1 and not overlapping(arguments.stream):
        raise UsageError(f"In {arguments.stream} runs cannot overlap: --stream takes one notebook at a time, without --jobs.")
    lock = threading.Lock()

    def write(text: str) -> None:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader has gone; what is left in the buffer must not fail when we end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise

    return lambda: Relay(arguments.stream, write, lock)


def _report(path: Path, target: Path, outcome: Any) -> dict[str, Any]:
    runs = [{"cell": number, **{k: v for k, v in numbers.items() if k != "version"}} for number, numbers in outcome.runs]
    return {
        "notebook": str(path),
        "output": str(target),
        "ok": not outcome.failure,
        **({"failure": outcome.failure} if outcome.failure else {}),
        "runs": runs,
    }


def _tell(report: dict[str, Any], to: TextIO) -> None:
    from .notebook.summary import line

    print(f"{report['output']}: {'ok' if report['ok'] else 'failed'}", file=to)
    for numbers in report["runs"]:
        print(f"  cell {numbers['cell']} · {line(numbers)}", file=to)
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
