"""Marks by fixture: a test that takes a fixture which starts a kernel or a server has its mark.

A plug-in of pytest; it also refuses a kernel to a test without the mark. Of a test with many cases
that are alike but slow, the mark `few` leaves some to the fast runs; the others are `long`.
"""

import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeVar

import pytest

F = TypeVar("F", bound=Callable[..., Any])


def starts(mark: str) -> Callable[[F], F]:
    """Have every test that takes this fixture, through others too, carry a mark.

    Stands below `@pytest.fixture`.
    """

    def remember(function: F) -> F:
        function.starts = mark  # type: ignore[attr-defined]
        return function

    return remember


def _started(item: pytest.Item) -> set[str]:
    """Return the marks that a test has by its fixtures."""
    found = getattr(item, "_fixtureinfo", None)
    definitions = found.name2fixturedefs.values() if found else ()
    return {getattr(d[-1].func, "starts", "") for d in definitions} - {""}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts a kernel or a server, and what needs the extra `lab` or another kernel.

    CI runs the latter again with all that installed.
    """
    for item in items:
        for mark in _started(item):
            item.add_marker(mark)
        kernel = getattr(item, "callspec", None) and item.callspec.params.get("kernel")  # type: ignore[attr-defined]
        if kernel and kernel != sys.executable:
            item.add_marker(pytest.mark.other_kernel)
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.property)
        if item.path.name == "test_server_hook.py":
            item.add_marker(pytest.mark.extra)
            item.add_marker(pytest.mark.slow)
    for item in _beyond_few(items):
        item.add_marker(pytest.mark.long)
    for item in items:
        if any(item.iter_markers("long")):
            item.add_marker(pytest.mark.slow)
    # the sort is stable: the tests of a module stay together
    items.sort(key=lambda item: not any(item.iter_markers("early")))


def _beyond_few(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the cases that a test with the mark `few` has beyond these."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if any(item.iter_markers("few")) and not any(item.iter_markers("other_kernel")):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        mark = next(cases[0].iter_markers("few"))
        chosen = mark.args
        if isinstance(chosen[0], int):
            kept = [n * len(cases) // chosen[0] for n in range(chosen[0])]
            yield from (case for n, case in enumerate(cases) if n not in kept)
        else:
            names = {case: case.nodeid.partition("[")[2].removesuffix("]") for case in cases}
            yield from (case for case in cases if names[case] not in chosen)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Refuse a kernel to a test without the mark, in its fixtures too."""
    start = subprocess.Popen.__init__

    def unless_a_kernel(self: Any, args: Any, *more: Any, **options: Any) -> None:
        if "ipykernel_launcher" in args:
            raise AssertionError("a test that starts a kernel has the mark `kernel`")
        start(self, args, *more, **options)

    with pytest.MonkeyPatch.context() as patch:
        if not any(item.iter_markers("kernel")) and not any(item.iter_markers("browser")):
            patch.setattr(subprocess.Popen, "__init__", unless_a_kernel)
        return (yield)
