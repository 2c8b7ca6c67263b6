"""Calls with the rights of somebody else: who may be chosen, and what that person would get."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib.auth import get_user_model
from django.forms import CharField, Form, ModelChoiceField, TextInput
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from mcp_django.admin.pages import visible_rows
from mcp_django.auth.authenticators import is_active, principal_of
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.decisions import decisions
from mcp_django.exposure.inspection import OwnRights
from mcp_django.exposure.permissions import Rights
from mcp_django.models import PersonalToken
from mcp_django.principal import READ, SCOPES, Principal
from mcp_django.protocol.revisions import MODERN
from mcp_django.transports.middleware import loaded
from mcp_django.transports.requests import furnish

# The person at a page, as a caller and as somebody who looks at other callers.


def principal_with_all_scopes(user: Any) -> Principal:
    """What the user may do, with no limit that credentials have."""
    return Principal(user=user, scopes=frozenset(SCOPES), method="admin", client="admin")


def principal_of_page(request: HttpRequest) -> Principal:
    """Whoever is logged in."""
    users: Any = get_user_model()
    # Read anew, as a plain object of the model: code of the site gets it.
    return principal_with_all_scopes(users._default_manager.get(pk=request.user.pk))


def viewer_of(request: HttpRequest) -> OwnRights:
    """The rights of the person at the page: the page's own request has passed the middleware."""
    viewer = OwnRights(Rights(request, principal_of_page(request)))
    # Before the middleware of the site runs for somebody else: it may set whose tenant's rows
    # managers give to whoever asks after it.
    for model in viewer.registry.candidates:
        viewer.may_view(model)
    return viewer


Found = TypeVar("Found")

#: Of the page's request. Nothing that identifies the person who looks.
KEPT = ("HTTP_HOST", "SERVER_NAME", "SERVER_PORT", "REMOTE_ADDR", "wsgi.url_scheme")


def may_more_than(person: Any, viewer: Any) -> bool:
    if getattr(viewer, "is_superuser", False):
        return False
    is_superuser = getattr(person, "is_superuser", False)
    return is_superuser or not person.get_all_permissions() <= viewer.get_all_permissions()


def reader(person: Any) -> Principal:
    """The user with a credential that is good for reading."""
    return Principal(user=person, scopes=frozenset({READ}), method="admin")


def call_as(
    principal: Principal, request: HttpRequest, work: Callable[[CallContext, Rights], Found]
) -> Found:
    """What the work returns or raises, in a call by that principal through the site's middleware.

    Raises ToolError where middleware answers in its place.
    """
    made = request_of(principal.user, request)
    outcomes: list[Future[Found]] = []

    def innermost(inner: HttpRequest) -> HttpResponseBase:
        inner.user = principal.user
        caller = replace(principal, caches={})
        context = CallContext(request=inner, principal=caller, revision=MODERN[-1])
        outcome: Future[Found] = Future()
        outcomes.append(outcome)
        # Middleware must not see what the work raises: it would make a page of it.
        try:
            outcome.set_result(work(context, Rights(inner, caller)))
        except Exception as error:  # raised again outside
            outcome.set_exception(error)
        return HttpResponse()

    chain = loaded.chain()
    # The response is not closed: that would close the connection of the page's own request.
    _ = innermost(made) if chain is None else chain(made, innermost)
    if not outcomes:
        raise ToolError("Middleware of this site answers in place of the call.")
    return outcomes[0].result()


def request_of(person: Any, request: HttpRequest) -> HttpRequest:
    """A request of nobody's browser. What the viewer's own request carries stays out of it."""
    made = HttpRequest()
    made.method = "POST"
    made.path = made.path_info = request.path
    made.META = {name: request.META[name] for name in KEPT if name in request.META}
    made._body = b""  # there are no bytes to read
    made.user = person
    furnish(made)
    return made


# The form that chooses whose assistants are looked at: a user's, or those with one token.

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
        help_text="Leave it empty for yourself.",
        widget=TextInput(attrs={"list": "mcp-usernames", "autocomplete": "off"}),
    )
    token = TokenField(
        queryset=PersonalToken.objects.none(),
        required=False,
        label="or personal token",
        help_text="What the scopes and limits of the token allow its user.",
        empty_label="None",
    )

    def __init__(self, model_admin: Any, request: HttpRequest, data: Any = None) -> None:
        super().__init__(data)
        self.user_admin = model_admin.admin_site._registry.get(get_user_model())
        self.request = request
        #: Who was named. None: nobody, or nobody who may be looked at.
        self.person: Any = None
        fields: dict[str, Any] = self.fields
        if "token" in fields:
            tokens = visible_rows(model_admin, request, PersonalToken)
            newest = tokens.order_by("-created_at", "-pk").values_list("pk", flat=True)
            own = PersonalToken.objects.filter(pk__in=list(newest[:MOST_TOKENS]))
            fields["token"].queryset = own.select_related("user")
        self.people = visible_rows(model_admin, request, get_user_model())
        name = get_user_model().USERNAME_FIELD
        self.usernames = list(self.people.order_by(name).values_list(name, flat=True)[:MOST_NAMES])

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
        """Return the user of this name whom the person may see, or None. All find themselves."""
        if username == self.request.user.get_username():
            return principal_of_page(self.request).user
        users = get_user_model()
        person = self.people.filter(**{users.USERNAME_FIELD: username}).first()
        if person is None or not self.user_admin.has_view_permission(self.request, person):
            return None
        # A plain object of the model: code of the site gets the one that calls get.
        return users._default_manager.get(pk=person.pk)

    def chosen(self) -> ChosenCaller:
        """Who is meant. Valid forms only."""
        token = self.cleaned_data.get("token")
        if token is not None:
            # Read anew: code of the site gets this object.
            token = PersonalToken.objects.select_related("user").get(pk=token.pk)
            state = token.state()
            dead = "" if state == "active" else f"This token is {state}: it opens nothing."
            return chosen_caller(
                principal_of(token), f"token {token} of {token.user}", problem=dead
            )
        if not self.cleaned_data.get("username"):
            principal = principal_of_page(self.request)
            return ChosenCaller(principal=principal, name="you", is_self=True)
        return chosen_caller(principal_with_all_scopes(self.person), self.person.get_username())


@dataclass(frozen=True, kw_only=True)
class ChosenCaller:
    principal: Principal
    name: str
    is_self: bool = False
    #: Why nothing at all is there.
    problem: str = ""


def chosen_caller(principal: Principal, name: str, *, problem: str = "") -> ChosenCaller:
    if not is_active(principal.user):
        problem = "This user may not act: no credential of the user opens anything."
    elif principal.user.pk in decisions(principal.server).blocked_users:
        problem = "Staff blocked this user: no credential of the user opens anything."
    return ChosenCaller(principal=principal, name=name, problem=problem)
