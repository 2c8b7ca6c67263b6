"""Compare what assistants of users get with what the admin shows these users."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError

from mcp_django.management.commands.mcp_token import find_user


class Command(BaseCommand):
    help = "Look for requests of assistants that tell users more than the admin shows them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("usernames", nargs="+", metavar="USERNAME")
        parser.add_argument("--budget", type=int, default=2000, help="Requests of each user.")
        parser.add_argument("--tenants", default="", help="Schemas of django-tenants: a,b")

    def handle(self, *, usernames: list[str], budget: int, tenants: str, **options: Any) -> None:
        if not apps.is_installed("django.contrib.admin"):
            raise CommandError("This needs django.contrib.admin in INSTALLED_APPS.")
        # It needs the admin, which is optional.
        from mcp_django.testing.leaks import find_leaks

        leaks: list[str] = []
        if tenants:
            from django_tenants.utils import (  # type: ignore[import-untyped]  # it has none
                get_tenant_model,
                tenant_context,
            )

            for tenant in get_tenant_model().objects.filter(schema_name__in=tenants.split(",")):
                host = tenant.get_primary_domain().domain
                with tenant_context(tenant):
                    for name in usernames:
                        found = find_leaks(find_user(name), budget=budget, host=host)
                        leaks += [f"{tenant.schema_name}: {leak}" for leak in found]
        else:
            for name in usernames:
                leaks += find_leaks(find_user(name), budget=budget)
        self.stdout.write("\n".join(leaks) or "Nothing found.")
        if leaks:
            raise CommandError(f"{len(leaks)} requests tell more than the admin shows.")
