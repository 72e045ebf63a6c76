"""The models that answer requests: each file or folder with a `provider` is one provider (`base`).

The agent asks for an answer and need not know which API gives it. Read `base` first, then `parts`:
a request goes in, parts of an answer come out. `http` is what all providers behind HTTP share;
`choose` turns a name `provider/name` into a model. Other rooms choose a model, send it requests,
and ask for keys, prices and settings. They name a provider and never import one.

Order of imports, lowest level first: local_server, messages, offline, parts, picture_limits,
  prices, script_turn, settings, strict_schema
< base, config, script_file
< keys, tariff
< http
< chat, choose
< gemini_api, listing, messages_api, openai, responses, scripted
< anthropic, answer_decoder, local, ollama, openai_responses
"""

from typing import TYPE_CHECKING

from ..host.door import open_door

if TYPE_CHECKING:
    from .answer_decoder import make_decoder as make_decoder
    from .base import Decoder as Decoder
    from .base import Model as Model
    from .choose import check_model_name as check_model_name
    from .choose import check_provider as check_provider
    from .choose import choose_model as choose_model
    from .choose import resolve_all as resolve_all
    from .choose import split_names as split_names
    from .config import Config as Config
    from .http.client import Http as Http
    from .http.client import is_loopback as is_loopback
    from .http.limiter import Limiter as Limiter
    from .http.retry import Failures as Failures
    from .http.waits import watch_waits as watch_waits
    from .keys import Key as Key
    from .keys import collect_secrets as collect_secrets
    from .keys import hide_secret as hide_secret
    from .listing import list_known_models as list_known_models
    from .listing import list_models as list_models
    from .listing import list_providers as list_providers
    from .messages import Block as Block
    from .messages import CallBlock as CallBlock
    from .messages import ImageBlock as ImageBlock
    from .messages import Message as Message
    from .messages import OpaqueBlock as OpaqueBlock
    from .messages import OutputSchema as OutputSchema
    from .messages import Request as Request
    from .messages import ResultBlock as ResultBlock
    from .messages import TextBlock as TextBlock
    from .messages import ThoughtBlock as ThoughtBlock
    from .messages import ToolSpec as ToolSpec
    from .messages import text_message as text_message
    from .offline import is_script as is_script
    from .parts import Answer as Answer
    from .parts import Call as Call
    from .parts import CallDelta as CallDelta
    from .parts import Close as Close
    from .parts import End as End
    from .parts import Execute as Execute
    from .parts import Fault as Fault
    from .parts import Head as Head
    from .parts import Part as Part
    from .parts import Text as Text
    from .parts import Thought as Thought
    from .parts import Usage as Usage
    from .picture_limits import FittedPicture as FittedPicture
    from .prices import format_dollars as format_dollars
    from .strict_schema import recursive_names as recursive_names
    from .tariff import Tariff as Tariff

# file of the room -> the names that it defines
_NAMES = {
    "answer_decoder": "make_decoder",
    "base": "Decoder Model",
    "choose": "check_model_name check_provider choose_model resolve_all split_names",
    "config": "Config",
    "http.client": "Http is_loopback",
    "http.limiter": "Limiter",
    "http.retry": "Failures",
    "http.waits": "watch_waits",
    "keys": "Key collect_secrets hide_secret",
    "listing": "list_known_models list_models list_providers",
    "messages": (
        "Block CallBlock ImageBlock Message OpaqueBlock OutputSchema Request ResultBlock "
        "TextBlock ThoughtBlock ToolSpec text_message"
    ),
    "offline": "is_script",
    "parts": "Answer Call CallDelta Close End Execute Fault Head Part Text Thought Usage",
    "picture_limits": "FittedPicture",
    "prices": "format_dollars",
    "strict_schema": "recursive_names",
    "tariff": "Tariff",
}

__getattr__, __dir__ = open_door(__name__, _NAMES)
