"""What staff decide about models, tools and prompts, and what every process must know of it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.constraints import CheckConstraint, UniqueConstraint

from mcp_django.levels import Level
from mcp_django.principal import DEFAULT_SERVER

#: Characters of a text that every model reads: it costs each client each time.
LONGEST_NOTE = 1000


class ExposureGeneration(models.Model):
    """A number that rises whenever something kept in memory may have become wrong."""

    server = models.CharField(max_length=50, unique=True, default=DEFAULT_SERVER)
    number = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.server}: {self.number}"


def validate_names(value: object) -> None:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValidationError('Give names as a list, such as ["number", "customer__country"].')


def names(verbose_name: str) -> models.JSONField[Any, Any]:
    """Names out of those that code allows. Null: all of those, also when code adds some."""
    return models.JSONField(verbose_name, null=True, blank=True, validators=[validate_names])


def only_groups() -> models.ManyToManyField[Group, Group]:
    return models.ManyToManyField(
        Group,
        blank=True,
        related_name="+",
        help_text="Only people in these groups have it. None chosen: everybody.",
    )


class ExposedModel(models.Model):
    """What staff decided about one model. It narrows what code allows and never widens it."""

    server = models.CharField(max_length=50, default=DEFAULT_SERVER, editable=False)
    #: Not a ContentType: those go stale, and differ between databases.
    label = models.CharField("model", max_length=150, help_text='Such as "shop.order".')
    level = models.PositiveSmallIntegerField(
        choices=Level.choices, null=True, blank=True, help_text="Empty: as in code."
    )
    fields = names("fields that records show")
    write_fields = names("fields that may be set")
    filter_fields = names("fields that filters may use")
    order_fields = names("fields that records may be ordered by")
    group_fields = names("fields that aggregates may group by")
    label_fields = names("fields that stand for a record where others refer to it")
    untrusted_fields = names("fields that people outside the site fill in")
    follow_relations = models.BooleanField(
        null=True,
        blank=True,
        help_text="Paths like customer__name, from or through here. Unknown: as in code.",
    )
    groups = only_groups()
    notes = models.TextField(
        blank=True,
        max_length=LONGEST_NOTE,
        help_text='What assistants should know, such as "state 7 means refunded".',
    )

    class Meta:
        ordering = ("label",)
        constraints = [
            UniqueConstraint(fields=["server", "label"], name="mcp_one_row_per_model"),
            CheckConstraint(
                condition=models.Q(level=None) | models.Q(level__lte=5), name="mcp_model_level"
            ),
        ]
        permissions = (("inspect_as", "Can see what assistants of other people see"),)

    def __str__(self) -> str:
        return self.label


#: Annotations that staff may set, and only to this: towards what asks for more care.
STRICTER = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}


def validate_annotations(value: object) -> None:
    if not isinstance(value, dict) or any(STRICTER.get(key) is not value[key] for key in value):
        raise ValidationError("Annotations can only be made stricter.")


class ExposedTool(models.Model):
    """What staff decided about one tool."""

    server = models.CharField(max_length=50, default=DEFAULT_SERVER, editable=False)
    name = models.CharField(max_length=40)
    enabled = models.BooleanField(null=True, blank=True, help_text="Unknown: as in code.")
    title = models.CharField(max_length=100, blank=True, help_text="Empty: as in code.")
    description = models.TextField(
        blank=True,
        max_length=LONGEST_NOTE,
        help_text="Empty: as in code. Models follow it.",
    )
    annotations = models.JSONField(default=dict, blank=True, validators=[validate_annotations])
    needs_confirmation = models.BooleanField(
        default=False, help_text="Ask before it runs, also where code does not."
    )
    calls_per_minute = models.PositiveIntegerField(
        null=True, blank=True, help_text="For each user. Empty: only the limit over all tools."
    )
    groups = only_groups()

    class Meta:
        ordering = ("name",)
        constraints = [UniqueConstraint(fields=["server", "name"], name="mcp_one_row_per_tool")]
        permissions = (("try_tools", "Can try tools in the admin"),)

    def __str__(self) -> str:
        return self.name


class ExposedPrompt(models.Model):
    """What staff decided about one prompt of code or of a file. Stored ones have fields for it."""

    server = models.CharField(max_length=50, default=DEFAULT_SERVER, editable=False)
    name = models.CharField(max_length=100)
    enabled = models.BooleanField(null=True, blank=True, help_text="Unknown: as in code.")
    title = models.CharField(max_length=100, blank=True, help_text="Empty: as in code.")
    description = models.TextField(
        blank=True, max_length=LONGEST_NOTE, help_text="Empty: as in code. People read it."
    )
    groups = only_groups()

    class Meta:
        ordering = ("name",)
        constraints = [UniqueConstraint(fields=["server", "name"], name="mcp_one_row_per_prompt")]

    def __str__(self) -> str:
        return self.name


class ServerSettings(models.Model):
    """What staff decided about the whole server."""

    server = models.CharField(max_length=50, unique=True, default=DEFAULT_SERVER, editable=False)
    instructions = models.TextField(
        blank=True, max_length=8000, help_text="Told to every client. Empty: as in the settings."
    )
    read_only = models.BooleanField(
        "read-only", default=False, help_text="Nothing can be changed."
    )
    closed = models.BooleanField(
        default=False, help_text="Every call is refused. Streams and sessions end at once."
    )

    class Meta:
        verbose_name_plural = "server settings"

    def __str__(self) -> str:
        return self.server


class UserRestriction(models.Model):
    """Limits of all assistants of one user, whatever their credentials allow."""

    server = models.CharField(max_length=50, default=DEFAULT_SERVER, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    read_only = models.BooleanField("read-only", default=True, help_text="Nothing can be changed.")
    blocked = models.BooleanField(
        default=False, help_text="All credentials are refused. Streams and sessions end at once."
    )

    class Meta:
        constraints = [
            UniqueConstraint(fields=["server", "user"], name="mcp_one_restriction_per_user")
        ]

    def __str__(self) -> str:
        return str(self.user)
