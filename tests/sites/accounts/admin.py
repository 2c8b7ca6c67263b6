from __future__ import annotations

from django.contrib import admin

from tests.sites.accounts.models import Account


@admin.register(Account)
class AccountAdmin(admin.ModelAdmin):
    list_display = ["email", "is_staff"]
    search_fields = ["email"]
    ordering = ["email"]
