"""Recorded runs for the tests of the record."""

from __future__ import annotations

import pytest
from helpers.sample_runs import MakeLog, make_log

from agent_nb.events.log import EventLog


@pytest.fixture
def new_log() -> MakeLog:
    """Return the maker of logs."""
    return make_log


@pytest.fixture
def log() -> EventLog:
    """Return one run of two turns."""
    return make_log()
