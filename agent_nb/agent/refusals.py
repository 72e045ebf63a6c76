"""What follows on a request that the model refused or never answered: another one, or the end of
the run.

Why beside the loop: which request may be made again, how and when, is one decision; making it is
the loop's work.

Rules
- Only before the first part of an answer is a request made again.
- A server that takes no tools is asked in a text dialect, one that finds the request too long for
  less of what came before; both at once. What may pass is tried again after a wait
  (`Plan.retry_delay`).
"""

from __future__ import annotations

import msgspec

from ..errors import ModelError
from .request import Prompt
from .run_spec import Plan


class Again(msgspec.Struct, frozen=True):
    """The request is made again after `wait` seconds; `code`, `message` and `raw` are those of the
    error event that says so.
    """

    wait: float
    code: str
    message: str
    raw: str = ""


def again(fault: ModelError, attempt: int, plan: Plan, prompt: Prompt) -> Again | None:
    """Return how to go on after `attempt` requests, the last of which failed, or None to give up;
    changes what `prompt` asks for next.
    """
    if fault.code == "no_tools" and prompt.dialect.native:
        prompt.fall_back()
        return Again(
            0.0, "no_tools", f"{fault} Going on with the {prompt.dialect.name} dialect.", fault.raw
        )
    if fault.code == "context" and prompt.shrink(fault.context):
        return Again(0.0, "shortened", "Asking again with less of what came before.", str(fault))
    wait = plan.retry_delay(fault, attempt)
    if wait is None:
        return None
    return Again(
        wait,
        "retry",
        f"{fault.brief}. Trying again in {wait:.1f} s (attempt {attempt + 1}).",
        fault.raw or str(fault),
    )
