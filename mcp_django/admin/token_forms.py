"""The form that makes a personal token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.forms import CheckboxSelectMultiple, ModelForm, MultipleChoiceField, SelectMultiple

from mcp_django.exposure.overrides import exposed_by
from mcp_django.exposure.registry import registry
from mcp_django.models import PersonalToken
from mcp_django.principal import ACTION, DEFAULT_SERVER, DELETE, READ, SCOPES, WRITE

WORDS = {
    READ: "Read records",
    WRITE: "Create and change records",
    DELETE: "Delete records",
    ACTION: "Run admin actions and other tools",
}


def exposed_models() -> list[tuple[str, str]]:
    return [
        (exposure.label, f"{exposure.model._meta.verbose_name_plural} ({exposure.label})")
        for exposure in exposed_by(registry, DEFAULT_SERVER).exposures.values()
    ]


if TYPE_CHECKING:
    TokenModelForm = ModelForm[PersonalToken]
else:
    TokenModelForm = ModelForm  # it takes no subscript when it runs


class TokenForm(TokenModelForm):
    scopes = MultipleChoiceField(
        choices=[(scope, f"{WORDS[scope]} ({scope})") for scope in SCOPES],
        initial=[READ],
        widget=CheckboxSelectMultiple,
        help_text="What the token is good for, within the rights of its user.",
    )
    models = MultipleChoiceField(
        choices=exposed_models,
        required=False,
        widget=SelectMultiple,
        label="Only these models",
        help_text="None chosen: every model that its user may see.",
    )

    class Meta:
        model = PersonalToken
        fields = ("user", "name", "scopes", "read_only", "models", "expires_at")

    def clean_models(self) -> Any:
        return self.cleaned_data["models"] or None
