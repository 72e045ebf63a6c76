"""Claude Code for tests of extras, and a small program that sends requests like its own.

Why two: the program has 400 MB and comes from the npm registry; its texts are its makers'. The
stand-in has the same fields and the sentences that differ from machine to machine, around filler.
"""

import os
import sys
from pathlib import Path

import pytest
from helpers.lacking import lacking


def claude():
    """Return the command of the program that `AGENT_NB_TEST_CLAUDE` names; `lacking` without it.

    That of the PATH is not taken: it may be of any version, and set up for its user.
    """
    program = os.environ.get("AGENT_NB_TEST_CLAUDE", "")
    if program == "none":  # of `.ci/run`, which says so
        pytest.skip("Claude Code could not be installed")
    if not os.access(program, os.X_OK):
        lacking("AGENT_NB_TEST_CLAUDE names no program of @anthropic-ai/claude-code")
    return [program]


def stand_in():
    """Return the command of the stand-in."""
    return [sys.executable, str(Path(__file__).with_name("claude_stand_in.py"))]
