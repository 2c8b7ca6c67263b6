"""What code of the site finds on the request of a call: `request.user` and `request.session`.

Under a credential that is limited to some models, `request.user` answers for somebody with the
permissions of the user on these models, and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from typing import Any

from asgiref.sync import sync_to_async
from django.apps import apps
from django.contrib.sessions.backends.signed_cookies import SessionStore

SETS = ("get_all_permissions", "get_user_permissions", "get_group_permissions")
QUESTIONS = ("has_perm", "has_perms", "has_module_perms")
FLAG = "is_superuser"
#: Of the permissions that Django makes for each model.
VERBS = ("add", "change", "delete", "view")


def limit_to_models(user: Any, *, real: Any, models: frozenset[str]) -> None:
    """Make `user`, a copy of the `real` one, answer within the limits.

    The object keeps its class, equality and key, so it can be stored as a foreign key. What the
    site saves with it stays true: the flag of a superuser is only hidden. A property of the
    site's own in place of that flag cannot be hidden.
    """
    limits = Limits(user, real, models)
    answers: dict[str, Any] = {name: getattr(limits, name) for name in QUESTIONS}
    answers |= {name: partial(limits.permissions, name) for name in SETS}
    # From a thread: an answer may take queries.
    answers |= {f"a{name}": sync_to_async(answer) for name, answer in answers.items()}
    user.__dict__ |= {name: answer for name, answer in answers.items() if hasattr(real, name)}
    if user.__dict__.get(FLAG):
        user.__dict__ |= {FLAG: False, "save": limits.save, "refresh_from_db": limits.refresh}


def real_user(user: Any) -> Any:
    """The user without the limits, for questions of our own."""
    limits = getattr(user.__dict__.get("has_perm"), "__self__", None)
    return limits.real if isinstance(limits, Limits) else user


class Limits:
    """What a user may do, on some models only."""

    def __init__(self, user: Any, real: Any, models: frozenset[str]) -> None:
        self.user = user
        self.real = real
        self.models = models

    def allows(self, permission: object) -> bool:
        """Whether the permission is about one of the models: the one that declares it, or else
        the one in its name.
        """
        app, _, codename = str(permission).partition(".")
        verb, _, model = codename.partition("_")
        is_named = f"{app}.{model}".lower() in self.models
        owners = self._owners.get(str(permission))
        if owners is None or (is_named and verb in VERBS):
            return is_named
        return not owners.isdisjoint(self.models)

    @cached_property
    def _owners(self) -> Mapping[str, set[str]]:
        """The labels of the models that have a permission in their Meta, by its name."""
        found: dict[str, set[str]] = {}
        for opts in (model._meta for model in apps.get_models()):
            for codename, _ in opts.permissions:
                found.setdefault(f"{opts.app_label}.{codename}", set()).add(opts.label_lower)
        return found

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        return self.allows(perm) and bool(self.real.has_perm(perm, obj))

    def has_perms(self, perm_list: Iterable[str], obj: Any = None) -> bool:
        return all(self.has_perm(perm, obj) for perm in perm_list)

    def has_module_perms(self, app_label: str) -> bool:
        has_models = any(label.startswith(f"{app_label}.") for label in self.models)
        return has_models and bool(self.real.has_module_perms(app_label))

    def permissions(self, ask: str, obj: Any = None) -> set[str]:
        return {name for name in getattr(self.real, ask)(obj) if self.allows(name)}

    def save(self, *args: Any, **kwargs: Any) -> None:
        """As the class saves, with the flag that the row has."""
        self.user.__dict__[FLAG] = True
        try:
            type(self.user).save(self.user, *args, **kwargs)
        finally:
            self.user.__dict__[FLAG] = False

    def refresh(self, *args: Any, **kwargs: Any) -> None:
        try:
            type(self.user).refresh_from_db(self.user, *args, **kwargs)
        finally:
            self.user.__dict__[FLAG] = False


class EmptySession(SessionStore):
    """The session of one request. Code of the site may use it; nothing is loaded or stored."""

    def save(self, must_create: bool = False) -> None:  # noqa: FBT001, FBT002  Django's signature
        # Django's would make a key of the content, and send it to the client.
        return None
