"""Whether and how a failed model request is repeated.

Why separate from the loop: the decision is made here, the request there.

Rules
- A request is repeated only before the first part of its answer.
- What a server refuses is replaced at once: tools that the user chose by a text dialect (default
  tools are dropped), pictures by words, the schema of the answer by a final tool, a history that is
  too long by a shorter one.
- A refusal shared with other requests (`ModelError.shared`) is not counted as an attempt.
- A server that repeats the same error is given up (`Failures`).
- If another model can take over, only a rate limit is waited out: after other faults the current
  model gets `FALLBACK_ATTEMPTS` requests and waits of at most `FALLBACK_WAIT` seconds.
- A wrong key or request is for the user to correct: no other model takes over.
"""

from __future__ import annotations

import msgspec

from ..errors import ModelError
from ..models import Failures
from .request import RequestBuilder
from .run_spec import Plan

FALLBACK = "fallback"  # the code of a retry with the next model
FALLBACK_ATTEMPTS = 3
FALLBACK_WAIT = 5.0  # s
ADVICE = 'If you name a second model, it goes on in such a case: -m a,b or Agent("a,b").'


class Retry(msgspec.Struct, frozen=True):
    """A decision to repeat a request after `wait` seconds.

    `counted`: the failed request was an attempt. `code`, `message`, `raw`: of the error event.
    """

    wait: float
    code: str
    message: str
    raw: str = ""
    counted: bool = True


def choose_retry(
    fault: ModelError, attempt: int, failures: Failures, plan: Plan, builder: RequestBuilder
) -> Retry | None:
    """Return how to repeat the failed request number `attempt`, or None to give up.

    Side effects: adds the fault to `failures`, changes how `builder` builds the next request, adds
    advice to the message of a final fault.
    """
    if fault.code == "no_tools" and builder.dialect.native:
        return Retry(0.0, "no_tools", f"{fault} Going on {builder.send_no_tools()}.", fault.raw)
    if fault.code == "no_images" and builder.vision.omit(f"{fault} {fault.raw}"):
        message = f"{fault} Going on with words in place of the pictures."
        return Retry(0.0, "no_images", message, fault.raw)
    if fault.code == "no_schema" and builder.way_chooser.disable_schema():
        return Retry(0.0, "no_schema", f"{fault} Asking for the answer with a tool.", fault.raw)
    if fault.code == "context" and builder.shrink(fault.context):
        return Retry(0.0, "shortened", "Asking again with less of what came before.", str(fault))
    wait = None if failures.add(fault) else plan.retry_delay(fault, attempt)
    # with another model to turn to, only a rate limit is waited out
    impatient = bool(plan.fallback_models) and fault.status != 429
    if wait is None or (impatient and (attempt >= FALLBACK_ATTEMPTS or wait > FALLBACK_WAIT)):
        return _switch_model(fault, plan)
    next_attempt = attempt if fault.shared else attempt + 1
    message = f"{fault.brief}. Trying again in {wait:.1f} s (attempt {next_attempt})."
    return Retry(wait, "retry", message, fault.raw or str(fault), counted=not fault.shared)


def _switch_model(fault: ModelError, plan: Plan) -> Retry | None:
    """Return a retry with the next model; None without one, or if `fault` is not an outage."""
    if not Failures.is_outage(fault):
        return None
    if not plan.fallback_models:
        # codes other than `provider`, such as a wrong address, are for the user to correct
        if not plan.is_fallback and fault.code == "provider":
            fault.advise(ADVICE)
        return None
    details = str(fault) if str(fault).rstrip(".") != fault.brief else ""
    return Retry(0.0, FALLBACK, f"{fault.brief}.", fault.raw or details)
