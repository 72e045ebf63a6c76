"""A child that is forked while another thread of the process is inside a `with` block."""

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any


def is_true_in_child(block: AbstractContextManager[Any], condition: Callable[[], bool]) -> bool:
    """Return whether a condition is true in such a child."""
    entered, forked = threading.Event(), threading.Event()

    def enter() -> None:
        with block:
            entered.set()
            forked.wait(20)

    thread = threading.Thread(target=enter)
    thread.start()
    assert entered.wait(20)
    child = os.fork()
    if not child:
        try:
            os._exit(0 if condition() else 1)
        finally:
            os._exit(2)
    forked.set()
    thread.join()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
