"""Shares the tests among the workers of pytest-xdist (`-n N --dist worksteal`).

A plug-in of pytest. Why: a module of browser tests starts a browser and opens a page, for up to
half a minute. Each worker begins with an equal part of the list of tests, and an idle one takes
from the end of another's part. So whatever stands at the end of a part is spread over the workers,
and a module of browser tests there would start again and again.

Rules
- The browser tests stand at the beginning of the parts of every second worker, each module in one
  part: not more browsers than that run at once.
- The other tests keep their order, and those with the mark `early` begin the first part. Without
  workers, all keep their order.
"""

import os
from collections.abc import Sequence

import pytest


@pytest.hookimpl(trylast=True)  # after `-m` and `-k` have chosen the tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests in the order of the workers' parts."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1:
        items[:] = order_for(workers, items)


def order_for(workers: int, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests in an order whose equal parts suit the workers."""
    modules: dict[object, list[pytest.Item]] = {}
    others: list[pytest.Item] = []
    for item in items:
        has_browser = any(item.iter_markers("browser"))
        (modules.setdefault(item.path, []) if has_browser else others).append(item)
    parts: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for module in modules.values():
        min(parts[workers // 2 :], key=len).extend(module)
    for number, part in enumerate(parts):
        left = len(others) + sum(map(len, parts[number:]))
        size = max(left // (workers - number) - len(part), 0)
        part.extend(others[:size])
        del others[:size]
    return [item for part in parts for item in part]
