"""Whether a user's rights are Django's own business, without any code of the site.

Django reads the permissions of a user once and keeps them on the object, so what they decide may
be kept for as long as the object is. Code of the site may look at the clock, the request or the
tenant, and has to be asked at every call.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, PermissionsMixin
from django.db.models.query_utils import DeferredAttribute
from django.utils.module_loading import import_string

OWN_HAS_PERM = (PermissionsMixin.has_perm, AnonymousUser.has_perm)
FLAGS = ("is_active", "is_staff", "is_superuser")
#: What the answer of a backend is made of.
PARTS = (
    "has_perm",
    "get_all_permissions",
    "get_user_permissions",
    "get_group_permissions",
    "_get_permissions",
    "_get_user_permissions",
    "_get_group_permissions",
)


def is_plain(user: Any) -> bool:
    """Whether `has_perm`, the flags and every backend are Django's own."""
    # Any class is hashable, whatever its instances are.
    kind = cast(Hashable, type(user))
    return is_plain_class(kind, tuple(settings.AUTHENTICATION_BACKENDS))


@lru_cache(maxsize=64)
def is_plain_class(user: Hashable, backends: tuple[str, ...]) -> bool:
    flags = (getattr(user, name, False) for name in FLAGS)
    return (
        getattr(user, "has_perm", None) in OWN_HAS_PERM
        and all(isinstance(flag, DeferredAttribute | bool) for flag in flags)
        and all(is_plain_backend(import_string(path)) for path in backends)
    )


def is_plain_backend(backend: Any) -> bool:
    # One that only authenticates has no say in permissions.
    return not hasattr(backend, "has_perm") or all(
        getattr(backend, name, None) is getattr(ModelBackend, name) for name in PARTS
    )
