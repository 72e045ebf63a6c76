"""Exit codes, lists of files, parallel work and options that several commands share.

Rule: a command looks up all of its notebooks before it works on the first, so that a wrong name
stops it while nothing has changed.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..errors import UsageError

OK, FAILED, USAGE = 0, 1, 2  # exit codes (see `main`)
SEVERAL = "files, folders or globs"  # the help of an argument that `list_notebooks` reads
COPY_SUFFIX = ".run.ipynb"  # of the copies that `run` writes
TICK = 0.2  # seconds of one wait for the work, after which Python can handle a signal

Arguments = argparse.Namespace
AddOptions = Callable[[argparse.ArgumentParser], None]  # adds the options of a command
Command = Callable[[Arguments], int]  # returns the exit code


def existing_files(names: Sequence[str]) -> list[Path]:
    """Return the named notebooks as paths. Raises UsageError if one does not exist."""
    paths = [Path(name) for name in names]
    for path in paths:
        if not os.path.isfile(path):
            raise UsageError(f"File not found: {path}.")
    return paths


def list_notebooks(names: Sequence[str], *, copies: bool = True) -> list[Path]:
    """Return the notebooks that `names` (files, folders, globs) stand for, each once.

    `copies`: of a folder or glob, also executed copies (`COPY_SUFFIX`), as always if it holds
    nothing else. Raises UsageError if a file does not exist, or a folder or glob holds no notebook.
    """
    from ..record import find_notebooks

    paths: dict[str, Path] = {}  # absolute path -> the path as it was named first
    for name in names:
        is_glob = any(c in name for c in "*?[") and not os.path.isfile(name)
        is_pattern = is_glob or os.path.isdir(name)
        matches = find_notebooks(name) if is_pattern else existing_files([name])
        if is_pattern and not copies:
            originals = [path for path in matches if not path.name.endswith(COPY_SUFFIX)]
            matches = originals or matches
        if not matches:
            raise UsageError(f"There is no notebook in {name}.")
        for path in matches:
            paths.setdefault(os.path.abspath(path), path)
    return list(paths.values())


def in_parallel(
    work: Callable[[Any, Any], Any], items: Sequence[tuple[str, Any]], jobs: int
) -> list[Any]:
    """Return the results of `work` for each (name, item), `jobs` at a time; show the progress.

    `work` gets the item, and a function to call when a cell begins (`Progress.show_cell`). Once it
    has raised, no more work begins, and the first exception is raised. Raises Stopped when a signal
    ends the process, after the kernels have ended.
    """
    from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait

    from ..runner import Progress, raise_on_signals

    failures: list[BaseException] = []  # in the order of time

    def work_on(name: str, item: Any) -> Any:
        if failures:
            raise CancelledError
        try:
            with Progress(name, lines=jobs > 1) as progress:
                return work(item, progress.show_cell)
        except BaseException as fault:
            failures.append(fault)
            raise

    with raise_on_signals() as stop_all, ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(work_on, name, item) for name, item in items]
        try:
            # wait with a time limit: an endless wait may miss a signal that another thread got
            while wait(futures, TICK, FIRST_EXCEPTION).not_done and not failures:
                pass
            if failures:
                raise failures[0]  # noqa: TRY301  (the pool is shut down below)
            return [future.result() for future in futures]
        except BaseException as fault:
            pool.shutdown(wait=False, cancel_futures=True)
            if isinstance(fault, KeyboardInterrupt):
                stop_all()
            raise


def output_path(name: str | None, notebooks: Sequence[Path]) -> Path | None:
    """Return the file of -o, None for stdout; raise UsageError if it is one of the `notebooks`."""
    if not name or name == "-":
        return None
    if os.path.isfile(name) and any(os.path.samefile(name, path) for path in notebooks):
        raise UsageError(f"{name} is a notebook to be read. Choose another file with -o.")
    return Path(name)


def add_flag(options: Any, names: str, text: str) -> None:
    """Add an option without a value to a parser, or to a group of its options.

    `names`: the option's names, with spaces between them (`-o --output`). `text`: the help.
    """
    options.add_argument(*names.split(), action="store_true", help=text)


def add_text(options: Any, names: str, metavar: str, text: str, default: str | None = "") -> None:
    """Add an option with a text as its value; the other parameters are those of `add_flag`."""
    options.add_argument(*names.split(), default=default, metavar=metavar, help=text)


def add_texts(options: Any, names: str, metavar: str, text: str) -> None:
    """Add an option that may occur several times; its value is the list of its texts."""
    options.add_argument(*names.split(), action="append", default=[], metavar=metavar, help=text)


def add_number(options: Any, names: str, metavar: str, text: str, default: float) -> None:
    """Add an option with a number of the type of `default` as its value."""
    options.add_argument(
        *names.split(), type=type(default), default=default, metavar=metavar, help=text
    )


def output_option(sub: argparse.ArgumentParser) -> None:
    """Add the option -o of commands that write a result (`output_path`)."""
    add_text(sub, "-o --output", "FILE", "where to write (-: stdout, the default)", None)


def kernel_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of commands that execute notebooks."""
    timeout_help = "seconds a cell may take (default: no limit)"
    sub.add_argument("--timeout", type=_parse_timeout, metavar="S", help=timeout_help)
    add_text(sub, "--kernel", "NAME", "the kernel to use (default: the notebook's)")
    jobs_help = "how many notebooks run at the same time"
    sub.add_argument("-j", "--jobs", type=_parse_jobs, default=1, metavar="N", help=jobs_help)


def trust_option(sub: argparse.ArgumentParser) -> None:
    """Add the options of commands that replay."""
    add_flag(sub, "--trust-record", "let code of records run again that you have not signed")
    folder_option(sub)


def folder_option(sub: argparse.ArgumentParser) -> None:
    """Add the option of commands that run agents in a folder."""
    folder_help = "let the folder give keys (.env) and be obeyed in its policies"
    add_flag(sub, "--trust-folder", folder_help)


def file_options(
    sub: argparse.ArgumentParser, text: str = "notebook files", nargs: str = "+"
) -> None:
    """Add the argument `notebooks`; `text`: its help, `nargs`: how many (as in argparse)."""
    sub.add_argument("notebooks", nargs=nargs, metavar="NOTEBOOK", help=text)


def _parse_jobs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def _parse_timeout(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("it must be more than 0, and finite")
    return value
