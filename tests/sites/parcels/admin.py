from __future__ import annotations

from django.contrib import admin
from guardian.admin import GuardedModelAdmin
from guardian.shortcuts import get_objects_for_user
from reversion.admin import VersionAdmin
from simple_history.admin import SimpleHistoryAdmin

from tests.sites.parcels.models import Guarded, Tracked, Versioned


@admin.action(permissions=["change"])
def grow(modeladmin, request, queryset):
    for one in queryset:
        one.size += 1
        one.save()
    modeladmin.message_user(request, f"Grew {len(queryset)}.")


@admin.register(Guarded)
class GuardedAdmin(GuardedModelAdmin):
    """As the documentation of django-guardian has it: each right is asked of the object."""

    actions = [grow]

    def get_queryset(self, request):
        rows = super().get_queryset(request)
        if request.user.is_superuser:
            return rows
        return get_objects_for_user(request.user, "view_guarded", rows)

    def has_permission_of(self, request, obj, verb):
        name = f"parcels.{verb}_guarded"
        return request.user.has_perm(name, obj) if obj else request.user.is_staff

    def has_view_permission(self, request, obj=None):
        return self.has_permission_of(request, obj, "view")

    def has_change_permission(self, request, obj=None):
        return self.has_permission_of(request, obj, "change")

    def has_delete_permission(self, request, obj=None):
        return self.has_permission_of(request, obj, "delete")


@admin.register(Versioned)
class VersionedAdmin(VersionAdmin):
    actions = [grow]


@admin.register(Tracked)
class TrackedAdmin(SimpleHistoryAdmin):
    actions = [grow]
