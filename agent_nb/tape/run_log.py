"""An exchange as the log of a run: the prompt, what the model answered, tokens and cost.

Why: cards, frames, diffs and prices need only events, whatever library made the call.

Rules
- Every event is `origin: imported`, apart from the prompt.
- The result of a call is what a later request sends for its id (`find_results`); a call without one
  is `cancelled`.
- The log names no key and no address: it is made of a redacted exchange.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ..agent import read_answer
from ..events import Call, End, Error, Event, EventLog, Metric, Node, Result, RunStart, User
from ..models import make_decoder
from ..wire import as_dict, as_list
from .conversations import MESSAGES
from .exchange import Exchange
from .spending import price_tokens

_TEXTS = ("text", "content", "parts", "output")  # fields of a message that hold its text
_CALL_IDS = ("tool_call_id", "tool_use_id", "call_id")  # fields of a result
UNANSWERED = "not answered in this notebook"


def make_log(
    exchange: Exchange,
    *,
    began: float,
    ended: float,
    results: Mapping[str, Any],
) -> EventLog:
    """Return the log of a redacted exchange. `results`: what calls returned, by their ids."""
    times = [began]
    log = EventLog(clock=lambda: times[-1])
    asked = as_dict(exchange.request.body.value)
    provider = urlsplit(exchange.request.provider).netloc or exchange.request.provider
    model = f"{provider}/{asked.get('model') or exchange.request.path.strip('/')}"
    log.append(RunStart(model=model))
    log.append(User(content=_read_prompt(asked), origin="user"))
    node = {"name": "llm", "turn": 1, "origin": "imported"}
    log.append(Node(phase="enter", **node))  # type: ignore[arg-type]  # these are fields of a node
    times.append(ended)
    for event in _read_events(exchange, str(asked.get("model", ""))):
        log.append(msgspec.structs.replace(event, origin="imported"))
        if isinstance(event, Call):
            log.append(_find_result(event, results))
    status = exchange.response.status
    fine = status < 400 and exchange.response.complete
    data = {"status": status, "attempts": exchange.attempts}
    log.append(Node(phase="exit", result="ok" if fine else f"error: {status}", data=data, **node))  # type: ignore[arg-type]
    log.append(End(status="ok" if fine else "error" if status >= 400 else "interrupted"))
    return log


def _read_events(exchange: Exchange, model: str) -> Iterator[Event]:
    """Yield what the answer says, and what it cost."""
    response = exchange.response
    if response.status >= 400:
        text = b"".join(response.body.pieces()).decode("utf-8", "replace")
        yield Error(
            code="provider", message=f"The server answered {response.status}.", raw=text[:2000]
        )
        return
    decoder = make_decoder(exchange.request.path, response.status)
    if decoder is None or response.body.kind not in ("json", "stream"):
        return
    events, turn = read_answer(response.body.pieces(), decoder)
    yield from events
    if not response.complete:
        yield Error(code="cut", message="The answer broke off, or its reader went away.")
    if turn.usage is not None:
        counts, estimated = turn.spent(0, 0, whole=True)
        cost = (
            counts.cost
            if counts.cost is not None
            else price_tokens(exchange.request.provider, model, counts)
        )
        step = msgspec.structs.replace(counts, cost=cost)
        yield Metric(step=step, total=step, estimated=estimated, turn=1)


def _find_result(call: Call, results: Mapping[str, Any]) -> Result:
    common: dict[str, Any] = {"call_id": call.call_id, "name": call.name, "turn": 1}
    if call.call_id in results:
        return Result(content=results[call.call_id], origin="imported", **common)
    return Result(status="cancelled", content=UNANSWERED, origin="imported", **common)


def _read_prompt(body: Mapping[str, Any]) -> str:
    """Return the text of the last message of a request."""
    for name in MESSAGES:
        value = body.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value:
            return _read_text(value[-1])
    return ""


def _read_text(value: Any, depth: int = 6) -> str:
    """Return the texts of a message, however its API nests them."""
    if isinstance(value, str):
        return value
    if not depth or not isinstance(value, dict | list):
        return ""
    if isinstance(value, list):
        return "\n".join(filter(None, (_read_text(item, depth - 1) for item in value)))
    texts = (_read_text(value.get(name), depth - 1) for name in _TEXTS)
    return next(filter(None, texts), "")


def find_results(requests: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what requests send as the results of calls, by the ids of the calls."""
    results: dict[str, Any] = {}
    for body in requests:
        for message in (as_dict(m) for name in MESSAGES for m in as_list(body.get(name))):
            for part in (message, *map(as_dict, as_list(message.get("content")))):
                content = part.get("output", part.get("content"))
                for call in (part[key] for key in _CALL_IDS if isinstance(part.get(key), str)):
                    if content is not None:
                        results[call] = _read_text(content) or content
    return results
