"""Where things are: this checkout, the tests' data, the examples, and the streams beside it."""

from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
DATA = CHECKOUT / "tests" / "data"
EXAMPLES = CHECKOUT / "examples"
SHARED = CHECKOUT.parent / "shared"
