"""How Django REST framework refuses, as sentences for a model. Imports it, so import this late."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rest_framework import exceptions  # type: ignore[import-untyped]
from rest_framework.settings import api_settings  # type: ignore[import-untyped]

from mcp_django.exposure.raw_schemas import LONGEST_MESSAGE, place_of

MOST_FAULTS = 10
#: Those that Django has, too, say the same as Django's.
SAME_WORDS = {
    exceptions.NotAuthenticated: "You may not do this.",
    exceptions.PermissionDenied: "You may not do this.",
    exceptions.NotFound: "There is no such object.",
}


def refusal_of(error: Exception) -> str:
    """What an exception of the framework refuses, or nothing where it is none of them."""
    if not isinstance(error, exceptions.APIException) or error.status_code >= 500:
        return ""
    for kind, sentence in SAME_WORDS.items():
        if isinstance(error, kind):
            return sentence
    return in_words(sentences(error.detail))


def in_words(faults: Iterable[str]) -> str:
    """As many of them as anybody reads."""
    return " ".join([*faults][:MOST_FAULTS])


def sentences(errors: Any, *path: str | int) -> Iterator[str]:
    """What a serializer says, with the place of each field."""
    if isinstance(errors, Mapping):
        for name, inner in errors.items():
            is_field = name != api_settings.NON_FIELD_ERRORS_KEY
            yield from sentences(inner, *path, *([name] if is_field else []))
    elif isinstance(errors, str):
        yield from sentences([errors], *path)
    elif any(isinstance(one, (Mapping, list)) for one in errors):
        for index, inner in enumerate(errors):
            yield from sentences(inner, *path, index)
    elif errors:
        message = " ".join(" ".join(map(str, errors)).split())[:LONGEST_MESSAGE]
        yield f"Argument {place_of(path)}: {message}" if path else message
