"""Settings of all tests: no deadlines, since machines are shared, and the same examples each time."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "rankwatch", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rankwatch")
