"""The hooks that wrap a kernel's own: which handler stands around which request, and what becomes
of a press there.
"""

import signal
import threading

import pytest
from helpers.shells import press

from agent_nb.notebook.cell import kernel_interrupts


class Kernel:
    """A kernel with ipykernel's hooks."""

    def __init__(self, code="1"):
        self.said, self.aborted, self.code = [], 0, code

    def get_parent(self):
        return {"header": {"msg_type": "execute_request"}, "content": {"code": self.code}}

    def pre_handler_hook(self):
        self.saved = signal.signal(signal.SIGINT, signal.default_int_handler)

    def post_handler_hook(self):
        signal.signal(signal.SIGINT, self.saved)

    def _abort_queues(self):
        self.aborted += 1


@pytest.fixture(autouse=True)
def idle():
    """The handler of an idle kernel, put back at the end."""
    old = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, old)


@pytest.fixture
def kernel(shell):
    shell.kernel = Kernel()
    kernel_interrupts.install_interrupts(shell)
    yield shell.kernel
    kernel_interrupts.uninstall_interrupts(shell)
    del shell.kernel


@pytest.mark.parametrize("code", ["1", "time.sleep(1)", "%%timeit\n1", "x = 'agent'"])
def test_a_plain_cell_has_pythons_own_handler(kernel, code):
    kernel.code = code
    kernel.pre_handler_hook()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    kernel.post_handler_hook()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_cell_that_awaits_nothing_of_ours_is_interrupted_as_by_python(kernel):
    kernel.code = "await something()"
    kernel.pre_handler_hook()
    with pytest.raises(KeyboardInterrupt):
        press()
    kernel.post_handler_hook()
    assert (signal.getsignal(signal.SIGINT), kernel.aborted) == (signal.SIG_IGN, 0)


def test_a_press_before_an_agent_cell_is_heard_a_later_one_stops_the_queue(kernel, shell):
    kernel.code = "%%agent\ngo"
    kernel.pre_handler_hook()
    press()
    with kernel_interrupts.cell_interrupts(shell) as interrupts:
        assert interrupts.presses == 1
    press()
    kernel.post_handler_hook()
    assert (signal.getsignal(signal.SIGINT), kernel.aborted, interrupts.presses) == (
        signal.SIG_IGN,
        1,
        1,
    )


def test_an_agent_cell_that_was_not_pressed_stops_nothing(kernel, shell):
    kernel.code = "%%agent\ngo"
    kernel.pre_handler_hook()
    with kernel_interrupts.cell_interrupts(shell) as interrupts:
        pass
    kernel.post_handler_hook()
    assert (kernel.aborted, interrupts.presses) == (0, 0)


def test_an_agent_cell_inside_another_leaves_the_others_handler_alone(kernel, shell):
    kernel.code = "%%agent\ngo"
    kernel.pre_handler_hook()
    with kernel_interrupts.cell_interrupts(shell) as outer:
        with kernel_interrupts.cell_interrupts(shell):
            pass
        press()
        assert outer.presses == 1
    kernel.post_handler_hook()


def test_a_kernel_that_cannot_abort_its_queue_only_swallows(kernel, shell):
    kernel.code, kernel._abort_queues = "%%agent\ngo", None
    kernel.pre_handler_hook()
    with kernel_interrupts.cell_interrupts(shell):
        pass
    press()
    kernel.post_handler_hook()


def test_a_request_of_another_thread_changes_nothing(kernel):
    kernel.code = "%%agent\ngo"
    kernel.pre_handler_hook()
    before, faults = signal.getsignal(signal.SIGINT), []

    def subshell():
        for hook in (kernel.pre_handler_hook, kernel.post_handler_hook):
            try:
                hook()
            except ValueError as fault:  # signals are the main thread's
                faults.append(fault)

    thread = threading.Thread(target=subshell)
    thread.start()
    thread.join()
    assert (signal.getsignal(signal.SIGINT), len(faults)) == (before, 2)
    kernel.post_handler_hook()


def test_hooks_that_somebody_has_wrapped_again_stay_theirs(kernel, shell):
    ours = kernel.pre_handler_hook
    kernel.pre_handler_hook = theirs = lambda: ours()  # noqa: PLW0108
    kernel_interrupts.uninstall_interrupts(shell)
    assert kernel.pre_handler_hook is theirs


def test_hooks_that_a_kernel_object_has_of_its_own_are_put_back(shell):
    shell.kernel = Kernel()
    shell.kernel.pre_handler_hook = own = lambda: None
    kernel_interrupts.install_interrupts(shell)
    kernel_interrupts.install_interrupts(shell)
    kernel_interrupts.uninstall_interrupts(shell)
    assert shell.kernel.pre_handler_hook is own
    assert "post_handler_hook" not in vars(shell.kernel)
    del shell.kernel


def test_a_kernel_without_hooks_is_left_alone(shell):
    shell.kernel = object()
    kernel_interrupts.install_interrupts(shell)
    assert kernel_interrupts.find_hooks(shell) is None
    with kernel_interrupts.cell_interrupts(shell) as interrupts:
        press()
    assert interrupts.stopped
    del shell.kernel
