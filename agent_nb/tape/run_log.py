"""An exchange as the log of a run: the prompt, what the model answered, tokens and cost.

Why: cards, frames, diffs and prices need only events, whatever library made the call. The exchange
must be redacted already, or `redact` must do it: the log is stored.

Rule: the result of a call is what a later request sends for its id (`find_results`); a call without
one is `cancelled`. Google's calls may have no id: name and arguments stand for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

import msgspec

from ..agent import AnswerReader
from ..events import Call, Delta, End, Error, Event, EventLog, Metric, Node, Result, RunStart, User
from ..models import make_decoder
from ..wire import as_dict, as_list, encode_canonical
from .claude_code import drop_reminders
from .conversations import MESSAGES
from .exchange import Exchange, Request
from .prices import Prices

_TEXTS = ("text", "content", "parts", "output")  # fields of a message that hold its text
_INSTRUCTING = ("system", "developer")  # roles of messages that instruct the model
_LONGEST_RAW = 2000  # characters of an answer that is an error
_CALL_IDS = ("tool_call_id", "tool_use_id", "call_id")  # fields of a result
_NODE: dict[str, Any] = {"name": "llm", "turn": 1, "origin": "imported"}
_FAILED = ("cut", "provider")  # codes of a stream that lacks its end or holds an error
UNANSWERED = "not answered in this notebook"


class EndedCall(Protocol):
    """A call whose exchange is redacted; `run` is the id of its run, "" for a new one."""

    exchange: Exchange
    run: str
    began: float  # epoch seconds, as `ended`
    ended: float


def make_logs(calls: Iterable[EndedCall]) -> list[EventLog]:
    """Return a log for each call, with the results that later ones send for the calls of tools."""
    ended_calls, prices = list(calls), Prices()
    results = find_results(as_dict(call.exchange.request.body.value) for call in ended_calls)
    make = partial(make_log, results=results, prices=prices)
    return [make(c.exchange, run=c.run, began=c.began, ended=c.ended) for c in ended_calls]


def make_log(
    exchange: Exchange,
    *,
    began: float,
    ended: float,
    results: Mapping[str, Any],
    prices: Prices,
    run: str = "",
) -> EventLog:
    """Return the log of a redacted exchange that `began` and `ended` at these epoch seconds.

    `results`: what calls returned, by their ids (`find_results`). `run`: "" for a new id.
    """
    times = [began]  # the last one is the time of the next events
    log = EventLog(run, clock=lambda: times[-1])
    begin_log(log, exchange.request)
    times.append(ended)
    response, reader = exchange.response, None
    decoder = make_decoder(exchange.request.path, response.status)
    if decoder is not None and response.status < 400 and response.body.kind in ("json", "stream"):
        reader = AnswerReader(decoder)
        events = [*reader.feed(b"".join(response.body.pieces())), *reader.close()]
        add_events(log, (e for e in events if not isinstance(e, Delta)), results)
    end_log(log, exchange, reader, prices)
    return log


def begin_log(
    log: EventLog, request: Request, redact: Callable[[Any], Any] = lambda value: value
) -> None:
    """Begin an empty log with a request; the events of its answer follow."""
    body = as_dict(request.body.value)
    provider = urlsplit(request.provider).netloc or request.provider
    log.append(RunStart(model=redact(f"{provider}/{request.model or request.path.strip('/')}")))
    log.append(User(content=redact(_read_prompt(body)), origin="user"))
    log.append(Node(phase="enter", **_NODE))


def add_events(
    log: EventLog, events: Iterable[Event], results: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Add what an answer says to its log, with the results of its calls."""
    for event in events:
        log.append(msgspec.structs.replace(event, origin="imported"))
        if isinstance(event, Call):
            log.append(_find_result(event, results))


def end_log(log: EventLog, exchange: Exchange, reader: AnswerReader | None, prices: Prices) -> None:
    """End the log of an exchange; `reader` has read its answer, None: it could not be read."""
    response = exchange.response
    failed = any(isinstance(e, Error) and e.code in _FAILED for e in log)
    status: Literal["ok", "error", "interrupted"] = "error" if failed else "ok"
    if not response.complete:
        status = "interrupted"
    if response.status >= 400:
        status = "error"
        raw = b"".join(response.body.pieces()).decode("utf-8", "replace")[:_LONGEST_RAW]
        message = f"The server answered {response.status}."
        log.append(Error(code="provider", message=message, raw=raw, origin="imported"))
    elif reader is not None:
        if not response.complete and not failed:
            message = "The answer broke off, or its reader went away."
            log.append(Error(code="cut", message=message, origin="imported"))
        add_events(log, _read_spending(exchange, reader, prices))
    result = "ok" if status == "ok" else f"error: {response.status}"
    data = {"status": response.status, "attempts": exchange.attempts}
    log.append(Node(phase="exit", result=result, data=data, **_NODE))
    log.append(End(status=status))


def _read_spending(exchange: Exchange, reader: AnswerReader, prices: Prices) -> Iterator[Event]:
    """Yield what an answer cost, if that is known."""
    if reader.turn.usage is not None:
        counts, estimated = reader.turn.count_usage(0, 0, complete=True)
        cost = prices.price_tokens(exchange.request, counts) if counts.cost is None else counts.cost
        step = msgspec.structs.replace(counts, cost=cost)
        yield Metric(step=step, total=step, estimated=estimated, turn=1)


def _find_result(call: Call, results: Mapping[str, Any]) -> Result:
    common: dict[str, Any] = {"call_id": call.call_id, "name": call.name, "turn": 1}
    key = _key_call(call.name, call.args) if call.synthetic else call.call_id
    if key in results:
        return Result(content=results[key], origin="imported", **common)
    return Result(status="cancelled", content=UNANSWERED, origin="imported", **common)


def _read_prompt(body: Mapping[str, Any]) -> str:
    """Return the text of a request's last message, if possible not an instruction; "" for none."""
    for name in MESSAGES:
        value = body.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value:
            messages = [m for m in value if as_dict(m).get("role") not in _INSTRUCTING]
            return _read_text(drop_reminders((messages or value)[-1]))
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
    result = as_dict(value.get("functionResponse")).get("response")
    return next(filter(None, texts), encode_canonical(result) if result else "")


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
        results |= _find_google_results(as_list(body.get("contents")))
    return results


def _find_google_results(contents: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield (id of the call, result) of the results that a request of Google's API sends.

    A result without an id answers the first call of its name that has no result yet.
    """
    calls: list[dict[str, Any]] = []
    for part in (as_dict(p) for c in contents for p in as_list(as_dict(c).get("parts"))):
        if call := as_dict(part.get("functionCall")):
            calls.append(call)
        if not (answer := as_dict(part.get("functionResponse"))):
            continue
        if answered_call := next((c for c in calls if c.get("name") == answer.get("name")), {}):
            calls.remove(answered_call)
        name = answer.get("id") or _key_call(answered_call.get("name"), answered_call.get("args"))
        yield str(name), answer.get("response")


def _key_call(name: Any, args: Any) -> str:
    """Return what stands for the id of a call that has none."""
    return encode_canonical([name, args or {}])
