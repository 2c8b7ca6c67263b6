"""The authorization server: metadata, the page where people consent, tokens and their end."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from django.contrib.auth import logout
from django.contrib.auth.decorators import login_not_required
from django.db import router
from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import NoReverseMatch, reverse
from django.utils.decorators import method_decorator
from django.utils.functional import cached_property
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters
from oauthlib.oauth2.rfc6749 import errors

from mcp_django.auth.authenticators import is_loopback
from mcp_django.auth.resource import endpoint_url
from mcp_django.conf import get_config
from mcp_django.oauth.consent import ConsentForm, ScopeOffer
from mcp_django.oauth.models import Authorization
from mcp_django.oauth.setup import login_address
from mcp_django.oauth.toolkit import (
    SCOPE_DESCRIPTIONS,
    FatalClientError,
    is_self_registered,
    issuer,
    views,
)
from mcp_django.oauth.validators import consent_page
from mcp_django.principal import IMPLIED, with_implied
from mcp_django.stores.cache_version import invalidate
from mcp_django.transports.wsgi import cross_origin

#: No script, nothing of other sites, and in no frame. `form-action` is missing on purpose:
#: Chromium applies it to the redirect to the client as well.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"


@method_decorator(cross_origin, name="dispatch")
class ServerMetadata(views.OAuthServerMetadataView):  # type: ignore[misc]  # untyped base
    """RFC 8414, at the well-known path and, behind it, at that of the issuer. Nowhere else."""

    def get(self, request: HttpRequest, path: str | None = None) -> HttpResponseBase:
        path_of_issuer = urlsplit(issuer()).path.strip("/")
        if not issuer() or (path or "").strip("/") not in {"", path_of_issuer}:
            raise Http404
        response: Any = super().get(request)
        metadata = {**json.loads(response.content), "response_modes_supported": ["query"]}
        response.content = json.dumps(metadata)
        # The toolkit lets every page read it.
        del response.headers["Access-Control-Allow-Origin"]
        return response  # type: ignore[no-any-return]  # untyped base

    def _get_endpoint_url(self, request: HttpRequest, view_name: str) -> str | None:
        try:
            path = reverse(f"mcp_django_oauth:{view_name}")
        except NoReverseMatch:
            return None
        return f"{get_config().public_url.rstrip('/')}{path}"


class PersonNotAsked(Exception):
    """A code is about to be made for a client that staff let skip the page."""


@method_decorator([login_not_required, csrf_protect, never_cache], name="dispatch")
class Authorize(views.AuthorizationView):  # type: ignore[misc]  # untyped base
    """Ask a signed-in person whether a client may act for them."""

    template_name = "mcp_django_oauth/authorize.html"
    form_class = ConsentForm

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # A client must not be able to say that nobody is to be asked.
        query = request.GET.copy()
        query.pop("approval_prompt", None)
        request.GET = query  # type: ignore[assignment]  # as Django's own tests do
        token = consent_page.set({} if request.user.is_authenticated else None)
        try:
            response: Any = super().dispatch(request, *args, **kwargs)
            if hasattr(response, "render"):
                response.render()
        finally:
            consent_page.reset(token)
        response.headers["Content-Security-Policy"] = POLICY
        response.headers["X-Frame-Options"] = "DENY"
        # Without a referrer, browsers hide the origin of the form, and Django refuses it.
        response.headers["Referrer-Policy"] = "same-origin"
        return response  # type: ignore[no-any-return]  # untyped base

    def get_login_url(self) -> str:
        return login_address()

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().get(request, *args, **kwargs)
        except PersonNotAsked:
            return self.render_to_response(self.get_context_data(**self.oauth2_data))

    def create_authorization_response(
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> Any:
        if request.method != "POST":
            raise PersonNotAsked
        return super().create_authorization_response(request, *args, **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if "somebody_else" in request.POST:
            logout(request)
            return self.handle_no_permission()
        return super().post(request, *args, **kwargs)

    @cached_property
    def offer(self) -> ScopeOffer:
        return ScopeOffer(self.request)

    def get_form_kwargs(self) -> dict[str, Any]:
        client_id = self.request.POST.get("client_id") or self.oauth2_data.get("client_id", "")
        earlier = Authorization.objects.filter(
            user=self.request.user,
            application__client_id=str(client_id).replace("\0", ""),
            resource=endpoint_url(),
        ).first()
        limits = {"models": self.offer.models(), "earlier": earlier}
        return {**super().get_form_kwargs(), **limits}

    def get_initial(self) -> dict[str, Any]:
        initial: dict[str, Any] = super().get_initial()
        return {**initial, "scope": " ".join(with_implied(initial["scope"].split()))}

    def form_invalid(self, form: Any) -> Any:
        """Refuse what no button of the page sends."""
        error = errors.InvalidRequestError(description="The form is not the one of this page.")
        return self.error_response(FatalClientError(error=error), application=None)

    def form_valid(self, form: Any) -> Any:
        """Grant the scopes that are ticked, within the limits. Nothing ticked is a no.

        A scope that implies another one is good only if both are ticked.
        """
        limits = consent_page.get()
        if limits is not None:
            limits.update(form.limits())
        ticked = {*self.request.POST.getlist("granted")}
        form.cleaned_data["scope"] = " ".join(
            scope
            for scope in dict.fromkeys(form.cleaned_data["scope"].split())
            if scope in ticked and ticked.issuperset(IMPLIED.get(scope, ()))
        )
        form.cleaned_data["allow"] &= bool(form.cleaned_data["scope"])
        return super().form_valid(form)

    def redirect(self, redirect_to: str, application: Any) -> Any:
        """Send people back to the client. RFC 9207: errors say who answers as well."""
        parts = urlsplit(redirect_to)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        pairs = [*(pair for pair in pairs if pair[0] != "iss"), ("iss", issuer())]
        redirect_to = urlunsplit(parts._replace(query=urlencode(pairs)))
        return super().redirect(redirect_to, application)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        application, address = context.get("application"), context.get("redirect_uri") or ""
        redirect_host = urlsplit(address).hostname or ""
        context["site_name"] = get_config().name
        context["redirect_host"] = redirect_host
        context["is_on_this_computer"] = is_loopback(redirect_host) or redirect_host == "localhost"
        if application is not None:
            asked = zip(context["scopes"], context["scopes_descriptions"], strict=True)
            words = {**dict(asked), **SCOPE_DESCRIPTIONS}
            scopes = with_implied(context["scopes"])
            context["asked"] = [self.offer.of_scope(scope, str(words[scope])) for scope in scopes]
            context["username"] = self.request.user.get_username()
            context["is_unverified"] = is_self_registered(application)
            context["client_host"] = urlsplit(application.client_id).hostname
        return context


@method_decorator(
    [
        cross_origin,
        never_cache,
        sensitive_post_parameters("client_secret", "code", "code_verifier", "refresh_token"),
    ],
    name="dispatch",
)
class IssueToken(views.TokenView):  # type: ignore[misc]  # untyped base
    """RFC 6749, 3.2, for codes, refresh tokens and clients that act by themselves."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase = super().post(request, *args, **kwargs)
        # The toolkit leaves it out of some errors, and what a client sent stands in them.
        response.headers["Content-Type"] = "application/json"
        return response


@method_decorator(
    [cross_origin, sensitive_post_parameters("client_secret", "token")], name="dispatch"
)
class RevokeToken(views.RevokeTokenView):  # type: ignore[misc]  # untyped base
    """RFC 7009."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase = super().post(request, *args, **kwargs)
        if response.status_code == 200:
            # Open streams, in every process.
            invalidate(None, using=router.db_for_write(Authorization))
        return response
