"""What a test needs and the machine lacks."""

import importlib
import importlib.util
import os
from typing import Any, NoReturn

import pytest


def lacking(reason: str) -> NoReturn:
    """Skip the test; with CI=true, where everything must be there, fail it."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    raise AssertionError


def needed(package: str) -> Any:
    """Return an optional package; `lacking` if it is not installed."""
    try:
        return importlib.import_module(package)
    except ImportError:
        lacking(f"{package} is not installed")


def needed_in_kernel(package: str) -> None:
    """Do as `needed` without importing the package here: some ask hosts when they are imported."""
    if importlib.util.find_spec(package) is None:
        lacking(f"{package} is not installed")
