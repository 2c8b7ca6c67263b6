"""What staff take away from single users."""

from __future__ import annotations

from django.conf import settings
from django.db.models import CASCADE, BooleanField, CharField, ForeignKey, Model, UniqueConstraint

from mcp_django.principal import DEFAULT_SERVER


class UserRestriction(Model):
    """Limits of all assistants of one user, whatever their credentials allow."""

    server = CharField(max_length=50, default=DEFAULT_SERVER, editable=False)
    user = ForeignKey(settings.AUTH_USER_MODEL, on_delete=CASCADE, related_name="+")
    read_only = BooleanField("read-only", default=True, help_text="Nothing can be changed.")
    blocked = BooleanField(
        default=False, help_text="No credential is good. Streams and sessions end at once."
    )

    class Meta:
        constraints = [
            UniqueConstraint(fields=["server", "user"], name="mcp_one_restriction_per_user")
        ]

    def __str__(self) -> str:
        return str(self.user)
