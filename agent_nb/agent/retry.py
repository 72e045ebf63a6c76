"""Whether and how a failed model request is repeated.

Why separate from the loop: the decision is made here, the request there.

Rules
- A request is repeated only before the first part of its answer.
- If the server accepts no tools, the run goes on in a text dialect; if it accepts no pictures,
  with words in their place; if it takes no schema of the answer, with a final tool; if it finds the
  request too long, with a shorter history; all without a wait.
- A fault that may pass is retried after `Plan.retry_delay`. A refusal shared with other requests
  (`ModelError.shared`) is not counted as an attempt: the endpoint's limiter waits for all of them.
  A server that fails with the same words again and again is given up (`Failures`).
- If the model stays away or overloaded and the plan has another one, that one goes on. Then only a
  rate limit is waited out; of other faults, `PATIENCE` requests or a wait of `PAUSE` seconds are
  enough. A wrong key or a wrong request is the user's to mend: nothing takes their place.
- Where the user names one model only and another one could go on, the fault says how to name two.
"""

from __future__ import annotations

import msgspec

from ..errors import ModelError
from ..models import Failures, wait_before_retry
from .request import Prompt
from .run_spec import Plan

FALLBACK = "fallback"
PATIENCE = 3
PAUSE = 5.0
ADVICE = 'If you name a second model, it goes on in such a case: -m a,b or Agent("a,b").'


class Retry(msgspec.Struct, frozen=True):
    """Repeat the request after `wait` seconds; `counted`: the failed one was an attempt.

    The other fields are those of the error event.
    """

    wait: float
    code: str
    message: str
    raw: str = ""
    counted: bool = True

    async def rest(self) -> None:
        """Wait until it is time."""
        await wait_before_retry(self.wait)


def retry_of(
    fault: ModelError, attempt: int, failures: Failures, plan: Plan, prompt: Prompt
) -> Retry | None:
    """Return how to repeat the failed request number `attempt`, or None to give up.

    `failures` are those of the model so far, and get this one.

    Changes what `prompt` asks for next, and advises in the message of a fault that is final.
    """
    if fault.code == "no_tools" and prompt.dialect.native:
        prompt.fall_back()
        return Retry(
            0.0, "no_tools", f"{fault} Going on with the {prompt.dialect.name} dialect.", fault.raw
        )
    if fault.code == "no_images" and prompt.cover(f"{fault} {fault.raw}"):
        message = f"{fault} Going on with words in place of the pictures."
        return Retry(0.0, "no_images", message, fault.raw)
    if fault.code == "no_schema" and prompt.ways.close_schema():
        return Retry(0.0, "no_schema", f"{fault} Asking for the answer with a tool.", fault.raw)
    if fault.code == "context" and prompt.shrink(fault.context):
        return Retry(0.0, "shortened", "Asking again with less of what came before.", str(fault))
    wait = None if failures.add(fault) else plan.retry_delay(fault, attempt)
    # with another model to turn to, only a rate limit is waited for at length
    hurried = bool(plan.spares) and fault.status != 429
    if wait is None or (hurried and (attempt >= PATIENCE or wait > PAUSE)):
        return _fallback(fault, plan)
    return Retry(
        wait,
        "retry",
        f"{fault.brief}. Trying again in {wait:.1f} s (attempt {attempt + (not fault.shared)}).",
        fault.raw or str(fault),
        counted=not fault.shared,
    )


def _fallback(fault: ModelError, plan: Plan) -> Retry | None:
    """Return how the next model takes over, None if there is none or it is not for this fault."""
    if not Failures.is_outage(fault):
        return None
    if not plan.spares:
        if not plan.relieved and fault.code == "provider":  # an address is the user's to mend
            fault.advise(ADVICE)
        return None
    more = str(fault) if str(fault).rstrip(".") != fault.brief else ""
    return Retry(0.0, FALLBACK, f"{fault.brief}.", fault.raw or more)
