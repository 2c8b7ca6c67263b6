"""Whom the tokens of an authorization server stand for."""

from __future__ import annotations

# docs: start people
from django.contrib.auth import get_user_model


def user_of(claims):
    return get_user_model().objects.filter(username=claims.get("preferred_username")).first()


# docs: end people
