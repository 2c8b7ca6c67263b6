"""What assistants did, and what of it may be done only once."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.constraints import UniqueConstraint
from django.utils import timezone

from mcp_django.principal import DEFAULT_SERVER


class CallRecord(models.Model):
    """One call, written after it: who, what and how it ended. Never what was answered."""

    class Kind(models.TextChoices):
        TOOL = "tool", "tool"
        RESOURCE = "resource", "resource"
        PROMPT = "prompt", "prompt"
        OTHER = "other", "other"

    class Outcome(models.TextChoices):
        DONE = "done", "done"
        #: Somebody was asked first, and nothing was done yet.
        ASKED = "asked", "asked"
        #: Nothing was done: the person did not agree, or it is impossible.
        REFUSED = "refused", "refused"
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

    server = models.CharField(max_length=50, default=DEFAULT_SERVER)
    at = models.DateTimeField("time", default=timezone.now)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    #: Stays when the user is deleted.
    principal = models.CharField(max_length=200)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_constraint=False,
        db_index=False,  # the index below begins with it
    )
    #: As the client calls itself.
    client = models.CharField(max_length=100, blank=True)
    method = models.CharField(max_length=60)
    #: The tool, prompt or URI.
    target = models.CharField(max_length=300, blank=True)
    outcome = models.CharField(max_length=10, choices=Outcome.choices)
    #: Why it was not done: the kind of failure, and names in the call. Never a value.
    # The default of the database is for processes that still run the code of before it.
    reason = models.CharField(max_length=200, blank=True, default="", db_default="")
    milliseconds = models.PositiveIntegerField(default=0)
    rows = models.PositiveIntegerField(null=True)
    #: The label of the model whose records a call wrote, or was to write.
    model = models.CharField(max_length=200, blank=True, default="", db_default="")
    #: The keys of these records as texts, as many as there is room for: a list in JSON.
    keys = models.CharField(max_length=1000, blank=True, default="", db_default="")
    bytes = models.PositiveBigIntegerField(default=0)
    correlation_id = models.CharField(max_length=32, blank=True)
    #: Redacted and cut, and only where the settings ask for them.
    arguments = models.JSONField(null=True)

    class Meta:
        ordering = ("-at", "-pk")
        indexes = [
            models.Index(fields=["at"], name="mcp_call_at"),
            models.Index(fields=["user", "at"], name="mcp_call_user"),
        ]

    def __str__(self) -> str:
        return f"{self.method} {self.target}".strip()


class Assistants(CallRecord):
    """The row in the admin that leads to the pages about assistants. Nothing is stored for it."""

    class Meta:
        # Not unmanaged: `dumpdata` would ask for a table.
        proxy = True
        default_permissions = ()
        # Of what a cache remembers, which has no model.
        permissions = [
            ("view_session", "Can view sessions"),
            ("delete_session", "Can end sessions"),
            ("view_livestream", "Can view streams"),
            ("delete_livestream", "Can end streams"),
        ]
        verbose_name = verbose_name_plural = "assistants"


# What may happen only once: confirmations that were used, and calls that were answered.


class SpentConfirmation(models.Model):
    """A confirmation, or an answer of a person, that was used. It is good for nothing else."""

    digest = models.CharField(max_length=64, unique=True)
    #: After this nobody could use it anyway, and the row may go.
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.digest[:12]


class IdempotentAnswer(models.Model):
    """What was answered to a call with an idempotency key, for those who send it again."""

    principal = models.CharField(max_length=200)
    tool = models.CharField(max_length=40)
    key = models.CharField(max_length=64)
    #: Of the arguments: the key with others is refused.
    digest = models.CharField(max_length=64)
    answer = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = [
            UniqueConstraint(fields=["principal", "tool", "key"], name="mcp_one_answer_per_key")
        ]

    def __str__(self) -> str:
        return f"{self.tool} {self.key}"
