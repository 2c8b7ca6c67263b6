"""The rights of people who look at what others see, and rights with some limits taken away.

Nothing here decides what a call may do. Pages of the admin ask the same questions as a call, once
as the caller and once without a limit, and what differs is the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from functools import cached_property

from mcp_django.conf import get_config
from mcp_django.exposure.overrides import Exposed
from mcp_django.exposure.permissions import Rights
from mcp_django.principal import SCOPES, Restriction


class OwnRights(Rights):
    """What a user may see of the site, whatever was decided about assistants.

    Staff who hid a model from everybody, or gave it to a group that is not theirs, still look at
    it in the admin. Credentials and read-only switches do not count either.
    """

    @cached_property
    def exposed(self) -> Exposed:
        found = copy(super().exposed)
        found.closed, found.groups, found.withheld = set(), {}, {}
        return found

    @property
    def is_read_only(self) -> bool:
        return False


class CodeRights(OwnRights):
    """What a user may use of what code declares, as if staff had decided nothing."""

    @cached_property
    def exposed(self) -> Exposed:
        found = copy(super().exposed)
        found.exposures = self.registry.candidates
        return found


def own_rights(rights: Rights) -> OwnRights:
    """Those of the same user, with no limit but the rules of the site."""
    principal = replace(
        rights.principal, scopes=frozenset(SCOPES), restriction=Restriction(), kept={}
    )
    return OwnRights(rights.request, principal, registry=rights.registry)


def code_rights(rights: Rights) -> CodeRights:
    """Those of the same user over what code declares."""
    principal = replace(rights.principal, kept={})
    return CodeRights(rights.request, principal, registry=rights.registry)


class Lifted(Rights):
    """The rights of a caller without the read-only switches."""

    @property
    def is_read_only(self) -> bool:
        return False


def without(rights: Rights, *limits: str) -> Rights:
    """The same rights without some limits of the credential: scopes, models, read_only."""
    principal = replace(rights.principal, kept={})
    if "scopes" in limits:
        principal = replace(principal, scopes=frozenset(SCOPES))
    if "models" in limits:
        held = replace(principal.restriction, models=None)
        principal = replace(principal, restriction=held)
    made = Lifted if "read_only" in limits else Rights
    return made(rights.request, principal, registry=rights.registry)


def limits_of(rights: Rights) -> dict[str, str]:
    """The limits in force that are none of the user's own rights, with a sentence for each."""
    found: dict[str, str] = {}
    missing = sorted(set(SCOPES) - rights.principal.scopes)
    if missing:
        found["scopes"] = f"The credential lacks a scope. It has none of: {', '.join(missing)}."
    if rights.principal.restriction.models is not None:
        found["models"] = "The token is held to some models."
    if rights.is_read_only:
        found["read_only"] = read_only_sentence(rights)
    return found


def read_only_sentence(rights: Rights) -> str:
    decided = rights.exposed.decisions
    if get_config().read_only:
        return "READ_ONLY is set for the site."
    if decided.read_only:
        return "Staff made the server read-only."
    if rights.principal.user.pk in decided.read_only_users:
        return "Staff made assistants of this user read-only."
    return "The token is read-only."


def limits_that_hide(rights: Rights, exists: Callable[[Rights], bool]) -> Iterator[str]:
    """Sentences about each limit that alone would hide a thing. `exists` asks whether it is there.

    Nothing where it is hidden for other reasons only.
    """
    limits = limits_of(rights)
    for name, sentence in limits.items():
        others = [other for other in limits if other != name]
        if not exists(without(rights, *others)) and exists(without(rights, *others, name)):
            yield sentence
