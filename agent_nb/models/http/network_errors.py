"""What httpx raises, as a ModelError that says what to check."""

from __future__ import annotations

import os
import ssl

from ...errors import ModelError
from .errors import scrub

CERTIFICATES = (
    "Set SSL_CERT_FILE (or REQUESTS_CA_BUNDLE) to the file of your organisation's certificates."
)


def fault_of(error: Exception, host: str, connect: float) -> ModelError:
    """Return the ModelError for an exception of httpx; `connect` is the time limit in seconds."""
    import httpx

    words = scrub(str(error)) or type(error).__name__
    if isinstance(error, httpx.ConnectTimeout):
        return ModelError(
            f"{host} could not be reached within {connect:g} s.",
            retryable=True,
            code="connect",
        )
    if isinstance(error, httpx.ConnectError) and (tls := _tls(error)):
        hint = (
            CERTIFICATES
            if isinstance(tls, ssl.SSLCertVerificationError)
            else f"Does it speak https? If so: {CERTIFICATES}"
        )
        return ModelError(f"{host} could not be reached safely: {words}. {hint}", code="tls")
    if isinstance(error, httpx.ProxyError):
        return ModelError(
            f"The proxy on the way to {host} failed: {words}. Check HTTPS_PROXY and NO_PROXY.",
            retryable=True,
            code="proxy",
        )
    if isinstance(error, httpx.ConnectError):
        return ModelError(
            f"{host} could not be reached: {_reason(error) or words}. Is the server running, and the base URL right?",
            retryable=True,
            code="connect",
        )
    if isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL | httpx.LocalProtocolError):
        return ModelError(
            f"The request to {host} could not be made: check the base URL and the headers.",
            code="request",
        )
    return ModelError(f"The connection to {host} broke off: {words}.", retryable=True, code="cut")


def _reason(error: BaseException | None) -> str:
    """Return the system's message in a chain of causes, such as "Connection refused"."""
    found = ""
    while error is not None:
        if isinstance(error, OSError) and error.strerror:
            found = (
                os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror)
            )
        inner = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else None
        error = inner or error.__cause__ or error.__context__
    return found


def _tls(error: BaseException | None) -> ssl.SSLError | None:
    """Return the TLS error in a chain of causes, or None."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error
