"""Where things are: this checkout, the tests' data, the examples, and the streams beside it."""

import os
from contextlib import suppress
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
DATA = CHECKOUT / "tests" / "data"
EXAMPLES = CHECKOUT / "examples"
SHARED = CHECKOUT.parent / "shared"


OPEN_FILES = Path("/proc/self/fd")


def open_files(folder: Path) -> list[str]:
    """Return the open files below a folder; those of other tests are closed at any time."""
    files = []
    for number in OPEN_FILES.iterdir():
        with suppress(OSError):
            files.append(os.readlink(number))
    return [name for name in files if name.startswith(str(folder))]


def python_path() -> str:
    """Return the PYTHONPATH with which another process imports the package of this checkout."""
    return os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")]))
