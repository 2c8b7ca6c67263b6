from __future__ import annotations

from django.db import models
from rest_framework_api_key.models import AbstractAPIKey


class PartnerKey(AbstractAPIKey):
    """A model of the site made of that of a package."""

    partner = models.CharField(max_length=50)


class Account(models.Model):
    """Names that tell what is in them, and names that only look like it."""

    name = models.CharField(max_length=50)
    login_pwd = models.CharField(max_length=50)
    recovery_codes = models.CharField(max_length=50)
    session_jwt = models.CharField(max_length=50)
    database_dsn = models.CharField(max_length=50)
    backup_time = models.CharField(max_length=50)
    seeds = models.CharField(max_length=50)
