"""A host that the code of a notebook asks without the tape, and what users read about it."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import msgspec

from .providers import list_addresses


class Contact(msgspec.Struct, frozen=True):
    """A host that a line of the running cell asks."""

    host: str
    port: int = 0  # 0: unknown
    line: int = 0  # 0: unknown
    taped: bool = True  # a tape is on

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
        """Return the base URL of a known server on the host, else a likely one."""
        for address in list_addresses():
            if urlsplit(address).hostname == self.host:
                return address
        scheme = "https" if self.port in (0, 443, 8443) else "http"
        port = f":{self.port}" if self.port not in (0, 80, 443) else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}{port}/v1"
