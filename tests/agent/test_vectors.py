"""The loop cases of the wire vectors, through `Agent`, in any chunking; and the single-turn vectors
through the public `parse`.

A batch's results are one event in the vectors and one per call here (every call has its own
result); they are compared merged.
"""

import json
import random
from itertools import groupby

import anyio
import pytest
from helpers.paths import DATA

from agent_nb import Agent, Scripted, parse, tool

ROWS = [json.loads(line) for line in (DATA / "wire.jsonl").read_text(encoding="utf-8").splitlines()]
LOOPS = [r for r in ROWS if r["system"] == "cogency_loop"]
SINGLE = [r for r in ROWS if r["system"] in ("cogency_xml", "cogency_sect")]
DIALECT = {"cogency_xml": "xml", "cogency_sect": "section"}
TEXTS = ("think", "respond")


@tool
def echo(x: str) -> str:
    """Say it again."""
    return x


def whole(chunks):
    return ["".join(chunks)]


def by_character(chunks):
    return list("".join(chunks))


def at_random(chunks):
    text, rng, out = "".join(chunks), random.Random(7), []
    while text:
        n = rng.randint(1, 9)
        out.append(text[:n])
        text = text[n:]
    return out


CUTS = [list, whole, by_character, at_random]


def read(event):
    kept = {
        "respond": ("content",),
        "think": ("content",),
        "call": ("name", "args"),
        "error": ("code",),
        "user": (),
    }
    return {"type": event.type} | {k: getattr(event, k) for k in kept.get(event.type, ())}


def merged(events):
    """Merge neighbouring texts of a kind, strip them, drop blanks; results of a batch
    count as one.
    """
    out = []
    for kind, group in groupby(events, key=lambda e: e["type"]):
        items = list(group)
        if kind in TEXTS:
            text = "".join(i["content"] for i in items).strip()
            out += [{"type": kind, "content": text}] if text else []
        elif kind == "result":
            out.append({"type": "result"})
        else:
            out += items
    return out


def expected(row):
    wanted = [
        {
            k: v
            for k, v in e.items()
            if k != "incomplete" and (k, e["type"]) != ("content", "result")
        }
        for e in row["expected_events"]
    ]
    return merged(wanted)


def incomplete(row):
    """Return whether the last text of a vector is cut off, as a list ([]: it has no text)."""
    return [bool(e.get("incomplete")) for e in row["expected_events"] if e["type"] in TEXTS][-1:]


@pytest.mark.parametrize("cut", CUTS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("row", LOOPS, ids=lambda r: r["name"])
def test_loop_vector(row, cut):
    async def main():
        agent = Agent(
            Scripted([{"chunks": cut(t)} for t in row["turns"]]), [echo], dialect="xml", secrets={}
        )
        return await agent("go")

    done = anyio.run(main)
    shown = [
        read(e)
        for e in done.log
        if e.type in ("user", "think", "call", "execute", "result", "respond", "error", "end")
    ]
    assert merged(shown) == expected(row)
    assert len(done.log.of("result")) == len(done.log.of("call"))


@pytest.mark.few(61)
@pytest.mark.parametrize("cut", CUTS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("row", SINGLE, ids=lambda r: f"{r['system']}-{r['name']}")
def test_single_turn_vector_through_parse(row, cut):
    found = parse(cut(row["chunks"]), DIALECT[row["system"]])
    assert merged([read(e) for e in found]) == expected(row)
    assert [bool(getattr(e, "incomplete", False)) for e in found if e.type in TEXTS][
        -1:
    ] == incomplete(row)
    assert not {e.type for e in found} & set(row.get("must_not", ()))
