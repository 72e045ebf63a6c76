"""How many examples the property tests try: all with AGENT_NB_EXHAUSTIVE, as CI does once, else a
tenth of them. A plug-in of pytest.
"""

import os

from hypothesis import HealthCheck, settings

EXHAUSTIVE = "AGENT_NB_EXHAUSTIVE" in os.environ
# other examples in each run; without it the same ones, so that a red main has a cause in it
SEARCH = "AGENT_NB_SEARCH" in os.environ


def count_examples(full: int) -> int:
    """Return how many of `full` examples to try now."""
    return full if EXHAUSTIVE else max(full // 10, 5)


settings.register_profile(
    "agent_nb",
    max_examples=count_examples(100),
    deadline=None,
    derandomize=not SEARCH,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("agent_nb")
