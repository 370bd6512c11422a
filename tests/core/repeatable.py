"""Hypothesis as every folder of tests has it: the same examples in every run, and no clock."""

import contextlib

with contextlib.suppress(ImportError):  # the core's other tests run with nothing but pytest
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("repeatable")
