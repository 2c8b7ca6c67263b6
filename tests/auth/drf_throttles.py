"""Throttles that a site may have."""

from __future__ import annotations

from rest_framework.throttling import ScopedRateThrottle, SimpleRateThrottle, UserRateThrottle  # type: ignore[import-untyped]


class TwoPerUser(UserRateThrottle):  # type: ignore[misc]  # untyped
    THROTTLE_RATES = {"user": "2/min"}


class ThreePerScope(ScopedRateThrottle):  # type: ignore[misc]  # untyped
    THROTTLE_RATES = {"mcp": "3/hour"}


class OnePerMethod(SimpleRateThrottle):  # type: ignore[misc]  # untyped
    rate = "1/min"

    def get_cache_key(self, request, view):
        return f"{request.user.pk}/{view.action}/{request.auth}"
