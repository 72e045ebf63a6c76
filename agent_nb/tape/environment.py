"""The environment variables with which a test keeps child processes and libraries from hosts.

Why: a child process has none of the hooks of `host_watch`, and a request that a library makes by
itself, such as an upload of traces, would be refused and fail whichever cell runs at that time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import suppress
from urllib.request import getproxies_environment

from .tunnel import Tunnel

_HERE = ("127.0.0.1", "localhost", "::1")  # hosts that are asked without a proxy
# variables that keep libraries from requests of their own
_QUIETING = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # LiteLLM fetches a list of prices when it is imported
    "OPENAI_AGENTS_DISABLE_TRACING": "true",  # the Agents SDK uploads traces, some seconds later
    "LANGSMITH_TRACING_V2": "false",  # so does LangChain; read before the names that users set
}


def quiet_libraries() -> None:
    """Keep libraries from asking hosts by themselves; a variable that is set stays as it is."""
    for name, value in _QUIETING.items():
        os.environ.setdefault(name, value)


def lead_children(refuse_target: Callable[[str], str]) -> None:
    """Lead child processes through a tunnel; for `refuse_target` see `Tunnel`.

    `putenv` leaves `os.environ` unchanged, so the tunnel serves only child processes that are
    started without an environment of their own. If the user has a proxy, nothing is set: the
    tunnel would have to log in there as each program does.
    """
    if getproxies_environment().keys() & {"http", "https", "all"}:
        return
    with suppress(OSError):  # if no tunnel can start, child processes ask hosts unseen
        proxy = Tunnel(refuse_target).start()
        direct = ",".join([*_HERE, *filter(None, [os.environ.get("no_proxy")])])
        values = {"http_proxy": proxy, "https_proxy": proxy, "no_proxy": direct}
        for name, value in _add_upper_case(values).items():
            os.putenv(name, value)


def lead_to_proxy(proxy: str, allowed_hosts: Collection[str]) -> None:
    """Lead this process and its children to a proxy, except to allowed hosts."""
    values = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), proxy)
    values["no_proxy"] = ",".join([*_HERE, *sorted(allowed_hosts)])
    os.environ.update(_add_upper_case(values))


def _add_upper_case(values: dict[str, str]) -> dict[str, str]:
    """Return variables under their names in upper case, too: some programs read only those."""
    return values | {name.upper(): value for name, value in values.items()}
