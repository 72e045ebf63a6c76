"""The facts about itself and its surroundings that Claude Code (`claude -p`) puts in each request.

Why: with the same prompt its requests differ in every process, month, folder and commit. The ids of
the device and the account are secrets: they are sent on and never stored.

Rule: the masks apply only to requests that carry a session of the program, so that other prompts
stay whole. Its version is not masked: another version sends other texts and tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ..wire import as_dict, encode_canonical

# keeps the program from asking other servers: their answers change its tools, a test refuses them
QUIET = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}

_DEVICE, _SESSION = "device_id", "session_id"
# the masks search JSON, in which a line ends with the two characters `\n`; what they find:
#     \n - Primary working directory: /home/ann/lab\n - Platform: linux\n - Shell: bash\n
#     The current month is November 2026 … file-based memory at `/home/ann/.claude/memory/`
#     This is the git status at the start of the conversation. …\n M a.py\n</system-reminder>
_REST_OF_LINE = r'(?:[^"\\]|\\[^n])*'
_REST_OF_STATUS = r'(?:(?!Claude Code attached|</system-reminder>)(?:[^"\\]|\\.))*'
_MASKS = (
    (rf"\\n - (?:Platform|Shell|OS Version): {_REST_OF_LINE}", "…system"),
    (r"The current month is [A-Z][a-z]+ \d{4}", "…month"),
    (r"file-based memory at `[^`\"]*`", "…memory"),
    (rf"This is the git status at the start of the conversation\.{_REST_OF_STATUS}", "…git"),
)
_find_folder = re.compile(r'Primary working directory: ((?:[^"\\]|\\\\)+)').search
_find_version = re.compile(r"\bcc_version=(\d+\.\d+\.\d+)").search
_match_older_user = re.compile(  # of a version whose ids are no JSON
    r"user_(?P<device_id>.+?)_account_(?P<account_uuid>.*?)_session_(?P<session_id>[\w-]+)"
).fullmatch

Mask = tuple[str, str]  # a pattern, and the text that replaces its matches


def list_ids(body: Any) -> Iterator[tuple[str, str]]:
    """Yield the ids of device and account that a request carries, by name."""
    for name, text in _read_user(body).items():
        if name != _SESSION:
            yield name, text


def list_masks(body: Any) -> list[Mask]:
    """Return the masks for a request's canonical text, [] for a request of another program."""
    session = _read_user(body).get(_SESSION)
    if not session:
        return []
    user = as_dict(as_dict(body).get("metadata"))["user_id"]
    masks = [(re.escape(encode_canonical(user)[1:-1]), "…user"), (re.escape(session), "…session")]
    match = _find_folder(encode_canonical(body))
    folder = match[1] if match else ""  # the working folder, with the escapes of JSON
    if len(folder) > 1:  # `/` would mask every path
        # the name of the folder in which the program keeps the sessions of this working folder
        name = re.sub("[^a-zA-Z0-9]", "-", json.loads(f'"{folder}"'))
        masks += [
            (rf"{re.escape(folder)}(?![\w-])", "…folder"),
            (rf"(?<=[/\\]){re.escape(name)}(?=[/\\])", "…folder"),
        ]
    return [*masks, *_MASKS]


def read_version(body: Any) -> str:
    """Return the program's version, "" for a request of another program."""
    version = _find_version(encode_canonical(as_dict(body).get("system")))
    return version[1] if version and _read_user(body) else ""


def drop_reminders(message: Any) -> Any:
    """Return a message without the program's reminders; one of reminders alone stays as it is."""
    if not isinstance(message, dict) or not isinstance(parts := message.get("content"), list):
        return message
    left = [p for p in parts if not str(as_dict(p).get("text")).startswith("<system-reminder>")]
    return {**message, "content": left or parts}


def _read_user(body: Any) -> dict[str, str]:
    """Return the ids in a request's `metadata.user_id`, {} for a request of another program."""
    user = as_dict(as_dict(body).get("metadata")).get("user_id")
    if not isinstance(user, str):
        return {}
    if older := _match_older_user(user):
        return older.groupdict()
    try:
        ids = as_dict(json.loads(user))
    except (ValueError, RecursionError):
        return {}
    texts = {name: text for name, text in ids.items() if isinstance(text, str) and text}
    return texts if _DEVICE in texts and _SESSION in texts else {}
