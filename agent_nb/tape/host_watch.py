"""Reports the hosts that the code of a notebook asks without the tape; refuses them in a test.

Why: such a call is not recorded, and a test that asks a server proves nothing.

Rules
- Outside a test only wrappers of `socket.getaddrinfo` and of the event loop's own see look-ups: an
  audit hook cannot be removed, and under asyncio does not see the caller's frame.
- A test adds an audit hook, for connections to bare addresses and for libraries with their own
  look-up. Child processes have no hook; their proxy calls `refuse_target` (`environment`).
- This machine is never reported (child processes ask it without the proxy), nor is a request of
  this package outside a test.
"""

from __future__ import annotations

import asyncio
import ipaddress
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

from ..models import is_loopback
from .contact import Contact
from .environment import lead_children, lead_to_proxy, quiet_libraries
from .providers import is_model_host

_PACKAGE = str(Path(__file__).parents[1]) + os.sep
# files that call `socket.getaddrinfo` for an event loop, whose wrapper has seen the look-up already
_LOOP_FILES = (executor.__file__, base_events.__file__)
_CELL_FILES = ("ipykernel_", "<ipython-input-")  # parts of the names of the files of cells
_CONNECTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})  # audit events
_LOOKS_UP = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})


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
        self._in_test = list_allowed is not None
        self._list_allowed = list_allowed or frozenset
        self._has_begun = False  # a test has what stays: audit hook and variables
        self._lock = threading.Lock()
        self._contacts: dict[str, Contact] = {}  # by host, those not taken yet
        self._reported: set[str] = set()
        self._addresses: set[str] = set()  # of allowed hosts
        self._wrapped: list[tuple[Any, Any, Any]] = []  # (owner, its `getaddrinfo`, our wrapper)

    def start(self) -> None:
        """Wrap the look-ups; in a test, add the audit hook and set the variables, which stay."""
        self._wrap_look_ups()
        if self._in_test and not self._has_begun:
            self._has_begun = True
            sys.addaudithook(self._audit)
            quiet_libraries()
            lead_children(self.refuse_target)

    def _wrap_look_ups(self) -> None:
        of_socket, of_loop = socket.getaddrinfo, asyncio.BaseEventLoop.getaddrinfo

        def getaddrinfo(host: Any, port: Any, *args: Any, **options: Any) -> Any:
            caller = sys._getframe(1)  # noqa: SLF001  (only its frame tells whose look-up it is)
            if caller.f_code.co_filename not in _LOOP_FILES:
                self._check_look_up(host, port, caller)
            answers = of_socket(host, port, *args, **options)
            if _read_name(host) in self._list_allowed():
                self._addresses.update(str(answer[4][0]) for answer in answers)
            return answers

        async def loop_getaddrinfo(loop: Any, host: Any, port: Any, **options: Any) -> Any:
            self._check_look_up(host, port, sys._getframe(1))  # noqa: SLF001
            return await of_loop(loop, host, port, **options)

        self._wrapped = [
            (socket, of_socket, getaddrinfo),
            (asyncio.BaseEventLoop, of_loop, loop_getaddrinfo),
        ]
        for owner, _, wrapper in self._wrapped:
            owner.getaddrinfo = wrapper

    def stop(self) -> None:
        """Remove the wrappers, not the audit hook; below other code's wrappers they see nothing."""
        for owner, original, wrapper in self._wrapped:
            if owner.getaddrinfo is wrapper:
                owner.getaddrinfo = original
        self._wrapped = []

    def lead_to_proxy(self, proxy: str) -> None:
        """Lead what this process and its children ask to a proxy, except for allowed hosts."""
        lead_to_proxy(proxy, self._list_allowed())

    def take_contacts(self) -> list[Contact]:
        """Return the hosts asked since the last call; outside a test, each host only once ever."""
        with self._lock:
            contacts, self._contacts = list(self._contacts.values()), {}
            if not self._in_test:
                self._reported.update(contact.host for contact in contacts)
            return contacts

    def refuse_target(self, target: str) -> str:
        """Report the target of a proxy's request if it is refused; return the reason, else "".

        Without `models_only`, refuse all: allowed hosts bypass the proxy (`lead_to_proxy`).
        """
        name, port = _split_target(target)
        if self.models_only and not self._is_refused(name):
            return ""
        # the proxy has a thread of its own; the cell runs on the main thread
        frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001
        contact = Contact(name, port, _find_line(frame)[1], taped=not self.models_only)
        self._report(contact)
        return contact.refusal

    def _check_look_up(self, host: Any, port: Any, frame: FrameType | None) -> None:
        """Check the host of a look-up, unless the watch is stopped. Raises as `_check_host`."""
        if self._wrapped:
            self._check_host(host, port, frame)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event in _LOOKS_UP:
            host, port = args[0], args[1] if len(args) > 1 else 0
        elif event in _CONNECTS and args[0].family in (socket.AF_INET, socket.AF_INET6):
            if not isinstance(args[1], tuple) or len(args[1]) < 2:
                return
            host, port = args[1][:2]
        else:
            return
        self._check_host(host, port, sys._getframe(1))  # noqa: SLF001

    def _check_host(self, host: Any, port: Any, frame: FrameType | None) -> None:
        """Report a host that is asked beside the tape. Raises ConnectionRefusedError in a test."""
        name = _read_name(host)
        if not name or _is_here(name):
            return
        by_package, line = _find_line(frame)
        number = port if isinstance(port, int) else 0
        contact = Contact(name, number, line, taped=not self.models_only)
        if self._in_test and self._is_refused(name):
            self._report(contact)
            raise ConnectionRefusedError(ECONNREFUSED, contact.refusal)
        if not self._in_test and not by_package:
            self._report(contact)

    def _report(self, contact: Contact) -> None:
        with self._lock:
            if contact.host not in self._reported:
                self._contacts.setdefault(contact.host, contact)

    def _is_refused(self, name: str) -> bool:
        """Return whether a test may not ask a host."""
        if name in self._list_allowed() or name in self._addresses:
            return False
        return not self.models_only or is_model_host(name)


def _read_name(host: Any) -> str:
    if isinstance(host, bytes | bytearray):
        host = host.decode("latin-1")
    return host.strip("[]").rstrip(".").lower() if isinstance(host, str) else ""


def _split_target(target: str) -> tuple[str, int]:
    """Return host and port of a target as `Tunnel` reads them; 80 stands for a missing port."""
    host, port = target, None
    with suppress(ValueError):  # of brackets that do not match, or of a wrong port
        url = urlsplit(target if "://" in target else f"//{target}")
        host = url.hostname or ""
        port = url.port
    return _read_name(host), port or 80


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
        if path.startswith(_PACKAGE):
            return True, 0
        if any(part in path for part in _CELL_FILES):
            return False, frame.f_lineno
        frame = frame.f_back
    return False, 0
