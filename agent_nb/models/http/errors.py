"""Explains a provider's refusal in one sentence that also says what to do.

Providers report the same few faults (no key, no such model, too many requests, too long) in many
shapes. The user should read the reason and the remedy, not a body of JSON.

Rule: secrets, and whatever looks like a key or a half-masked key, are blotted out of each message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ...errors import ModelError
from ...wire import lenient_loads
from ..parts import Fault
from . import overflow
from .retry import LONGEST_WAIT, is_retryable_status, read_retry_after
from .values import to_json

MOST_QUOTED = 500  # characters of the server's own message
# a key that the server has masked itself, such as `sk-ab***yz`
_MASKED = re.compile(r"[\w-]{0,40}(?:\*{3,}|…)[\w-]{0,40}")
_KEY = re.compile(r"\b(?:(?:sk|gsk|pk|xai|pplx|csk|hf|r8|tgp_v1)[-_]|AIza)[\w-]{8,}")
# statuses with which servers refuse what they do not support
_UNSUPPORTED = (400, 404, 405, 415, 422, 500, 501)
# how servers word that they take no tools; a text, as is the next, because compiling takes 10 ms
# and few runs meet a refusal
_NO_TOOLS = (
    r"(?is)(tool|function)s?\b.{0,80}(not? support|unsupported|does ?n.t support|not (be )?(enabled|allowed|permitted|available)|requires?"
    r"|unknown|unrecogni[sz]ed|unexpected|extra)"
    r"|(not? support|unsupported|does ?n.t support|unknown|unrecogni[sz]ed|unexpected|extra|no endpoints).{0,80}\b(tool|function)s?\b"
)
# how servers word that a model, or its template, takes no pictures
_NO_IMAGES = (
    r"(?is)\bimages?\b|image_url|input_image|\bvision\b|multi-?modal|mmproj|\bpictures?\b"
    r"|(content|output)\b.{0,60}(must|should|expected) (be|to be)?\s?a?\s?(valid )?string"
    r"|unknown variant|expected (a )?string"
)
# fields of a reply that name what it refuses
_CAUSES = (
    r'"loc"\s*:\s*\[[^\[\]]*\]'
    r'|"(?:param|code|details?|reason|message|field)"\s*:\s*"(?:[^"\\]|\\.)*"'
)
# provider -> its name in messages
NAMES = {
    "openai": "OpenAI", "anthropic": "Anthropic", "groq": "Groq", "openrouter": "OpenRouter",
    "deepseek": "DeepSeek", "mistral": "Mistral", "xai": "xAI", "gemini": "Gemini",
    "cerebras": "Cerebras", "together": "Together", "fireworks": "Fireworks", "cohere": "Cohere",
    "huggingface": "Hugging Face", "perplexity": "Perplexity", "moonshot": "Moonshot",
    "ollama": "Ollama",
}  # fmt: skip
# provider whose label often stands for another server -> the domain of its own servers
_HOSTS = {"openai": "openai.com", "anthropic": "anthropic.com"}
# HTTP status -> what the server did, in words that follow its name
_VERDICTS = {
    401: "refused the key",
    402: "wants to be paid first",
    403: "refused access",
    404: "does not know this model or address",
    408: "gave up waiting",
    413: "finds the request too large",
    529: "is overloaded",
}


@dataclass(frozen=True, kw_only=True)
class Peer:
    """The server of a request, for the wording of faults.

    `provider`: the provider whose key is used, `url`: the base URL. `variable`: the environment
    variable to set for the key, "" if unknown. `has_key`: a key was sent. `withheld`: a sentence
    (without its full stop) about a key that the folder offers and the user has not allowed, or "".
    `secrets` are blotted out of every message.
    """

    provider: str = ""
    model: str = ""
    url: str = ""
    variable: str = ""
    has_key: bool = False
    withheld: str = ""
    secrets: tuple[str, ...] = field(default=(), repr=False)


def is_page(text: str) -> bool:
    """Return whether `text` begins like an HTML page."""
    beginning = text[:200].lstrip("\ufeff \t\r\n").lower()
    return beginning.startswith(("<!doctype", "<html", "<head", "<body", "<?xml"))


def blot_out_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """Blot out the given secrets, anything shaped like a provider's key, and half-masked keys."""
    for secret in secrets:
        if len(secret) >= 4:  # a shorter one would blot out ordinary text
            text = text.replace(secret, "***")
    return _MASKED.sub("***", _KEY.sub("***", text))


def error_object(value: Any) -> Any:
    """Return the error (object or text) in a decoded body or chunk, None if it reports none."""
    if isinstance(value, list) and len(value) == 1:  # Gemini
        value = value[0]
    if not isinstance(value, dict):
        return None
    if value.get("error"):
        return value["error"]
    if value.get("object") == "error" or value.get("type") == "error":
        return value
    # servers without an `error` object; an answer with choices may have such fields too
    if not value.get("choices") and ("detail" in value or "message" in value or "errors" in value):
        return value
    return None


def make_garbage_fault(data: str) -> Fault:
    """Return the fault for a frame that is not JSON."""
    return Fault(
        "garbage",
        f"The server sent a chunk that is not JSON. It begins with {blot_out_secrets(data[:80])!r}.",
        raw=blot_out_secrets(data[:500]),
    )


def find_message(value: Any, depth: int = 16) -> str:
    """Return the message of an error in any usual shape, at most `depth` objects and lists deep."""
    if isinstance(value, str):
        return value.strip()
    if not isinstance(value, dict | list) or not depth:
        return ""
    if isinstance(value, list):
        return "; ".join(filter(None, (find_message(each, depth - 1) for each in value)))
    for key in ("message", "error", "detail", "msg", "errors", "error_description", "title"):
        message = find_message(value.get(key), depth - 1)
        if message:
            return _with_origin(message, value)
    return to_json(value)[:MOST_QUOTED] if value else ""


def _with_origin(message: str, value: dict[str, Any]) -> str:
    """Add the upstream provider's message, which routers hide in `metadata.raw`."""
    metadata = value.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if not isinstance(raw, str) or not raw or raw in message:
        return message
    try:
        upstream = find_message(error_object(lenient_loads(raw))) or raw
    except ValueError:
        upstream = raw
    return f"{message}: {upstream[:MOST_QUOTED]}"


def find_body_message(body: bytes) -> str:
    """Return the message of an error body, in at most `MOST_QUOTED` characters."""
    text = body.decode("utf-8", "replace").strip()
    if is_page(text):
        return "the server answered with a web page; is the base URL right?"
    try:
        value = lenient_loads(text)
    except ValueError:
        return text[:MOST_QUOTED]
    return (find_message(error_object(value)) or find_message(value) or text)[:MOST_QUOTED]


def error_kind(value: Any) -> str:
    """Return the `type`, `code` and `n_ctx` of an error as one text, to recognise its cause."""
    value = error_object(value) if isinstance(value, dict) and "error" in value else value
    if not isinstance(value, dict):
        return ""
    return " ".join(f"{key}: {value[key]}" for key in ("type", "code", "n_ctx") if value.get(key))


def find_evidence(fault: ModelError) -> str:
    """Return the message of a fault, and the fields of its reply that name the cause."""
    # the rest of the reply may echo the request, which names all features
    return " ".join((str(fault), *re.findall(_CAUSES, fault.raw)))


def make_refusal(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    peer: Peer,
    *,
    tools: bool = False,
    images: bool = False,
    now: float | None = None,
) -> ModelError:
    """Make the error for an unsuccessful HTTP answer.

    `tools`: the request offered tools; `images`: it held pictures. `now`: seconds since the epoch,
    for a `Retry-After` that is a date.
    """
    reason = blot_out_secrets(find_body_message(body), peer.secrets)
    raw = body[:2000].decode("utf-8", "replace")
    evidence = reason  # by which the cause is recognised
    with suppress(ValueError):
        evidence += f" {error_kind(lenient_loads(body))}"
    code = _choose_code(status, evidence, tools=tools, images=images)
    quotation = f": {reason.rstrip('.')}" if reason else ""
    brief = blot_out_secrets(_describe_status(status, _name_server(peer)), peer.secrets)
    wait = read_retry_after(headers, raw, now)
    if wait is not None and wait > LONGEST_WAIT:
        remedy = f"It asks to wait {wait / 60:.0f} minutes."
    else:
        remedy = _choose_remedy(status, code, headers, peer)
    message = f"{brief}{quotation}. {remedy}"
    return ModelError(
        blot_out_secrets(message.strip(), peer.secrets),
        status=status,
        retryable=code == "provider" and _may_succeed_later(status, headers, reason),
        retry_after=wait,
        code=code,
        raw=blot_out_secrets(raw, peer.secrets),
        brief=brief,
        context=overflow.find_context_size(evidence) if code == overflow.CODE else 0,
    )


def _choose_code(status: int, evidence: str, *, tools: bool, images: bool) -> str:
    """Return the code of a refusal; `evidence`: the server's message and kind of error.

    `no_images`, `no_tools` and `context` name what another request must leave out or shorten. Any
    other refusal is `provider`.
    """
    if images and status in _UNSUPPORTED and re.search(_NO_IMAGES, evidence):
        return "no_images"
    if status in (400, 413, 422, 500) and overflow.is_too_long(evidence):
        return overflow.CODE
    if tools and status in _UNSUPPORTED and re.search(_NO_TOOLS, evidence):
        return "no_tools"
    return "provider"


def _may_succeed_later(status: int, headers: Mapping[str, str], reason: str) -> bool:
    """Return whether the same request may succeed later.

    The header `x-should-retry` decides, else the status. An account without credit never does.
    """
    if "insufficient_quota" in reason or "exceeded your current quota" in reason:
        return False
    advice = {"true": True, "false": False}.get(headers.get("x-should-retry", ""))
    return is_retryable_status(status) if advice is None else advice


def _describe_status(status: int, who: str) -> str:
    if status == 429:
        return f"Rate limit at {who} (429)"
    verdict = _VERDICTS.get(status, "failed" if status >= 500 else "refused the request")
    return f"{who} {verdict} ({status})"


def _name_server(peer: Peer) -> str:
    """Return the server's name for people.

    That is the name of the provider; or, if the URL of a provider in `_HOSTS` leads to another
    server, its host.
    """
    host = urlsplit(peer.url).netloc.rpartition("@")[2]
    if host and peer.provider in _HOSTS and not host.endswith(_HOSTS[peer.provider]):
        return host
    return NAMES.get(peer.provider, peer.provider) or "The server"


def advise_key(peer: Peer) -> str:
    """Return the advice on how to set a key, and why one that the folder offers is not used."""
    variable = f"Set {peer.variable} or use" if peer.variable else "Use"
    hint = f"{variable} `%agent key {peer.provider or 'PROVIDER'}`."
    return f"{hint} {peer.withheld}." if peer.withheld else hint


def _choose_remedy(status: int, code: str, headers: Mapping[str, str], peer: Peer) -> str:
    """Return one or two sentences of advice for the user, or ""."""
    if code in ("no_tools", "no_images"):
        return ""
    if code == overflow.CODE:
        return overflow.HINT
    if status in (401, 403):
        if status == 401 or not peer.has_key:
            return advise_key(peer)
        return "Does this key have access to the model?"
    if status == 404:
        return f"Check the model name {peer.model!r} and the base URL {peer.url}."
    if 300 <= status < 400:
        return f"It points to {headers.get('location', 'another address')!r}: set the base URL to that."
    return ""
