"""The tape: model calls of any library, recorded as runs and played again.

Read `exchange` first: one request and its answer.
- Live: `relay` stands between a library and its provider, with `framing` for HTTP/1.1, `headers`
  for the headers that pass, and `decisions` for what becomes of a request. `live_exchange` is an
  exchange that goes on, `spending` its budget, `prices` what its tokens cost.
- Recorded: `redaction` removes secrets, `run_log` makes an exchange a run (`call_journal`: while it
  goes on). `packed` is its form in a record; `conversations`, `columns`, `references` shorten it.
- Replayed: `matching` finds the recorded answer to a request, `masks` hides what differs by chance,
  `misses` explains why there is none, `answers` shows one to the user.
- Calls that pass the tape by: `host_watch` reports each `contact` with a host; the `environment`
  leads child processes to a `tunnel`.
`notebook.cell.taping` knows which cell a call belongs to. Notebooks import `taped_url` alone.

Order of imports, lowest level first: claude_code, exchange, headers, providers, references, tunnel
< columns, contact, conversations, environment, framing, live_exchange, masks, prices
< host_watch, misses, packed, redaction, run_log, spending
< answers, call_journal, decisions, matching
< relay
< taped_url
"""

from typing import TYPE_CHECKING

from ..host.door import open_door
from .taped_url import url as url

if TYPE_CHECKING:
    from .answers import read_answers as read_answers
    from .call_journal import CallJournal as CallJournal
    from .decisions import Live as Live
    from .exchange import Exchange as Exchange
    from .exchange import Refusal as Refusal
    from .exchange import Request as Request
    from .exchange import Response as Response
    from .host_watch import HostWatch as HostWatch
    from .live_exchange import Sent as Sent
    from .masks import TapeMasks as TapeMasks
    from .matching import Recording as Recording
    from .matching import TapeIndex as TapeIndex
    from .packed import ExchangePacker as ExchangePacker
    from .providers import PROVIDERS as PROVIDERS
    from .redaction import redact_exchange as redact_exchange
    from .relay import Relay as Relay
    from .run_log import make_logs as make_logs

# file of the room -> the names that it defines
_NAMES = {
    "answers": "read_answers",
    "call_journal": "CallJournal",
    "decisions": "Live",
    "exchange": "Exchange Refusal Request Response",
    "host_watch": "HostWatch",
    "live_exchange": "Sent",
    "masks": "TapeMasks",
    "matching": "Recording TapeIndex",
    "packed": "ExchangePacker",
    "providers": "PROVIDERS",
    "redaction": "redact_exchange",
    "relay": "Relay",
    "run_log": "make_logs",
}

__getattr__, __dir__ = open_door(__name__, _NAMES)
