"""What a test needs and the machine lacks."""

import os
from typing import NoReturn

import pytest


def lacking(reason: str) -> NoReturn:
    """Skip the test; with CI=true, where everything must be there, fail it."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    raise AssertionError
