"""Embeddings on a tape: long lists of numbers, kept small and read again to the last digit."""

import base64
import json
import random
import struct

import pytest

from agent_nb.record.packing import Home
from agent_nb.tape.exchange import Body, Exchange, Request, Response
from agent_nb.tape.packed import ExchangePacker, unpack_exchange
from agent_nb.tape.prices import Prices
from agent_nb.tape.run_log import make_log
from agent_nb.wire import dumps

LENGTH = 1536
FORMS = {  # how a server writes a vector -> the most bytes that a number costs
    "float": (list, 7.0),
    "base64": (lambda v: base64.b64encode(struct.pack(f"{LENGTH}f", *v)).decode(), 5.6),
}


@pytest.mark.parametrize("form", FORMS)
def test_embeddings_are_kept_packed_and_read_again(form):
    write, most = FORMS[form]
    source = random.Random(1)
    vectors = [[round(source.gauss(0, 0.03), 9) for _ in range(LENGTH)] for _ in range(4)]
    data = [
        {"object": "embedding", "index": n, "embedding": write(v)} for n, v in enumerate(vectors)
    ]
    answer = {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 4}}
    asked = {"model": "m", "input": ["a", "b", "c", "d"], "encoding_format": form}
    made = Exchange(
        request=Request(provider="openai", path="/embeddings", body=Body("json", asked)),
        response=Response(body=Body.read(json.dumps(answer).encode())),
    )
    log = make_log(made, began=1.0, ended=2.0, results={}, prices=Prices())
    packed = ExchangePacker(Home("/h")).pack(made, log)
    assert unpack_exchange(packed.value, packed.payloads, [], Home("/h")) == made
    assert len(dumps(packed.value)) / (4 * LENGTH) < most
