"""Permissions with constraints: a name, and the filter that objects have to pass."""

from __future__ import annotations

from django.contrib.auth.backends import ModelBackend

#: By user and permission.
CONSTRAINTS = {"viewer": {"shop.view_memo": {"code__startswith": "open"}}}


def resolve(name):
    """As these sites do it: they want a permission on a model, and nothing else."""
    try:
        app_label, codename = name.split(".")
        action, model_name = codename.rsplit("_", maxsplit=1)
    except ValueError:
        raise ValueError(
            f"Invalid permission name: {name}. Must be in the format <app_label>.<action>_<model>"
        ) from None
    return app_label, action, model_name


def constraints_of(user, name):
    return CONSTRAINTS.get(user.get_username(), {}).get(name)


def restrict(rows, user, action):
    """The rows that the user may do this to."""
    if user.is_superuser:
        return rows
    opts = rows.model._meta
    constraints = constraints_of(user, f"{opts.app_label}.{action}_{opts.model_name}")
    return rows.none() if constraints is None else rows.filter(**constraints)


class ObjectPermissionBackend(ModelBackend):
    def get_all_permissions(self, user_obj, obj=None):
        return set(CONSTRAINTS.get(user_obj.get_username(), {}))

    def has_perm(self, user_obj, perm, obj=None):
        resolve(perm)
        if user_obj.is_active and user_obj.is_superuser:
            return True
        constraints = constraints_of(user_obj, perm)
        if constraints is None or obj is None:
            # For the bare name the constraints are not looked at.
            return constraints is not None
        return type(obj)._default_manager.filter(pk=obj.pk, **constraints).exists()


class Door:
    """Says who comes in, and nothing of permissions: as the backend of django-axes."""

    def authenticate(self, request, **credentials):
        return None

    def get_user(self, user_id):
        return None


class Inherited(ModelBackend):
    """Logs in by other means: as the backend of django-allauth."""

    def authenticate(self, request, **credentials):
        return None
