"""The tenants of the site `schemas`. Each has a schema of PostgreSQL and a host name."""

from __future__ import annotations

from django_tenants.models import DomainMixin, TenantMixin


class Estate(TenantMixin):
    auto_create_schema = False


class Domain(DomainMixin):
    pass
