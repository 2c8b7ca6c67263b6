from __future__ import annotations

from contextvars import ContextVar

from django.db import models

#: As a site has it that never shows nothing: without a tenant there is a default one.
tenant: ContextVar[str] = ContextVar("tenant", default="none")


class OfTenant(models.Manager):
    def get_queryset(self):
        return super().get_queryset().filter(tenant=tenant.get())


class Delivery(models.Model):
    tenant = models.CharField(max_length=20, default=tenant.get, editable=False)
    name = models.CharField(max_length=20)

    objects = OfTenant()
    everything = models.Manager()

    def __str__(self):
        return self.name
