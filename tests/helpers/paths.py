"""Where things are: this checkout, the tests' data, the examples, and the streams beside it."""

import os
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
DATA = CHECKOUT / "tests" / "data"
EXAMPLES = CHECKOUT / "examples"
SHARED = CHECKOUT.parent / "shared"


def python_path() -> str:
    """Return the PYTHONPATH with which another process imports the package of this checkout."""
    return os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")]))
