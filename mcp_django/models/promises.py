"""What may happen only once: confirmations that were used, and creations that were answered."""

from __future__ import annotations

from django.db.models import CharField, DateTimeField, JSONField, Model, UniqueConstraint
from django.utils import timezone


class SpentConfirmation(Model):
    """A confirmation, or an answer of a person, that was used. It is good for nothing else."""

    digest = CharField(max_length=64, unique=True)
    #: After this nobody could use it anyway, and the row may go.
    expires_at = DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.digest[:12]


class IdempotentAnswer(Model):
    """What was answered to a call with an idempotency key, for those who send it again."""

    principal = CharField(max_length=200)
    tool = CharField(max_length=40)
    key = CharField(max_length=64)
    #: Of the arguments: the key with others is refused.
    digest = CharField(max_length=64)
    answer = JSONField()
    created_at = DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = [
            UniqueConstraint(fields=["principal", "tool", "key"], name="mcp_one_answer_per_key")
        ]

    def __str__(self) -> str:
        return f"{self.tool} {self.key}"
