"""What assistants did."""

from __future__ import annotations

from django.conf import settings
from django.db.models import (
    SET_NULL,
    CharField,
    DateTimeField,
    ForeignKey,
    Index,
    JSONField,
    Model,
    PositiveBigIntegerField,
    PositiveIntegerField,
    TextChoices,
)
from django.utils import timezone

from mcp_django.principal import DEFAULT_SERVER


class CallRecord(Model):
    """One call, written after it: who, what and how it ended. Never what was answered."""

    class Kind(TextChoices):
        TOOL = "tool", "tool"
        RESOURCE = "resource", "resource"
        PROMPT = "prompt", "prompt"
        OTHER = "other", "other"

    class Outcome(TextChoices):
        DONE = "done", "done"
        #: Somebody was asked first, and nothing was done yet.
        ASKED = "asked", "asked"
        #: The tool ran and could not do it: the model was told why.
        FAILED = "failed", "failed"
        #: Not allowed, or not there for this caller.
        DENIED = "denied", "denied"
        #: More often than is allowed.
        LIMITED = "limited", "limited"
        #: The client broke a rule of the protocol.
        INVALID = "invalid", "invalid"
        #: Our bug, or the site's: see the log for the correlation id.
        CRASHED = "crashed", "crashed"
        #: Nobody waited for the answer any more. What was begun may have taken effect.
        CANCELLED = "cancelled", "cancelled"

    server = CharField(max_length=50, default=DEFAULT_SERVER)
    at = DateTimeField(default=timezone.now)
    kind = CharField(max_length=10, choices=Kind.choices)
    #: Stays when the user is deleted.
    principal = CharField(max_length=200)
    user = ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=SET_NULL,
        related_name="+",
        db_constraint=False,
        db_index=False,  # the index below begins with it
    )
    #: As the client calls itself.
    client = CharField(max_length=100, blank=True)
    method = CharField(max_length=60)
    #: The tool, prompt or URI.
    target = CharField(max_length=300, blank=True)
    outcome = CharField(max_length=10, choices=Outcome.choices)
    milliseconds = PositiveIntegerField(default=0)
    rows = PositiveIntegerField(null=True)
    bytes = PositiveBigIntegerField(default=0)
    correlation_id = CharField(max_length=32, blank=True)
    #: Redacted and cut, and only where the settings ask for them.
    arguments = JSONField(null=True)

    class Meta:
        ordering = ("-at", "-pk")
        indexes = [
            Index(fields=["at"], name="mcp_call_at"),
            Index(fields=["user", "at"], name="mcp_call_user"),
        ]

    def __str__(self) -> str:
        return f"{self.method} {self.target}".strip()
