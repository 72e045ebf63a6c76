"""How the tests of the dialects read a text and compare what came of it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Any

from helpers.paths import DATA

from agent_nb.agent.parse import with_thought_tags
from agent_nb.dialects.thinking import thinking
from agent_nb.host import plugins
from agent_nb.models import parts as p

VECTORS = DATA / "wire.jsonl"
READ_BY = {
    "cogency_xml": "xml",
    "cogency_sect": "section",
    "looopy_thought": "thinking",
    "loom_think": "thinking",
}
LEADING = ("leading+native", "leading+xml", "leading+section")
TEXT_DIALECTS = ("xml", "section", "thinking", "native")


def named(name: str) -> Any:
    """Return a dialect by name; `thinking+xml` is `xml` with thought tags anywhere, `leading+xml`
    as runs wrap it.
    """
    outer, _, inner = name.partition("+")
    if not inner:
        return plugins.load_plugin("dialects", outer)
    found = plugins.load_plugin("dialects", inner)
    return with_thought_tags(found) if outer == "leading" else thinking(found)


def read_parts(dialect: str, chunks: Iterable[str]) -> list[p.Part]:
    """Read a turn, stopping as the loop does, and return its parts with adjacent deltas of one
    block joined.
    """
    parser = named(dialect).parser()
    out: list[p.Part] = []
    for chunk in chunks:
        out += parser.feed(chunk)
        if parser.stopped:
            break
    return merged([*out, *parser.close()])


def merged(parts: Iterable[p.Part]) -> list[p.Part]:
    """Join adjacent deltas, so that chunking does not show."""
    out: list[p.Part] = []
    for part in parts:
        last = out[-1] if out else None
        if isinstance(part, p.Text) and isinstance(last, p.Text):
            out[-1] = p.Text(last.text + part.text)
        elif isinstance(part, p.Thought) and isinstance(last, p.Thought):
            out[-1] = p.Thought(
                last.text + part.text, attributes=last.attributes or part.attributes
            )
        elif (
            isinstance(part, p.CallDelta)
            and isinstance(last, p.CallDelta)
            and (part.index, part.name) == (last.index, last.name)
        ):
            out[-1] = p.CallDelta(last.text + part.text, part.index, name=part.name)
        else:
            out.append(part)
    return out


def as_events(parts: Sequence[p.Part]) -> list[dict[str, Any]]:
    """Return parts as the vectors write events: one per block, neighbours of a kind joined, white
    space at the edges dropped.
    """
    out: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case p.Text(text):
                event: dict[str, Any] = {"type": "respond", "content": text}
            case p.Thought(text):
                event = {"type": "think", "content": text, **(part.attributes or {})}
            case p.Close(incomplete=True):
                out[-1]["incomplete"] = True
                continue
            case p.Call():
                event = {"type": "call", "name": part.name, "args": part.args}
            case p.Execute():
                event = {"type": "execute"}
            case p.End():
                event = {"type": "end"}
            case p.Fault():
                event = {"type": "error", "code": part.code}
            case _:
                continue
        out.append(event)
    return _tidy(out)


def _tidy(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = [e for e in events if "content" not in e or e["content"].strip()]
    out: list[dict[str, Any]] = []
    for event in kept:
        if out and event["type"] == out[-1]["type"] == "respond":
            out[-1]["content"] += event["content"]
        else:
            out.append(event)
    return [{**e, "content": e["content"].strip()} if "content" in e else e for e in out]


def chunkings(text: str, seed: int = 1) -> Iterable[list[str]]:
    """Yield a text whole, by the character, cut at every place, and cut at random.

    A text of more than 300 characters is cut at 300 places, one of more than 10,000 at 40.
    """
    yield [text]
    yield list(text)
    step = max(1, len(text) // (300 if len(text) <= 10_000 else 40))
    yield from ([text[:n], text[n:]] for n in range(1, len(text), step))
    rng = random.Random(seed)
    for _ in range(20):
        cuts = sorted(rng.randrange(len(text) + 1) for _ in range(rng.randrange(1, 9)))
        yield [text[a:b] for a, b in itertools.pairwise([0, *cuts, len(text)])]
