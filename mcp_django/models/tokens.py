"""Personal tokens: credentials that a user makes for a program."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import (
    CASCADE,
    BooleanField,
    CharField,
    DateTimeField,
    ForeignKey,
    JSONField,
    Model,
)
from django.utils import timezone

from mcp_django.conf import get_config
from mcp_django.principal import DEFAULT_SERVER, READ, SCOPES, Restriction
from mcp_django.signing import digest_of
from mcp_django.token_secrets import hint_of, new_secret


def default_expiry() -> datetime:
    config = get_config()
    return timezone.now() + timedelta(days=min(config.token_days, config.token_max_days))


def validate_scopes(value: object) -> None:
    if not isinstance(value, list) or not value:
        raise ValidationError('Give scopes as a list, such as ["mcp:read"].')
    strange = [scope for scope in value if scope not in SCOPES]
    if strange:
        raise ValidationError(f"Unknown scope {strange[0]!r}. Use some of: {', '.join(SCOPES)}.")


def validate_models(value: object) -> None:
    if not isinstance(value, list) or not all(
        isinstance(label, str) and label.count(".") == 1 and label == label.lower()
        for label in value
    ):
        raise ValidationError('Give models as a list of labels in lower case, as ["shop.order"].')


class PersonalToken(Model):
    """A credential of one user. The secret itself is shown once and stored nowhere."""

    server = CharField(max_length=50, default=DEFAULT_SERVER, editable=False)
    user = ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=CASCADE, related_name="mcp_personal_tokens"
    )
    name = CharField(max_length=100, help_text="The program that will use it.")
    digest = CharField(max_length=64, unique=True, editable=False)
    hint = CharField("first characters", max_length=10, editable=False)
    scopes = JSONField(default=list, validators=[validate_scopes])
    read_only = BooleanField("read-only", default=False, help_text="Nothing can be changed.")
    models = JSONField(
        null=True,
        blank=True,
        validators=[validate_models],
        help_text="The only models that exist for it. None chosen: no such limit.",
    )
    created_at = DateTimeField("created", default=timezone.now, editable=False)
    expires_at = DateTimeField("expires", default=default_expiry)
    last_used_at = DateTimeField("last used", null=True, editable=False)
    revoked_at = DateTimeField("revoked", null=True, editable=False)

    class Meta:
        ordering = ("-created_at", "-pk")
        permissions = (("manage_all_tokens", "Can see and make personal tokens of other people"),)

    def __str__(self) -> str:
        return self.name or f"mcp_{self.hint}…"

    @classmethod
    def create(
        cls,
        *,
        user: Any,
        name: str,
        scopes: Iterable[str] = (READ,),
        read_only: bool = False,
        models: Iterable[str] | None = None,
        expires_at: datetime | None = None,
        server: str = DEFAULT_SERVER,
    ) -> tuple[PersonalToken, str]:
        """A new token and its secret, which exists nowhere else. Raises ValidationError."""
        token = cls(
            user=user,
            name=name,
            scopes=list(scopes),
            read_only=read_only,
            models=None if models is None else [label.lower() for label in models],
            expires_at=expires_at or default_expiry(),
            server=server,
        )
        secret = token.set_secret()
        token.clean_fields(exclude={"user"})
        token.clean()
        token.save(force_insert=True)
        return token, secret

    def set_secret(self) -> str:
        """Make the secret and keep its digest. Returns it; save the token afterwards."""
        secret = new_secret()
        self.digest, self.hint = digest_of(secret), hint_of(secret)
        return secret

    def clean(self) -> None:
        if not self._state.adding or self.expires_at is None:
            return
        longest = get_config().token_max_days
        if self.expires_at <= timezone.now():
            raise ValidationError({"expires_at": "Choose a date in the future."})
        if self.expires_at > self.created_at + timedelta(days=longest):
            raise ValidationError({"expires_at": f"A token lives {longest} days at most."})

    @property
    def restriction(self) -> Restriction:
        models = None if self.models is None else frozenset(self.models)
        return Restriction(read_only=self.read_only, models=models)

    def state(self) -> str:
        """ "active", "expired" or "revoked"."""
        if self.revoked_at is not None:
            return "revoked"
        return "active" if timezone.now() < self.expires_at else "expired"

    def revoke(self) -> None:
        """End it now. Nothing happens if that was done before."""
        if self.revoked_at is None:
            self.revoked_at = timezone.now()
            self.save(update_fields=["revoked_at"])
