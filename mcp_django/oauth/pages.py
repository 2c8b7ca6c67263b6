"""Pages for everybody: `path("assistants/", include("mcp_django.oauth.pages"))`.

People connect a client, see which programs they allowed what, and make tokens. Nobody sees, ends
or makes anything of somebody else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.decorators import login_not_required, user_passes_test
from django.core.exceptions import ValidationError
from django.forms import CharField, CheckboxSelectMultiple, MultipleChoiceField
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils import timezone
from django.utils.functional import lazy
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_http_methods

from mcp_django.auth.authenticators import is_active
from mcp_django.auth.clients import address_for_clients, client_cards
from mcp_django.auth.resource import endpoint_url
from mcp_django.conf import get_config
from mcp_django.models import PersonalToken
from mcp_django.oauth.consent import LimitsForm, ScopeOffer
from mcp_django.oauth.models import Authorization, in_force
from mcp_django.oauth.setup import login_address
from mcp_django.oauth.toolkit import SCOPE_DESCRIPTIONS, is_self_registered
from mcp_django.principal import DEFAULT_SERVER, READ, with_implied

app_name = "mcp_django_pages"
View = Callable[..., HttpResponseBase]


def for_people(view: View) -> View:
    """Return the view for people who are signed in and may act. Nobody keeps or frames it."""

    @wraps(view)
    def guarded(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        response = view(request, **kwargs)
        response.headers["X-Frame-Options"] = "DENY"
        response.headers["Referrer-Policy"] = "same-origin"
        return response

    # LOGIN_URL may change after this module is imported.
    signed_in = user_passes_test(is_active, login_url=lazy(login_address, str)())
    for decorator in (require_http_methods(["GET", "HEAD", "POST"]), signed_in, csrf_protect):
        guarded = decorator(guarded)
    return login_not_required(never_cache(guarded))


def people_page(request: HttpRequest, name: str, **context: Any) -> HttpResponse:
    context |= {"page": name, "site_name": get_config().name}
    return render(request, f"mcp_django_oauth/{name}.html", context)


@for_people
def connect(request: HttpRequest) -> HttpResponse:
    address = address_for_clients(request)
    cards = client_cards(address) if address else []
    return people_page(request, "connect", address=address, cards=cards)


def press(
    request: HttpRequest, row: Any, *, end: Callable[[], None], may_widen: bool = True
) -> HttpResponse:
    """Press a button beside an authorization or a token."""
    match request.POST.get("do"):
        case "end":
            end()
        case "read_only":
            row.read_only = True
            row.save(update_fields=["read_only"])
        case "not_read_only" if may_widen:
            row.read_only = False
            row.save(update_fields=["read_only"])
    return redirect(request.path)


def described(row: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """Return in words what an authorization or a token is good for.

    `names` are those of the models that the person may see. Others have none.
    """
    scopes = with_implied(row.scopes)
    return {
        "row": row,
        "scopes": [text for scope, text in SCOPE_DESCRIPTIONS.items() if scope in scopes],
        "models": row.models and [names[label] for label in row.models if label in names],
        "is_limited": row.models is not None,
    }


@for_people
def apps(request: HttpRequest) -> HttpResponse:
    """List the programs that the person allowed something, newest first."""
    theirs = Authorization.objects.filter(
        in_force(), user=request.user.pk, resource=endpoint_url()
    )
    if request.method == "POST":
        row = get_object_or_404(theirs, pk=number_in(request))
        return press(request, row, end=row.end)
    names = dict(ScopeOffer(request).models())
    lines = [
        {
            **described(row, names),
            "may_widen": True,
            "is_unverified": is_self_registered(row.application),
            "host": urlsplit(row.application.client_id).hostname or "",
        }
        for row in theirs.select_related("application").order_by("-consented_at")
    ]
    return people_page(request, "apps", lines=lines)


class NewTokenForm(LimitsForm):
    name = CharField(max_length=100, label=_("Which program will use it?"))
    scopes = MultipleChoiceField(widget=CheckboxSelectMultiple, initial=[READ])

    def __init__(self, *args: Any, scopes: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = self.fields
        fields["scopes"].choices = [(scope, SCOPE_DESCRIPTIONS[scope]) for scope in scopes]
        config = get_config()
        days = min(config.token_days, config.token_max_days)
        words = ngettext("For %d day", "For %d days", days) % days
        shorter = [pair for pair in fields["lifetime"].choices if pair[0] and int(pair[0]) < days]
        fields["lifetime"].choices = [("", words), *shorter]


@for_people
def tokens(request: HttpRequest) -> HttpResponse:
    """List the tokens of the person, make one, and show its secret once."""
    theirs = PersonalToken.objects.filter(
        server=DEFAULT_SERVER,
        user=request.user.pk,
        revoked_at=None,
        expires_at__gt=timezone.now(),
    )
    # The same rule as in the admin: others may only narrow.
    may_change = request.user.has_perm("mcp_django.add_personaltoken")
    if request.method == "POST" and "do" in request.POST:
        row = get_object_or_404(theirs, pk=number_in(request))
        return press(request, row, end=row.revoke, may_widen=may_change)
    offer = ScopeOffer(request)
    models = offer.models()
    form = NewTokenForm(
        request.POST or None,
        models=models,
        scopes=SCOPE_DESCRIPTIONS if may_change else [READ],
    )
    if request.method == "POST" and form.is_valid():
        try:
            token, secret = PersonalToken.create(
                user=offer.user,
                name=form.cleaned_data["name"],
                scopes=form.cleaned_data["scopes"],
                **form.limits(),
            )
        except ValidationError as error:
            form.add_error(None, error)
        else:
            address = address_for_clients(request)
            cards = client_cards(address, credential=secret) if address else []
            return people_page(request, "secret", token=token, secret=secret, cards=cards)
    names = dict(models)
    lines = [{**described(row, names), "may_widen": may_change} for row in theirs]
    return people_page(request, "tokens", lines=lines, form=form, may_change=may_change)


def number_in(request: HttpRequest) -> int:
    """Return the key of the row whose button was pressed, or 0, which no row has."""
    number = request.POST.get("pk", "")
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 19 else 0


urlpatterns = [
    path("", connect, name="connect"),
    path("apps/", apps, name="apps"),
    path("tokens/", tokens, name="tokens"),
]
