"""How much is tried. What stands in the tests fits into `make proof`; ONCEBOX_PROPERTY_EXAMPLES=20 tries 20 times it."""

import os
from typing import Final

from hypothesis import HealthCheck, Phase, settings

from tests.support import skips

TIMES: Final = int(os.environ.get("ONCEBOX_PROPERTY_EXAMPLES", "1"))
_GIVEN_SEED: Final = os.environ.get("ONCEBOX_PROPERTY_SEED")
SEED: Final = int(_GIVEN_SEED) if _GIVEN_SEED else 1 if skips.in_ci() else None
"""Of what hypothesis does not repeat by itself; none means another one each time, which a failure names."""


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
