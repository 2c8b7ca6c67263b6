from __future__ import annotations

from django.contrib.auth.backends import ModelBackend


class NamedPermissionBackend(ModelBackend):
    """As Nautobot and NetBox have it: the name of a permission is taken apart first."""

    def has_perm(self, user_obj, perm, obj=None):
        app_label, codename = perm.split(".")
        action, model = codename.split("_", 1)
        return super().has_perm(user_obj, f"{app_label}.{action}_{model}", obj)
