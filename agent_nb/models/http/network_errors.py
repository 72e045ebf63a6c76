"""Turns an exception of httpx into a ModelError that says what the user should check.

"All connection attempts failed" does not help: a proxy, a certificate, the limit of open files and
a server that does not run each need another remedy. httpx's own message is quoted only after
whatever looks like a key is blotted out of it.
"""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import Iterator
from functools import partial

from ...errors import ModelError
from .errors import blot_out_secrets
from .open_files import read_file_limit

CERTIFICATES = (
    "Set SSL_CERT_FILE (or REQUESTS_CA_BUNDLE) to the file of your organisation's certificates."
)


def make_connection_error(error: Exception, host: str, connect_timeout: float) -> ModelError:
    """Return the ModelError for an exception of httpx.

    `host` names the server in the message; `connect_timeout`: seconds. The order of the branches
    matters: most causes, such as a certificate, come inside a ConnectError.
    """
    import httpx

    message = blot_out_secrets(str(error)) or type(error).__name__
    unreachable = partial(ModelError, retryable=True, code="connect")
    if isinstance(error, httpx.ConnectTimeout):
        return unreachable(f"{host} could not be reached within {connect_timeout:g} s.")
    causes = list(_list_causes(error))
    tls_error = next((each for each in causes if isinstance(each, ssl.SSLError)), None)
    if isinstance(error, httpx.ConnectError) and tls_error is not None:
        hint = CERTIFICATES
        if not isinstance(tls_error, ssl.SSLCertVerificationError):
            hint = f"Does it speak https? If so: {CERTIFICATES}"
        return ModelError(f"{host} could not be reached safely: {message}. {hint}", code="tls")
    if isinstance(error, httpx.ProxyError):
        return ModelError(
            f"The proxy on the way to {host} failed: {message}. Check HTTPS_PROXY and NO_PROXY.",
            retryable=True,
            code="proxy",
        )
    # the innermost one has the system's reason
    system_errors = [each for each in causes if isinstance(each, OSError) and each.strerror]
    system_error = system_errors[-1] if system_errors else None
    if system_error is not None and system_error.errno in (errno.EMFILE, errno.ENFILE):
        return unreachable(
            f"There is no further connection to {host}: only {read_file_limit():,} files may be open at once here. "
            "Ask for fewer answers at once (concurrency), or raise the limit (`ulimit -n`)."
        )
    if isinstance(error, httpx.ConnectError):
        reason = _system_message(system_error) if system_error is not None else message
        return unreachable(
            f"{host} could not be reached: {reason}. Is the server running, and the base URL right?"
        )
    if isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL | httpx.LocalProtocolError):
        return ModelError(
            f"The request to {host} could not be made: check the base URL and the headers.",
            code="request",
        )
    return ModelError(f"The connection to {host} broke off: {message}.", retryable=True, code="cut")


def _system_message(error: OSError) -> str:
    """Return the system's message of an error, such as "Connection refused"."""
    number = error.errno or 0
    return os.strerror(number) if number > 0 else str(error.strerror)


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and the chain of its causes, the innermost last."""
    while error is not None:
        yield error
        # several addresses of a host are tried at once (happy eyeballs), and all their errors come
        # as one group; the first one stands for the others
        first = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else None
        error = first or error.__cause__ or error.__context__
