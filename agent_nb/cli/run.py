"""The commands that execute notebooks: `run` and `test`.

Kernels start early (`EarlyKernels`), while slow modules are imported. If one of several notebooks
fails or cannot be executed, the others still run.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from errno import EISDIR
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from .shared import (
    COPY_SUFFIX,
    FAILED,
    OK,
    SEVERAL,
    Arguments,
    add_flag,
    add_text,
    add_texts,
    existing_files,
    file_options,
    in_parallel,
    kernel_options,
    list_notebooks,
    output_path,
    trust_option,
)
from .terminal import (
    print_complaint,
    print_lines,
    show_json,
    stream_json,
    write_checked,
    write_output,
)

if TYPE_CHECKING:
    from ..runner import EarlyKernels


def run_notebooks(arguments: Arguments) -> int:
    """execute notebooks; each is written to NAME.run.ipynb, also when a cell has failed"""
    from ..runner import EarlyKernels

    execution = _Execution(arguments)
    targets = _choose_targets(arguments)
    execute = execution.execute if len(targets) == 1 else execution.try_execute
    paths = (path for path, _ in targets)
    with EarlyKernels.of_options(paths, execution.options) as early_kernels:
        named = [(path.name, (path, target)) for path, target in targets]
        reports = in_parallel(partial(execute, early_kernels), named, arguments.jobs)
    if arguments.json:
        show_json(reports)
    return OK if all(r["ok"] for r in reports) else FAILED


class _Execution:
    """Executes notebooks with the options of one `run` command.

    Its methods get `early_kernels`, which may have the notebook's kernel, the `paths` of a notebook
    and its output, and `on_cell`, to be called when a cell begins.
    """

    def __init__(self, arguments: Arguments) -> None:
        """Read the options of `run`. Raises UsageError for faulty ones."""
        from ..runner import ExecutionOptions
        from .parameters import parse_parameters

        self._arguments = arguments
        self._values = parse_parameters(arguments.parameter)
        self._make_relay = _make_relay_factory(arguments)
        self.options = ExecutionOptions(
            model=arguments.model,
            rerun="live" if arguments.live else arguments.rerun,
            trust=arguments.trust_record,
            trust_folder=arguments.trust_folder,
            trust_mcp=arguments.trust_mcp,
            timeout=arguments.timeout,
            kernel=arguments.kernel,
            tape=arguments.tape,
        )

    def try_execute(
        self, early_kernels: EarlyKernels, paths: tuple[Path, Path], on_cell: Any
    ) -> dict[str, Any]:
        """Execute a notebook as `execute` does; an error becomes a failed result."""
        from ..runner import Report

        try:
            return self.execute(early_kernels, paths, on_cell)
        except Exception as fault:  # the other notebooks must still run
            early_kernels.discard(paths[0])
            text = Report.of_error("", fault).problems[0].text
            print_complaint(text if str(paths[0]) in text else f"{paths[0]}: {text}")
            failure = {"ok": False, "failure": text}
            return {"notebook": str(paths[0]), "output": "", **failure, "runs": []}

    def execute(
        self, early_kernels: EarlyKernels, paths: tuple[Path, Path], on_cell: Any
    ) -> dict[str, Any]:
        """Execute a notebook, write the output, and print and return the result."""
        from msgspec.structs import replace

        # slow to import; meanwhile the kernel starts
        from ..runner import execute_notebook
        from .parameters import inject_parameters
        from .run_summary import summary_line

        path, target = paths
        is_same = path.resolve() == target.resolve()
        before = _read_bytes(path) if is_same else None
        with self._make_relay() as relay:
            outcome = execute_notebook(
                path,
                replace(self.options, stream=relay.path if relay else ""),
                on_cell=on_cell,
                prepare=lambda nb: inject_parameters(nb, self._values),
                early_kernels=early_kernels,
            )
        # a front end may have saved it meanwhile, with work that must not be lost
        is_changed = is_same and _read_bytes(path) != before
        if is_changed:
            target = path.with_name(path.stem + COPY_SUFFIX)
        write_checked(lambda: outcome.write(target, over=is_same and not is_changed), target)
        report = _make_report(path, target, outcome)
        if is_changed:
            changed = f"the file has changed while it ran: its runs are in {target}"
            failure = "; ".join(filter(None, (outcome.failure, changed)))
            report |= {"ok": False, "failure": failure}
        if relay and relay.losses:
            print_complaint(f"{path}: not written as {self._arguments.stream}:\n{relay.losses}")
        if self._arguments.json:
            return report
        print_lines(f"{target}: {'ok' if report['ok'] else 'failed'}", aside=bool(relay))
        for numbers in report["runs"]:
            print_lines(f"  cell {numbers['cell']} · {summary_line(numbers)}", aside=bool(relay))
        if not report["ok"]:
            print_complaint(f"{path}: {report['failure']}")
        return report


def run_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `run`."""
    file_options(sub)
    parameter_help = "set a variable before the notebook runs"
    add_texts(sub, "-p --parameter", "NAME=VALUE", parameter_help)
    mode_group = sub.add_mutually_exclusive_group()
    live_help = "call the models, whatever is recorded (the same as --rerun live)"
    add_flag(mode_group, "--live", live_help)
    rerun_help = "auto plays what has not changed (the default), replay plays or fails"
    mode_group.add_argument(
        "--rerun", choices=("auto", "live", "replay"), default="", help=rerun_help
    )
    trust_option(sub)
    servers_help = "let the servers of the folder's .mcp.json start: programs that its author chose"
    add_flag(sub, "--trust-mcp", servers_help)
    add_text(sub, "--model", "MODEL", "use this model in every cell")
    kernel_options(sub)
    tape_help = (
        "record the model calls of other libraries (openai, anthropic …), as %%agent tape does"
    )
    add_flag(sub, "--tape", tape_help)
    stream_help = "write the events of the runs to stdout as they happen, in this format"
    add_text(sub, "--stream", "CODEC", stream_help)
    output_group = sub.add_mutually_exclusive_group()
    output_help = "where to write (a folder for several notebooks)"
    add_text(output_group, "-o --output", "FILE", output_help, None)
    add_flag(output_group, "--inplace", "write over the notebook itself")
    add_flag(sub, "--json", "print the results as JSON")


def check_notebooks(arguments: Arguments) -> int:
    """replay notebooks strictly: every agent cell has a record, nothing drifts, nothing fails; no
    model is called
    """
    from ..record import Signer
    from ..runner import CheckOptions, EarlyKernels, Report, check_notebook

    signers = Signer.load_all(arguments.signers)
    for signer in signers:
        if signer.problem:
            print_complaint(f"the signer {signer.name} does not count: {signer.problem}")
    options = CheckOptions(
        trust=arguments.trust_record,
        trust_folder=arguments.trust_folder,
        timeout=arguments.timeout,
        kernel=arguments.kernel,
        keep_going=arguments.keep_going,
        strict_tools=arguments.strict_tools,
        signers=signers,
    )

    def check_reported(path: Path, on_cell: Any) -> Report:
        """Check a notebook and print its report; an error counts as a failed check."""
        try:
            report = check_notebook(path, options, on_cell, early_kernels)
        except Exception as fault:  # the other notebooks must still be tested
            early_kernels.discard(path)
            report = Report.of_error(str(path), fault)
        if not arguments.json:
            print_lines(report.text(verbose=arguments.verbose))
        return report

    paths = list_notebooks(arguments.notebooks, copies=False)
    if arguments.shard is not None:
        paths = [path for path in paths if is_in_part(path, arguments.shard)]
    with EarlyKernels(paths, options.choose_kernel) as early_kernels:
        reports = in_parallel(check_reported, [(path.name, path) for path in paths], arguments.jobs)
    if arguments.json:
        show_json([report.to_builtins() for report in reports])
    elif len(reports) != 1:
        print_lines(Report.summarize(reports) if reports else "This shard holds no notebooks.")
    if arguments.junit:  # last: if it cannot be written, the results have been shown
        write_output(Report.render_junit(reports), output_path(arguments.junit, paths))
    return OK if all(r.ok for r in reports) else FAILED


def test_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `test`."""
    file_options(sub, SEVERAL)
    trust_option(sub)
    signers_help = "trust what these people have signed, too (an OpenSSH allowed_signers file; see `trust` and `sign`)"
    add_text(sub, "--signers", "FILE", signers_help)
    kernel_options(sub)
    add_flag(sub, "--keep-going", "go on after a failed cell of Python code, too")
    tools_help = "fail where a tool changed whose result came from the record"
    add_flag(sub, "--strict-tools", tools_help)
    shard_help = "test part I of N; a notebook's path says which part it is in"
    sub.add_argument("--shard", type=_parse_shard, metavar="I/N", help=shard_help)
    add_flag(sub, "-v --verbose", "list what was masked, and what could not be compared")
    add_text(sub, "--junit", "FILE", "write the results as JUnit XML, too", None)
    add_flag(sub, "--json", "print the results as JSON")


def is_in_part(path: Path, part: tuple[int, int]) -> bool:
    """Return whether a notebook belongs to the part (number from 1, number of parts).

    The part depends only on the notebook's path: other notebooks may come and go.
    """
    number, parts = part
    name = Path(os.path.relpath(path)).as_posix()
    # a digest, because `hash` of a text differs from process to process
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8]) % parts == number - 1


def _parse_shard(text: str) -> tuple[int, int]:
    """Parse the value of `--shard`: the number of a part from 1, and the number of parts."""
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part such as 2/5")
    return int(number), int(parts)


def _choose_targets(arguments: Arguments) -> list[tuple[Path, Path]]:
    """Return (notebook, output file) for each notebook that is not an output of another one.

    Raises UsageError for a missing path, for notebooks that would share an output file, and for an
    output that cannot be a file.
    """
    paths = existing_files(arguments.notebooks)
    if arguments.inplace:
        return [(p, p) for p in paths]
    output = Path(arguments.output or "")
    if not arguments.output:
        targets = [(p, p.with_name(p.stem.removesuffix(".run") + COPY_SUFFIX)) for p in paths]
        # a copy that an earlier run wrote beside its notebook is not executed itself
        copies = {target.resolve() for p, target in targets if p.resolve() != target.resolve()}
        targets = [(p, target) for p, target in targets if p.resolve() not in copies]
    elif os.path.isdir(output):
        if len({p.name for p in paths}) < len({p.resolve() for p in paths}):
            raise UsageError(f"Two of the notebooks have one name, and {output} has room for one.")
        targets = [(p, output / p.name) for p in paths]
    elif len(paths) > 1:
        raise UsageError(f"-o {output} is not a folder; several notebooks need one.")
    elif not os.path.isdir(output.parent):
        raise UsageError(f"There is no folder {output.parent} to write to.")
    else:
        targets = [(paths[0], output)]
    for _, target in targets:
        write_checked(partial(_check_target, target), target)
    return targets


def _read_bytes(path: Path) -> bytes | None:
    """Return the bytes of a file; None if it cannot be read."""
    with suppress(OSError):
        return path.read_bytes()
    return None


def _check_target(path: Path) -> None:
    """Raise OSError if no file can be at `path`, before a notebook takes its time."""
    with suppress(FileNotFoundError):
        path.stat()
    if path.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))


def _make_relay_factory(arguments: Arguments) -> Callable[[], AbstractContextManager[Any]]:
    """Return a function that makes the relay of a notebook's events (`nullcontext`: no --stream).

    Raises UsageError for options that exclude each other.
    """
    if not arguments.stream:
        return nullcontext
    from ..runner import Relay

    if arguments.json:
        raise UsageError("--stream and --json both write to stdout. Choose one.")
    if arguments.jobs > 1 and not Relay.allows_overlap(arguments.stream):
        advice = "--stream takes one notebook at a time, without --jobs."
        raise UsageError(f"In {arguments.stream} runs cannot overlap: {advice}")
    lock = threading.Lock()
    return lambda: Relay(arguments.stream, stream_json, lock)


def _make_report(path: Path, target: Path, outcome: Any) -> dict[str, Any]:
    """Return the result of an executed notebook, as `--json` prints it."""
    runs = [
        {"cell": number, **{k: v for k, v in numbers.items() if k != "version"}}
        for number, numbers in outcome.runs
    ]
    return {
        "notebook": str(path),
        "output": str(target),
        "ok": not outcome.failure,
        **({"failure": outcome.failure} if outcome.failure else {}),
        "runs": runs,
    }
