"""What a person may allow a program: what its scopes open for them, and the limits they set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.forms import (
    BooleanField,
    CheckboxSelectMultiple,
    ChoiceField,
    Form,
    MultipleChoiceField,
)
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.text import capfirst
from django.utils.timezone import template_localtime  # type: ignore[attr-defined]  # no stub
from django.utils.translation import gettext_lazy as _

from mcp_django.context import CallContext
from mcp_django.exposure.admin_bridge.rights import ADD, CHANGE, REMOVE, may
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.tools.decisions import tool_definition, tool_exists
from mcp_django.exposure.tools.records import RECORD_TOOLS
from mcp_django.handlers.tools import offered_tools
from mcp_django.oauth.models import Authorization
from mcp_django.oauth.toolkit import AllowForm, get_application_model
from mcp_django.principal import DELETE, IMPLIED, READ, SCOPES, WRITE, Principal, Restriction
from mcp_django.protocol.revisions import MODERN

#: Verbs of a model, by the scope that they need.
VERBS_BY_SCOPE = {WRITE: (ADD, CHANGE), DELETE: (REMOVE,)}
#: Days after which access ends, as people choose them. Empty: when they end it.
LIFETIMES = {"": _("Until I end it"), "1": _("For a day"), "30": _("For 30 days")}
#: As the earlier consent has it.
AS_BEFORE = "before"


@dataclass(frozen=True, kw_only=True)
class OpenedTool:
    title: str
    is_destructive: bool


@dataclass(frozen=True, kw_only=True)
class OfferedScope:
    """A scope, and what it opens for one person beside what reading opens."""

    scope: str
    description: str
    #: It is good only together with those.
    implied: frozenset[str] = frozenset()
    #: Names of kinds of records, in the plural.
    models: tuple[str, ...] = ()
    tools: tuple[OpenedTool, ...] = ()


class ScopeOffer:
    """What scopes open for the person at a page, with their own rights and nobody else's."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        users: Any = get_user_model()
        # Read anew, as a plain object of the model: code of the site gets it.
        self.user = users._default_manager.get(pk=request.user.pk)

    def models(self) -> list[tuple[str, str]]:
        """Return the labels and names of the models that the person may see."""
        return [
            (exposure.label, capfirst(str(exposure.model._meta.verbose_name_plural)))
            for exposure in self._rights(READ).exposures()
        ]

    def of_scope(self, scope: str, description: str) -> OfferedScope:
        """Return what a scope adds to reading."""
        if scope not in SCOPES:  # one of the site's own, which opens nothing here
            return OfferedScope(scope=scope, description=description)
        rights, reading = self._rights(READ, scope), self._rights(READ)
        verbs = VERBS_BY_SCOPE.get(scope, ())
        models = [
            exposure.model
            for exposure in rights.exposures()
            if scope == READ or any(may(rights, exposure.model, verb) for verb in verbs)
        ]
        plain = set() if scope == READ else {name for name, _tool in self._tools(reading)}
        return OfferedScope(
            scope=scope,
            description=description,
            implied=IMPLIED.get(scope, frozenset()),
            models=tuple(capfirst(str(model._meta.verbose_name_plural)) for model in models),
            tools=tuple(tool for name, tool in self._tools(rights) if name not in plain),
        )

    def _tools(self, rights: Rights) -> Iterator[tuple[str, OpenedTool]]:
        """Yield actions and functions. The generic tools say no more than the models do."""
        context = CallContext(
            request=self.request, principal=rights.principal, revision=MODERN[-1]
        )
        for tool in offered_tools(context, rights):
            if tool.name not in RECORD_TOOLS and tool_exists(rights, tool):
                definition = tool_definition(rights, tool)
                yield (
                    tool.name,
                    OpenedTool(
                        title=definition.title or tool.name,
                        is_destructive=definition.annotations.destructive is True,
                    ),
                )

    def _rights(self, *scopes: str) -> Rights:
        principal = Principal(user=self.user, scopes=frozenset(scopes), method="oauth")
        return Rights(self.request, principal)


class LimitsForm(Form):
    """What a person leaves of their rights to a program."""

    read_only = BooleanField(
        required=False, label=_("Read only: it can never change or delete anything")
    )
    models = MultipleChoiceField(
        required=False, widget=CheckboxSelectMultiple, label=_("Kinds of records")
    )
    later_models = BooleanField(
        required=False, initial=True, label=_("Also kinds that the site adds later")
    )
    lifetime = ChoiceField(required=False, choices=list(LIFETIMES.items()), label=_("Until when?"))

    def __init__(
        self,
        *args: Any,
        models: list[tuple[str, str]],
        earlier: Authorization | None = None,
        **kwargs: Any,
    ) -> None:
        """`models` are labels and names. The form starts with the limits of an earlier consent."""
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = self.fields
        self.labels = [label for label, _name in models]
        fields["models"].choices, fields["models"].initial = models, self.labels
        self.expires_at, self.is_limited = None, False
        if earlier is None:
            return
        fields["read_only"].initial = earlier.read_only
        if earlier.models is not None:
            fields["models"].initial, fields["later_models"].initial = earlier.models, False
        if earlier.expires_at is not None and earlier.expires_at > timezone.now():
            self.expires_at = earlier.expires_at
            words = _("Until %s, as you chose before") % date_format(
                template_localtime(self.expires_at)
            )
            fields["lifetime"].choices = [(AS_BEFORE, words), *LIFETIMES.items()]
        self.is_limited = earlier.restriction != Restriction() or self.expires_at is not None

    def limits(self) -> dict[str, Any]:
        """Return values for columns: of a valid form."""
        chosen = {*self.cleaned_data["models"]}
        is_all = self.cleaned_data["later_models"] and chosen.issuperset(self.labels)
        expires_at, lifetime = self.expires_at, self.cleaned_data["lifetime"]
        if lifetime != AS_BEFORE:
            expires_at = timezone.now() + timedelta(days=int(lifetime)) if lifetime else None
        return {
            "read_only": self.cleaned_data["read_only"],
            "models": None if is_all else [label for label in self.labels if label in chosen],
            "expires_at": expires_at,
        }


class ConsentForm(LimitsForm, AllowForm):  # type: ignore[misc]  # untyped base
    """The toolkit's form, with limits."""

    def clean_client_id(self) -> str:
        client_id: str = self.cleaned_data["client_id"]
        if not get_application_model().objects.filter(client_id=client_id).exists():
            raise ValidationError("There is no such client.")
        return client_id
