"""How much is tried. What stands in the tests fits into `make proof`; ONCEBOX_PROPERTY_EXAMPLES=20 tries 20 times it."""

import os
from typing import Final

from hypothesis import HealthCheck, Phase, settings

from tests.support import skips

TIMES: Final = int(os.environ.get("ONCEBOX_PROPERTY_EXAMPLES", "1"))
FIXED_SEED: Final = 1 if skips.in_ci() else None
"""The seed where it must be the same in each run; none means another one each time, which a failure names."""


def tries(examples: int, *, steps: int = 50) -> settings:
    """`steps` counts for state machines only. Shrinking talks to real servers: a failure is worth its time."""
    return settings(
        max_examples=examples * TIMES,
        stateful_step_count=steps,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
        ],
    )
