"""What the tests of the tool room share: a report that keeps everything, and a way to run calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from helpers.tool_calls import MainThread, Record, run_calls

from agent_nb.tools.base import Decision, Outcome, Question
from agent_nb.tools.toolset import Toolset


@pytest.fixture
def run() -> Callable[..., tuple[list[Outcome], Record]]:
    """Run calls of tools to the end; every effect is allowed unless an approver is given."""
    return run_calls


@pytest.fixture
def outcome() -> Callable[..., Outcome]:
    """Call one tool with keyword arguments and return its outcome."""

    def call(tool: Any, _options: dict[str, Any] | None = None, /, **args: Any) -> Outcome:
        toolset = Toolset.resolve([tool])
        return run_calls(toolset, (toolset.names[0], args), **(_options or {}))[0][0]

    return call


@pytest.fixture
def record() -> type[Record]:
    return Record


@pytest.fixture
def host() -> MainThread:
    return MainThread()


@pytest.fixture
def asker() -> Callable[..., Any]:
    """Make an asker that gives the answers one after another and keeps the questions in
    `.questions`.
    """

    def make(*answers: Decision | Exception | None) -> Any:
        left = list(answers)

        async def ask(question: Question) -> Decision | None:
            ask.questions.append(question)  # type: ignore[attr-defined]
            await asyncio.sleep(0)
            answer = left.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        ask.questions = []  # type: ignore[attr-defined]
        return ask

    return make
