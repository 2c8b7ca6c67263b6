"""Values for the variables of resource templates, as far as this caller's rights reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mcp_django.exposure.uris import COLLECTION, DEFINITION, FILE, OBJECT

if TYPE_CHECKING:
    from mcp_django.exposure.permissions import Rights

TEMPLATES = {one.text for one in (DEFINITION, COLLECTION, OBJECT, FILE)}


def complete_resource(
    rights: Rights, uri: str, argument: str, value: str, *, given: Mapping[str, str]
) -> list[str] | None:
    """Values of a template's variable that go on from `value`, best first.

    `given` holds the variables that were chosen before. None for a template or a variable that
    does not exist.
    """
    if uri not in TEMPLATES or argument != "model":
        return None
    return ranked(value, [exposure.label for exposure in rights.exposures()])


def ranked(value: str, candidates: list[str]) -> list[str]:
    """Those that contain the value: equal, then by beginning, word beginning, and place."""
    text = value.lower()

    def rank(candidate: str) -> tuple[int, str]:
        found = candidate.lower()
        if found == text:
            return 0, candidate
        if found.startswith(text):
            return 1, candidate
        is_word = any(part.startswith(text) for part in found.replace(".", " ").split())
        return (2 if is_word else 3), candidate

    return sorted((one for one in candidates if text in one.lower()), key=rank)
