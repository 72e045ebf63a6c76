"""The options of the command line, one function per command.

Why apart from `cli`: what a command accepts is read more often than how it is done, and help texts are long.
Rules: nothing of ours is imported; options of the same name mean the same everywhere.
"""

from __future__ import annotations

import argparse


def run_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `run`."""
    sub.add_argument("notebooks", nargs="+", metavar="NOTEBOOK")
    sub.add_argument("-p", "--parameter", action="append", default=[], metavar="NAME=VALUE", help="set a variable before the notebook runs")
    sub.add_argument("--live", action="store_true", help="call the models, whatever is recorded")
    sub.add_argument("--rerun", choices=("auto", "live", "replay"), default="", help="auto plays what has not changed (the default)")
    trust_option(sub)
    sub.add_argument("--model", default="", metavar="MODEL", help="use this model in every cell")
    kernel_options(sub)
    sub.add_argument("--stream", default="", metavar="CODEC", help="write the events of the runs to stdout as they happen, in this format")
    place = sub.add_mutually_exclusive_group()
    place.add_argument("-o", "--output", metavar="FILE", help="where to write (a folder for several notebooks)")
    place.add_argument("--inplace", action="store_true", help="write over the notebook itself")
    sub.add_argument("--json", action="store_true", help="print the results as JSON")


def kernel_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of commands that execute notebooks."""
    sub.add_argument("--timeout", type=_seconds, metavar="S", help="seconds a cell may take (default: no limit)")
    sub.add_argument("--kernel", default="", metavar="NAME", help="the kernel to use (default: the notebook's)")
    sub.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="how many notebooks run at the same time")


def test_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `test`."""
    sub.add_argument("notebooks", nargs="+", metavar="NOTEBOOK", help="files, folders or globs")
    trust_option(sub)
    kernel_options(sub)
    sub.add_argument("--json", action="store_true", help="print the results as JSON")


def trust_option(sub: argparse.ArgumentParser) -> None:
    """Add the options of commands that replay."""
    sub.add_argument("--trust-record", action="store_true", help="let code of records run again that you have not signed")


def file_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of commands that take files only."""
    sub.add_argument("notebooks", nargs="+", metavar="NOTEBOOK")


def strip_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `strip`."""
    sub.add_argument("notebooks", nargs="*", metavar="NOTEBOOK")


def events_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `events`."""
    sub.add_argument("notebooks", nargs="+", metavar="NOTEBOOK", help="files, folders or globs")
    sub.add_argument("--all", action="store_true", help="every recorded run, not only the newest of each cell")
    sub.add_argument("--columns", default="", metavar="COLUMNS", help="events, calls, turns, runs, or names with commas")
    sub.add_argument("--format", choices=("table", "csv", "json", "parquet"), help="how to write (default: by the ending of -o)")
    sub.add_argument("-o", "--output", metavar="FILE", help="where to write")
    sub.add_argument("--json", action="store_true", help="the events as they are, one JSON object a line")


def export_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `export`."""
    sub.add_argument("notebooks", nargs="+", metavar="NOTEBOOK", help="files, folders or globs")
    sub.add_argument("--run", default="", metavar="ID", help="one run, by the beginning of its id")
    sub.add_argument("--to", default="", metavar="FORM", help="markdown, html, text or a codec (default: by -o, else markdown)")
    sub.add_argument("-o", "--output", metavar="FILE", help="where to write")


def convert_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `convert`."""
    sub.add_argument("source", nargs="?", default="-", metavar="IN", help="the file to read (default: stdin)")
    sub.add_argument("--from", dest="from_", default="", metavar="CODEC", help="the format of IN (default: told by its first lines)")
    sub.add_argument("--to", required=True, metavar="CODEC", help="the format to write, or one of its forms, as loom:export")
    sub.add_argument("-o", "--output", default="-", metavar="OUT", help="the file to write (default: stdout)")
    sub.add_argument("--framing", choices=("ndjson", "sse"), help="how objects are parted (default: as the format does)")
    sub.add_argument("--strict", action="store_true", help="stop at the first thing that cannot be carried")


def diff_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `diff`."""
    sub.add_argument("notebooks", nargs="+", metavar="NOTEBOOK", help="one or two notebooks, or files of events")


def verify_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `verify`."""
    sub.add_argument("notebooks", nargs="+", metavar="NOTEBOOK", help="files, folders or globs")
    sub.add_argument("--signed", action="store_true", help="a record that you have not signed is a problem")
    sub.add_argument("--json", action="store_true", help="print the results as JSON")


def git_setup_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `git-setup`."""
    sub.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help="a folder of the repository (default: this one)")
    sub.add_argument("--strip", action="store_true", help="also keep records out of what is committed")


def git_text_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `git-text`."""
    sub.add_argument("notebook", metavar="NOTEBOOK")


def git_merge_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `git-merge`."""
    for name in ("base", "ours", "theirs"):
        sub.add_argument(name, metavar=name.upper())


def _seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError("it must be more than 0")
    return value
