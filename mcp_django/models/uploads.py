"""Files between a person and their assistants: what the person put into the admin for records, and
what an assistant exported for the person.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

#: How long a file can be used.
KEPT = timedelta(days=1)
#: Files of one person at a time.
MOST = 20
#: Bytes of a name. File systems take 255, and storages add to a name that is taken.
LONGEST_NAME = 200
SCHEME = "upload://"


def new_reference() -> str:
    return secrets.token_urlsafe(12)


class Upload(models.Model):
    """One file of one person. It stands in the database, where no web server shows it to anybody,
    and every process finds it.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="mcp_uploads"
    )
    reference = models.CharField(max_length=32, unique=True, default=new_reference, editable=False)
    filename = models.CharField("name", max_length=LONGEST_NAME, editable=False)
    data = models.BinaryField()
    size = models.PositiveIntegerField(editable=False)
    created_at = models.DateTimeField("uploaded", default=timezone.now, editable=False)

    class Meta:
        ordering = ("-created_at", "-pk")
        verbose_name = "file for assistants"
        verbose_name_plural = "files for assistants"

    def __str__(self) -> str:
        return f"{self.filename}, {self.address}"

    @property
    def address(self) -> str:
        """What an assistant writes in place of the file."""
        return SCHEME + self.reference

    def expires_at(self) -> datetime:
        return self.created_at + KEPT

    @classmethod
    def usable(cls, user: Any) -> models.QuerySet[Upload]:
        """The files of a person that have not expired."""
        return cls.objects.filter(user=user.pk, created_at__gt=timezone.now() - KEPT)

    @classmethod
    def drop_oldest(cls, user: Any) -> None:
        """Delete the files of a person but for the newest, or one could fill the database."""
        theirs = cls.objects.filter(user=user)
        kept = list(theirs.values_list("pk", flat=True)[:MOST])
        theirs.exclude(pk__in=kept).delete()

    @classmethod
    def expired(cls, now: datetime) -> models.QuerySet[Upload]:
        return cls.objects.filter(created_at__lte=now - KEPT)
