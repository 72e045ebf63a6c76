"""What an MCP server wrote to stderr holds no key, however the server wrote it."""

import pytest

from agent_nb.tools.mcp.stderr_tail import LONGEST_TAIL, StderrTail
from agent_nb.wire import Redaction

KEY = "quite-secret-value"


@pytest.mark.parametrize("begin", ["", "x" * 4 * LONGEST_TAIL])
@pytest.mark.parametrize("between", ["", "\x1b[31m"])
def test_a_key_in_two_writes_or_with_colours_inside_is_hidden(begin, between):
    tail = StderrTail(Redaction({"MY_KEY": KEY}))
    tail.pipe.write(f"{begin} the key: {KEY[:7]}")
    tail.pipe.flush()
    tail.pipe.write(f"{between}{KEY[7:]}, says é")
    tail.close_write_end()
    assert tail.text(10).endswith("the key: [redacted MY_KEY], says é")
