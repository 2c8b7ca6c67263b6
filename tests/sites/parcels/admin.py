from __future__ import annotations

from django.contrib import admin
from guardian.admin import GuardedModelAdmin
from guardian.shortcuts import get_objects_for_user
from reversion.admin import VersionAdmin
from simple_history.admin import SimpleHistoryAdmin

from tests.sites.parcels.models import Guarded, Tracked, Versioned


@admin.register(Guarded)
class GuardedAdmin(GuardedModelAdmin):
    """As the documentation of django-guardian has it: each right is asked of the object."""

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


admin.site.register(Versioned, VersionAdmin)
admin.site.register(Tracked, SimpleHistoryAdmin)
