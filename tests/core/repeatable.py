"""How Hypothesis draws in every folder of tests: the same examples in every run, and no clock."""

import contextlib
from typing import Any

from tools.testing import scope

with contextlib.suppress(ImportError):  # the core's other tests run with nothing but pytest
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "repeatable",
        derandomize=True,
        deadline=None,
        max_examples=scope.examples(100),
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("repeatable")

    def examples(full: int, **more: Any) -> settings:
        """Settings that draw `full` examples, or in the quick scope a share of them."""
        return settings(max_examples=scope.examples(full), **more)
