"""Authentication classes that a site of REST framework has written."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from rest_framework.authentication import BaseAuthentication, SessionAuthentication  # type: ignore[import-untyped]
from rest_framework.exceptions import APIException, AuthenticationFailed, PermissionDenied  # type: ignore[import-untyped]


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
