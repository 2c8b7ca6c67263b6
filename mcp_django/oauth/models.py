"""What people allowed a client: one row for a user, a client and a resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.conf import settings
from django.db.models import (
    CASCADE,
    BooleanField,
    CharField,
    DateTimeField,
    ForeignKey,
    JSONField,
    Manager,
    Model,
    Q,
    UniqueConstraint,
)
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from mcp_django.auth.authenticators import is_active
from mcp_django.principal import Restriction
from mcp_django.signing import digest_of

APPLICATION_MODEL = getattr(
    settings, "OAUTH2_PROVIDER_APPLICATION_MODEL", "oauth2_provider.Application"
)


def password_state(user: Any) -> str:
    """Return what changes with the password of a user, as Django's sessions have it."""
    return user.get_session_auth_hash() if hasattr(user, "get_session_auth_hash") else ""


def has_password_state(user: Any, state: str) -> bool:
    """Return whether the password is still the same. SECRET_KEY may have changed since."""
    earlier = getattr(user, "get_session_auth_fallback_hash", tuple)
    return any(constant_time_compare(state, now) for now in (password_state(user), *earlier()))


def in_force() -> Q:
    """Return a condition: not ended, and not expired."""
    return Q(ended_at=None) & (Q(expires_at=None) | Q(expires_at__gt=timezone.now()))


class Authorization(Model):
    """A person's consent. Every token of the client for this person depends on it.

    A token is good while the authorization is in force and the password is the one of the consent.
    It opens no more than the authorization, whatever was allowed when the token was made.
    """

    user = ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=CASCADE, related_name="mcp_authorizations"
    )
    # Migrations name the setting of a model that may be swapped, and few sites have this one.
    application: ForeignKey[Any, Any] = ForeignKey(
        APPLICATION_MODEL,
        on_delete=CASCADE,
        related_name="mcp_authorizations",
        swappable=False,
    )
    resource = CharField(max_length=500)
    scopes = JSONField(default=list)
    read_only = BooleanField("read-only", default=False)
    #: Labels of the only models that exist for the client. None: no such limit.
    models = JSONField(null=True, default=None)
    consented_at = DateTimeField(default=timezone.now)
    ended_at = DateTimeField(null=True, default=None)
    expires_at = DateTimeField(null=True, default=None)
    last_used_at = DateTimeField(null=True, default=None)
    password_state = CharField(max_length=200, default="", editable=False)
    #: Of the last code, so that one that comes back is known.
    code_digest = CharField(max_length=64, default="", editable=False)

    # By name for type checkers, which do not know the model of the application.
    objects: ClassVar[Manager[Any]] = Manager()

    class Meta:
        constraints = [
            UniqueConstraint(
                fields=["user", "application", "resource"], name="mcp_django_oauth_one_consent"
            )
        ]

    def __str__(self) -> str:
        return f"{self.application} for {self.user}"

    @classmethod
    def grant(
        cls,
        *,
        user: Any,
        application: Any,
        resource: str,
        scopes: list[str],
        code: str,
        limits: Mapping[str, Any],
    ) -> None:
        """Store a consent, in the place of any before it. Call it before the code is stored.

        Codes and tokens of one that does not hold any more are deleted: a new consent brings
        nothing back to life. `limits` are values of `read_only`, `models` and `expires_at`.
        """
        key = {"user": user, "application": application, "resource": resource}
        earlier = cls.objects.filter(**key).first()
        if earlier is None or not earlier.holds_for(user):
            # Not at the top: the toolkit may be an app that is loaded later.
            from mcp_django.oauth.toolkit import delete_tokens

            delete_tokens(user, application, resource)
        cls.objects.update_or_create(
            **key,
            defaults={
                **limits,
                "scopes": scopes,
                "consented_at": timezone.now(),
                "ended_at": None,
                "password_state": password_state(user),
                "code_digest": digest_of(code),
            },
        )

    def holds_for(self, user: Any) -> bool:
        """Return whether codes and tokens of this user are still good."""
        is_of_user = is_active(user) and has_password_state(user, self.password_state)
        return self.is_in_force and is_of_user

    @property
    def is_in_force(self) -> bool:
        return self.ended_at is None and (
            self.expires_at is None or timezone.now() < self.expires_at
        )

    @property
    def restriction(self) -> Restriction:
        models = None if self.models is None else frozenset(self.models)
        return Restriction(read_only=self.read_only, models=models)

    def end(self) -> None:
        """Refuse all codes and tokens that exist, from now on and for good."""
        self.ended_at = timezone.now()
        self.save(update_fields=["ended_at"])
