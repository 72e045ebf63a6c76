"""The tape: model calls of any library, recorded as runs and played again.

Read `exchange` first: one request and its answer. `packed` is how a record holds it, with the
messages of `conversations`, the chunks of `columns` and what `references` saves; `run_log` is the
exchange as a run, and `call_journal` that run while the call goes on. `relay` stands between a
library and its provider, `framing` is HTTP/1.1 on the library's side, `decisions` says what becomes
of a request, and `headers` which headers pass; `live_exchange` is an exchange as it goes.
`matching` finds the recorded answer to a request, with `masks` (`claude_code` has those of that
program); `misses` explains why there is none. `prices` says what tokens cost. Which cell a call
belongs to is known to `notebook.cell.taping`. `taped_url` has the one name that notebooks import:
`from agent_nb import tape`; `host_watch` sees each `contact` with a host that passes the tape by,
and the `environment` leads child processes to a `tunnel`.

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
