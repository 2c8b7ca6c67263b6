"""The form that chooses whose assistants are looked at: a user's, or those with one token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.forms import CharField, Form, ModelChoiceField, TextInput
from django.http import HttpRequest

from mcp_django.admin.as_user import people, visible_person
from mcp_django.admin.callers import principal_of_page, principal_with_all_scopes
from mcp_django.auth.personal_tokens import principal_of
from mcp_django.auth.users import is_active
from mcp_django.exposure.decisions import decisions
from mcp_django.models import PersonalToken
from mcp_django.principal import Principal

if TYPE_CHECKING:
    TokenChoiceField = ModelChoiceField[PersonalToken]
else:
    TokenChoiceField = ModelChoiceField  # it takes no subscript when it runs

#: Names to choose from as somebody types, and tokens to choose from.
MOST_NAMES, MOST_TOKENS = 50, 200
NOBODY = "There is no such user whom you may see."


class TokenField(TokenChoiceField):
    def label_from_instance(self, token: Any) -> str:
        return f"{token.user.get_username()}: {token} (mcp_{token.hint}…, {token.state()})"


class ChoosingForm(Form):
    """Nothing chosen: oneself."""

    username = CharField(
        required=False,
        label="User",
        max_length=254,
        help_text="Empty: yourself.",
        widget=TextInput(attrs={"list": "mcp-usernames", "autocomplete": "off"}),
    )
    token = TokenField(
        queryset=PersonalToken.objects.none(),
        required=False,
        label="or personal token",
        help_text="What its scopes and limits leave of the rights of its user.",
        empty_label="None",
    )

    def __init__(self, model_admin: Any, request: HttpRequest, data: Any = None) -> None:
        super().__init__(data)
        self.model_admin, self.request = model_admin, request
        tokens: Any = self.fields["token"]
        tokens.queryset = tokens_for(model_admin, request)
        users = get_user_model()
        found = people(model_admin, request).order_by(users.USERNAME_FIELD)
        self.usernames = list(found.values_list(users.USERNAME_FIELD, flat=True)[:MOST_NAMES])

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        username, token = cleaned.get("username", ""), cleaned.get("token")
        if username and token is not None:
            self.add_error("token", "Choose a user or a token, not both.")
        elif username or token is not None:
            name = username if token is None else token.user.get_username()
            self.person = self.find(name)
            if self.person is None:
                self.add_error("username" if username else "token", NOBODY)
        return cleaned

    def find(self, username: str) -> Any:
        """The user of this name, or None. People always find themselves."""
        if username == self.request.user.get_username():
            return principal_of_page(self.request).user
        return visible_person(self.model_admin, self.request, username)

    def chosen(self) -> Chosen:
        """Who is meant. Valid forms only."""
        token = self.cleaned_data.get("token")
        if token is not None:
            # Read anew: code of the site gets this object.
            token = PersonalToken.objects.select_related("user").get(pk=token.pk)
            state = token.state()
            dead = "" if state == "active" else f"This token is {state}: it opens nothing."
            return chosen(principal_of(token), f"token {token} of {token.user}", problem=dead)
        if not self.cleaned_data.get("username"):
            principal = principal_of_page(self.request)
            return Chosen(principal=principal, name="you", is_self=True)
        return chosen(principal_with_all_scopes(self.person), self.person.get_username())


@dataclass(frozen=True, kw_only=True)
class Chosen:
    principal: Principal
    name: str
    is_self: bool = False
    #: Why nothing at all is there.
    problem: str = ""


def chosen(principal: Principal, name: str, *, problem: str = "") -> Chosen:
    if not is_active(principal.user):
        problem = "This user may not act: no credential of the user opens anything."
    elif principal.user.pk in decisions(principal.server).blocked_users:
        problem = "Staff blocked this user: no credential of the user opens anything."
    return Chosen(principal=principal, name=name, problem=problem)


def tokens_for(model_admin: Any, request: HttpRequest) -> QuerySet[PersonalToken]:
    """Those that the token admin of the same site shows to the person."""
    token_admin = model_admin.admin_site._registry.get(PersonalToken)
    if token_admin is None or not token_admin.has_view_permission(request):
        return PersonalToken.objects.none()
    found: QuerySet[PersonalToken] = token_admin.get_queryset(request)
    newest = found.order_by("-created_at", "-pk").values_list("pk", flat=True)[:MOST_TOKENS]
    return PersonalToken.objects.filter(pk__in=list(newest)).select_related("user")
