"""What a site of REST framework has written: classes of authentication, and throttles."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from rest_framework.authentication import BaseAuthentication, SessionAuthentication  # type: ignore[import-untyped]
from rest_framework.exceptions import APIException, AuthenticationFailed, PermissionDenied  # type: ignore[import-untyped]
from rest_framework.throttling import ScopedRateThrottle, SimpleRateThrottle, UserRateThrottle  # type: ignore[import-untyped]


class Keys(BaseAuthentication):  # type: ignore[misc]  # untyped
    """A site's own: `Key <word>`, where the word says what happens."""

    def authenticate(self, request):
        word = request.headers.get("Authorization", "").removeprefix("Key ")
        if word in {"bad", "forbidden", "broken"}:
            raise {
                "bad": AuthenticationFailed("No such user: bob."),
                "forbidden": PermissionDenied("Not from there."),
                "broken": APIException("Our database is down."),
            }[word]
        return (AnonymousUser(), None) if word == "anonymous" else None


class CookieAuthentication(SessionAuthentication):  # type: ignore[misc]  # untyped
    def enforce_csrf(self, request):
        return None


class TwoPerUser(UserRateThrottle):  # type: ignore[misc]  # untyped
    THROTTLE_RATES = {"user": "2/min"}


class ThreePerScope(ScopedRateThrottle):  # type: ignore[misc]  # untyped
    THROTTLE_RATES = {"mcp": "3/hour"}


class OnePerMethod(SimpleRateThrottle):  # type: ignore[misc]  # untyped
    rate = "1/min"

    def get_cache_key(self, request, view):
        return f"{request.user.pk}/{view.action}/{request.auth}"
