"""Prompts that staff write in the admin, with every version they ever had."""

from __future__ import annotations

import re

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.constraints import UniqueConstraint
from django.utils import timezone

from mcp_django.models.exposure import only_groups
from mcp_django.principal import DEFAULT_SERVER

PROMPT_NAME = re.compile(r"^[a-z][a-z0-9_]{0,39}\Z")


class PromptTemplate(models.Model):
    """A stored prompt. What it says is its version with the highest number."""

    server = models.CharField(max_length=50, default=DEFAULT_SERVER, editable=False)
    name = models.CharField(
        max_length=40,
        help_text=(
            "What people type in their client, such as reply_to_customer: small letters, digits "
            "and underscores, beginning with a letter."
        ),
        validators=[RegexValidator(PROMPT_NAME, "Use small letters, digits and underscores.")],
    )
    title = models.CharField(max_length=100, blank=True)
    description = models.TextField(blank=True, max_length=1000)
    enabled = models.BooleanField(default=True)
    groups = only_groups()

    class Meta:
        ordering = ("name",)
        constraints = [UniqueConstraint(fields=["server", "name"], name="mcp_one_prompt_per_name")]
        permissions = (("preview_as_user", "Can preview prompts as another user"),)

    def __str__(self) -> str:
        return self.name


class PromptVersion(models.Model):
    """What a prompt said from one save to the next. Never changed: going back makes a new one."""

    template = models.ForeignKey(PromptTemplate, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    #: As `mcp_django.exposure.prompts.stored` reads them: name, type, title, required, and so on.
    arguments = models.JSONField(default=list, blank=True)
    #: Each with a role and a text in Django's template language, or the URI of a resource.
    messages = models.JSONField(default=list)
    created_at = models.DateTimeField("saved", default=timezone.now, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        editable=False,
    )
    comment = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ("-number",)
        constraints = [
            UniqueConstraint(fields=["template", "number"], name="mcp_one_version_per_number")
        ]

    def __str__(self) -> str:
        return f"{self.template.name} {self.number}"
