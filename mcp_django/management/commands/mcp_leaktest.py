"""Compare what assistants of users get with what the admin shows these users."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError
from django.utils.module_loading import import_string

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
        for tenant in tenants_of(tenants) if tenants else [None]:
            host = "testserver" if tenant is None else tenant.get_primary_domain().domain
            with nullcontext() if tenant is None else tenant:
                for name in usernames:
                    where = "" if tenant is None else f"{tenant.schema_name}: "
                    found = find_leaks(find_user(name), budget=budget, host=host)
                    leaks += [f"{where}{leak}" for leak in found]
        self.stdout.write("\n".join(leaks) or "Nothing found.")
        if leaks:
            raise CommandError(f"{len(leaks)} requests tell more than the admin shows.")


def tenants_of(names: str) -> Iterator[Any]:
    """Yield the tenants of these schemas, each to be entered. Raises CommandError."""
    if not apps.is_installed("django_tenants"):
        raise CommandError("--tenants needs django_tenants in INSTALLED_APPS.")
    model = import_string("django_tenants.utils.get_tenant_model")()
    for name in names.split(","):
        tenant = model.objects.filter(schema_name=name).first()
        if tenant is None:
            raise CommandError(f"There is no tenant whose schema is {name}.")
        yield tenant
