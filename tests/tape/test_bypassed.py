"""A notebook that asks a host beside the tape."""

import json

import pytest
from helpers.notebooks import write
from tape.test_notebook import LIBRARY, TAPE, record

ASK = """\
import socket
for _ in range(2):
    try:
        socket.create_connection(("openrouter.invalid", 443), 1)
    except OSError as fault:
        print(fault)
"""


@pytest.mark.kernel
def test_a_host_that_is_asked_beside_the_tape_is_named_once(provider, tmp_path):
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY + "ask('hi')", ASK, ASK)
    outcome = record(path)
    cells = [
        "".join(o["text"] for o in c["outputs"] if o.get("name") == "stderr")
        for c in outcome.notebook["cells"]
    ]
    assert cells[0] == cells[1] == cells[3] == ""
    assert cells[2].count("line 4 asks openrouter.invalid beside the tape") == 1
    assert 'base_url=tape.url("https://openrouter.invalid/v1")' in cells[2]
    assert "Traceback" not in json.dumps(outcome.notebook)
