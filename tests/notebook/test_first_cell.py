"""What the first agent cell of a kernel loads, and when."""

import subprocess
import sys
import time

import pytest

UNUSED = ("agent_nb.rows.map.stream", "agent_nb.rows.eval.", "agent_nb.codecs.")
OF_TOOLS = ("pydantic", "agent_nb.tools.python")
FIRST = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "agent_nb")
shell.run_cell("from agent_nb import Scripted\\nmodel = Scripted(['hello'])")
shell.run_cell("%%agent -m model OPTIONS\\nSay hello.")
assert shell.user_ns["_agent"].answer == "hello"
print("LOADED", *sys.modules)
"""
LOADED = (
    "import sys; print({'agent_nb.notebook.cell.run', 'agent_nb.tools.python'} <= {*sys.modules})"
)


@pytest.mark.slow
@pytest.mark.parametrize(("options", "unused"), [("", UNUSED), ("-t none", (*UNUSED, *OF_TOOLS))])
def test_first_cell_loads_only_what_a_plain_prompt_needs(tmp_path, options, unused):
    code = FIRST.replace("OPTIONS", options)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, text=True, capture_output=True, check=True
    )
    loaded = done.stdout.rpartition("LOADED")[2].split()
    assert "agent_nb.agent.loop" in loaded
    assert not [name for name in loaded if name.startswith(unused)]


def test_kernel_loads_the_agent_cell_while_the_user_writes_it(kernel_type, tmp_path):
    kernel = kernel_type(sys.executable, tmp_path)
    try:
        kernel.finish(kernel.send("%load_ext agent_nb"))
        end = time.monotonic() + 60
        while "True" not in kernel.finish(kernel.send(LOADED))[1]:
            assert time.monotonic() < end
            time.sleep(0.1)
    finally:
        kernel.close()
