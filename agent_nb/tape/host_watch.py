"""Reports the hosts that the code of a notebook asks without the tape; refuses them in a test.

Why: such a call is not recorded, and a test that asks a server proves nothing.

Rules
- Wrappers of `socket.getaddrinfo` and of the event loop's own see look-ups; `stop` removes them. An
  audit hook cannot be removed, and under asyncio does not see the caller's frame.
- A test adds an audit hook, for connections to bare addresses and for libraries with their own
  look-up. Connections to the addresses that an allowed host resolved to are allowed.
- This machine is never reported, nor is a request of this package outside a test.
- Child processes have no hook. In a test their variables lead to a proxy, which calls
  `refuse_target`: the relay where a tape is on, else a tunnel (`lead_children`).
- In a test, environment variables keep libraries from requests of their own, such as uploads of
  traces (`quiet_libraries`): a refusal would fail whichever cell runs at that time.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import socket
import sys
import threading
from asyncio import base_events
from collections.abc import Callable, Collection
from concurrent.futures import thread as executor
from contextlib import suppress
from errno import ECONNREFUSED
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

import msgspec

from ..models import is_loopback
from .providers import is_model_host, list_addresses
from .tunnel import Tunnel

_OURS = str(Path(__file__).parents[1]) + os.sep
# files that call `socket.getaddrinfo` for an event loop, whose wrapper has seen the look-up already
_OF_LOOP = (executor.__file__, base_events.__file__)
_CELL = ("ipykernel_", "<ipython-input-")  # in the names of the files of cells
_CONNECTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_LOOKS_UP = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_LED = ("http_proxy", "https_proxy", "no_proxy")
_HERE = ("127.0.0.1", "localhost", "::1")
# variables that keep libraries from requests of their own
_QUIETING = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # LiteLLM fetches a list of prices when it is imported
    "OPENAI_AGENTS_DISABLE_TRACING": "true",  # the Agents SDK uploads traces, some seconds later
    "LANGSMITH_TRACING_V2": "false",  # so does LangChain; read before the names that users set
}


class Contact(msgspec.Struct, frozen=True):
    """A host that the notebook asks without the tape.

    `line`: the line of the running cell, 0 if unknown. `taped`: a tape is on.
    """

    host: str
    port: int = 0
    line: int = 0
    taped: bool = True

    @property
    def notice(self) -> str:
        """The warning that the call is not recorded, with advice on recording a model call."""
        return (
            f"{self._where} {self.host} beside the tape: the call is not recorded."
            f" A model call is with: from agent_nb import tape; {self._remedy}."
        )

    @property
    def refusal(self) -> str:
        """The reason why a test refuses the host, with advice on recording or allowing it."""
        allow = f"allowed_hosts = [{json.dumps(self.host)}] below [tool.agent_nb] in pyproject.toml"
        if not self.taped:
            return (
                f"{self._where} {self.host}: a test asks no model. Record its calls: write %agent tape"
                " in a cell above, and run jupyter agent-nb run --live --inplace NOTEBOOK."
                f" To let tests ask this host, write {allow}."
            )
        return (
            f"{self._where} {self.host}: a test of a notebook with a tape reaches this machine only."
            f" A model call needs {self._remedy}; for other data write {allow}."
        )

    @property
    def _where(self) -> str:
        return f"line {self.line} asks" if self.line else "the notebook asks"

    @property
    def _remedy(self) -> str:
        return f"base_url=tape.url({json.dumps(self._find_address())})"

    def _find_address(self) -> str:
        for address in list_addresses():
            if urlsplit(address).hostname == self.host:
                return address
        scheme = "https" if self.port in (0, 443, 8443) else "http"
        port = f":{self.port}" if self.port not in (0, 80, 443) else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}{port}/v1"


class HostWatch:
    """Watches the look-ups of this process from `start` to `stop`; in a test, also afterwards.

    `list_allowed` returns the hosts that a test may ask (None: not a test, nothing is refused).
    `models_only`: of the other hosts, refuse only those that serve models.
    """

    def __init__(
        self,
        list_allowed: Callable[[], Collection[str]] | None = None,
        *,
        models_only: bool = False,
    ) -> None:
        self.models_only = models_only
        self._list_allowed = list_allowed
        self._audits = False
        self._lock = threading.Lock()
        self._contacts: dict[str, Contact] = {}  # by host, those not taken yet
        self._reported: set[str] = set()
        self._addresses: set[str] = set()  # of allowed hosts
        self._originals: tuple[Any, Any] | None = None
        self._wrappers: tuple[Any, Any] | None = None

    def start(self) -> None:
        """Wrap the look-ups; in a test, add the audit hook, which stays."""
        of_socket, of_loop = socket.getaddrinfo, asyncio.BaseEventLoop.getaddrinfo

        def getaddrinfo(host: Any, port: Any, *args: Any, **options: Any) -> Any:
            caller = sys._getframe(1)  # noqa: SLF001  (only its frame tells whose look-up it is)
            if caller.f_code.co_filename not in _OF_LOOP:
                self._see(host, port, caller)
            answers = of_socket(host, port, *args, **options)
            if self._list_allowed is not None and _read_name(host) in self._list_allowed():
                self._addresses.update(str(answer[4][0]) for answer in answers)
            return answers

        async def loop_getaddrinfo(loop: Any, host: Any, port: Any, **options: Any) -> Any:
            self._see(host, port, sys._getframe(1))  # noqa: SLF001
            return await of_loop(loop, host, port, **options)

        self._originals, self._wrappers = (of_socket, of_loop), (getaddrinfo, loop_getaddrinfo)
        socket.getaddrinfo = getaddrinfo
        asyncio.BaseEventLoop.getaddrinfo = loop_getaddrinfo  # type: ignore[method-assign,assignment]
        if self._list_allowed is not None and not self._audits:
            self._audits = True
            sys.addaudithook(self._audit)

    def stop(self) -> None:
        """Remove the wrappers, not the audit hook; below other code's wrappers they see nothing."""
        if self._originals is None or self._wrappers is None:
            return
        if socket.getaddrinfo is self._wrappers[0]:
            socket.getaddrinfo = self._originals[0]
        if asyncio.BaseEventLoop.getaddrinfo is self._wrappers[1]:
            asyncio.BaseEventLoop.getaddrinfo = self._originals[1]  # type: ignore[method-assign]
        self._originals = None

    def take_contacts(self) -> list[Contact]:
        """Return the hosts asked since the last call; outside a test, each host only once ever."""
        with self._lock:
            contacts, self._contacts = list(self._contacts.values()), {}
            if self._list_allowed is None:
                self._reported.update(contact.host for contact in contacts)
            return contacts

    def lead_children(self) -> None:
        """Lead child processes through a tunnel, which refuses the targets of `refuse_target`.

        `putenv` leaves `os.environ` unchanged, so the tunnel serves only child processes that are
        started without an environment of their own. If the user has a proxy, nothing is set: the
        tunnel would have to log in there as each program does.
        """
        if getproxies_environment().keys() & {"http", "https", "all"}:
            return
        with suppress(OSError):
            proxy = Tunnel(self.refuse_target).start()
            direct = ",".join([*_HERE, *filter(None, [os.environ.get("no_proxy")])])
            for name, value in zip(_LED, (proxy, proxy, direct), strict=True):
                os.putenv(name, value)
                os.putenv(name.upper(), value)

    def refuse_target(self, target: str) -> str:
        """Report the target of a proxy's request if it is refused; return the reason, else "".

        Without `models_only`, refuse all: allowed hosts bypass the proxy (`refusing_variables`).
        """
        netloc = target.partition("://")[2].partition("/")[0] if "://" in target else target
        host, _, port = netloc.rpartition(":")
        name = _read_name(host or port)
        if self.models_only and not self._is_refused(name):
            return ""
        frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001
        number, line = int(port) if port.isdecimal() else 80, _find_line(frame)[1]
        contact = Contact(name, number, line, taped=not self.models_only)
        self._report(contact)
        return contact.refusal

    @staticmethod
    def quiet_libraries() -> None:
        """Set the variables that keep libraries from asking hosts by themselves.

        A variable that is set stays as it is.
        """
        for name, value in _QUIETING.items():
            os.environ.setdefault(name, value)

    def refusing_variables(self, proxy: str) -> dict[str, str]:
        """Return the variables that send child processes to a proxy, except to allowed hosts."""
        assert self._list_allowed is not None
        direct = ",".join([*_HERE, *sorted(self._list_allowed())])
        values = {**dict.fromkeys(_PROXIES, proxy), "no_proxy": direct}
        return values | {name.upper(): value for name, value in values.items()}

    def _report(self, contact: Contact) -> None:
        with self._lock:
            if contact.host not in self._reported:
                self._contacts.setdefault(contact.host, contact)

    def _see(self, host: Any, port: Any, frame: FrameType | None) -> None:
        """Report a look-up of another machine. Raises ConnectionRefusedError if it is refused."""
        name = _read_name(host)
        if not name or self._originals is None or _is_here(name):
            return
        self._judge(name, port, frame)

    def _judge(self, name: str, port: Any, frame: FrameType | None) -> None:
        ours, line = _find_line(frame)
        if self._list_allowed is None:
            if not ours:
                self._report(Contact(name, port if isinstance(port, int) else 0, line))
            return
        if not self._is_refused(name):
            return
        number = port if isinstance(port, int) else 0
        contact = Contact(name, number, line, taped=not self.models_only)
        self._report(contact)
        raise ConnectionRefusedError(ECONNREFUSED, contact.refusal)

    def _is_refused(self, name: str) -> bool:
        """Return whether a test may not ask a host."""
        assert self._list_allowed is not None
        if name in self._list_allowed() or name in self._addresses:
            return False
        return not self.models_only or is_model_host(name)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event in _LOOKS_UP:
            host, port = args[0], args[1] if len(args) > 1 else 0
        elif event in _CONNECTS and args[0].family in (socket.AF_INET, socket.AF_INET6):
            if not isinstance(args[1], tuple) or len(args[1]) < 2:
                return
            host, port = args[1][:2]
        else:
            return
        name = _read_name(host)
        if name and not _is_here(name):
            self._judge(name, port, sys._getframe(1))  # noqa: SLF001


def _read_name(host: Any) -> str:
    if isinstance(host, bytes | bytearray):
        host = host.decode("latin-1")
    return host.strip("[]").rstrip(".").lower() if isinstance(host, str) else ""


def _is_here(name: str) -> bool:
    """Return whether a name or an address is that of this machine."""
    if is_loopback(name) or name == socket.gethostname().lower():
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_loopback or mapped.is_unspecified)


def _find_line(frame: FrameType | None) -> tuple[bool, int]:
    """Return (True, 0) if this package is the nearest caller, else (False, line of a cell or 0)."""
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(_OURS):
            return True, 0
        if any(part in path for part in _CELL):
            return False, frame.f_lineno
        frame = frame.f_back
    return False, 0
