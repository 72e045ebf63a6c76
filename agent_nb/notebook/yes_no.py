"""Questions at the keyboard that take yes or no; everything but a clear yes is a no."""

from __future__ import annotations

ACTS_FOR_USER = True  # it waits for the user's answer: ■ interrupts it (`interrupts.STAND_IN`)
ATTEMPTS = 3  # so many unclear answers count as no
YES, NO = ("y", "yes"), ("n", "no")
# the remark on a yes that holds in this process, but could not be written to disk
NOT_SAVED = "It could not be saved and holds until this process ends."


def ask_yes_no(text: str, *, empty_is_no: bool = False) -> bool:
    """Ask `text` until the answer is clear, `ATTEMPTS` times at most; return whether it was yes.

    `empty_is_no`: an empty line is a clear no; else the question is repeated.
    """
    from IPython.core.error import StdinNotImplementedError

    for _ in range(ATTEMPTS):
        try:
            answer = input(text).strip().lower()
        except (EOFError, StdinNotImplementedError):
            return False
        if answer in YES or answer in NO or (empty_is_no and not answer):
            return answer in YES
        text = "Please answer y or n: "
    return False
