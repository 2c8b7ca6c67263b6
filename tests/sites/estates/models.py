"""The tenants of the site `schemas`. Each has a schema of PostgreSQL and a host name."""

from __future__ import annotations

from django.core.management import call_command
from django.db import connection
from django_tenants.models import DomainMixin, TenantMixin


class Estate(TenantMixin):
    auto_create_schema = False


class Domain(DomainMixin):
    pass


def make_tenant(name: str) -> None:
    """Make a tenant with its schema and its host name."""
    estate = Estate.objects.create(schema_name=name)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE SCHEMA {name}")
    # The apps of the tests have no migrations.
    options = {"schema_name": name, "run_syncdb": True, "verbosity": 0}
    call_command("migrate_schemas", **options)
    Domain.objects.create(domain=f"{name}.localhost", tenant=estate, is_primary=True)
