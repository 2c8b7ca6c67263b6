"""The page on which people make personal tokens, see them listed, and end them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.forms import CheckboxSelectMultiple, ModelForm, MultipleChoiceField, SelectMultiple
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils import timezone

from mcp_django.admin.pages import AnyModelAdmin, AnyModelForm, missing, render_page, url_of
from mcp_django.auth.authenticators import PERSONAL_TOKENS, configured_authenticators, principal_of
from mcp_django.auth.clients import address_for_clients, client_cards
from mcp_django.exposure.decisions import exposed_by
from mcp_django.exposure.registry import registry
from mcp_django.models import PersonalToken
from mcp_django.principal import ACTION, DEFAULT_SERVER, DELETE, READ, SCOPES, WRITE

# The form that makes a personal token.

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


class TokenForm(AnyModelForm):
    scopes = MultipleChoiceField(
        choices=[(scope, f"{WORDS[scope]} ({scope})") for scope in SCOPES],
        initial=[READ],
        widget=CheckboxSelectMultiple,
        help_text=(
            "What the token allows, within the rights of its user. With mcp:read alone it changes "
            "nothing, also in models that are opened for writing."
        ),
    )
    models = MultipleChoiceField(
        choices=exposed_models,
        required=False,
        widget=SelectMultiple,
        label="Only these models",
        help_text="If you choose none: every model that the user may see.",
    )

    class Meta:
        model = PersonalToken
        fields = ("user", "name", "scopes", "read_only", "models", "expires_at")

    def clean_models(self) -> Any:
        return self.cleaned_data["models"] or None


class ReadTokenForm(TokenForm):
    """For people who may make tokens for reading only. It names no models: they may not see all
    of them.
    """

    scopes = MultipleChoiceField(
        choices=[(READ, f"{WORDS[READ]} ({READ})")],
        initial=[READ],
        widget=CheckboxSelectMultiple,
        help_text="To change something, ask somebody who may add personal tokens.",
    )
    models = None  # type: ignore[assignment]  # takes the field away, as Django documents


# What the scopes of tokens leave of models that staff opened for writing.

#: After "all tokens" or "your own tokens".
ONLY_READ = (
    "have only mcp:read. To change records or run actions, make one with mcp:write, mcp:delete or "
    "mcp:action."
)


def have_only_read(user: Any = None) -> bool:
    """Whether there are tokens that work, of one user or of any, and none that changes anything.

    Not where a site has other credentials as well.
    """
    if list(configured_authenticators()) != [PERSONAL_TOKENS]:
        return False
    tokens = PersonalToken.objects.filter(
        server=DEFAULT_SERVER, revoked_at=None, expires_at__gt=timezone.now()
    )
    if user is not None:
        tokens = tokens.filter(user=user.pk)
    kinds = list(tokens.order_by().values_list("scopes", "read_only").distinct())
    return bool(kinds) and all(read_only or set(scopes) <= {READ} for scopes, read_only in kinds)


def may_manage_all(request: HttpRequest) -> bool:
    return request.user.has_perm("mcp_django.manage_all_tokens")


def is_active_staff(request: HttpRequest) -> bool:
    user = request.user
    return bool(getattr(user, "is_active", False) and getattr(user, "is_staff", False))


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("active", "Active"), ("expired", "Expired"), ("revoked", "Revoked")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[PersonalToken]
    ) -> QuerySet[PersonalToken]:
        now = timezone.now()
        conditions = {
            "active": Q(revoked_at=None, expires_at__gt=now),
            "expired": Q(revoked_at=None, expires_at__lte=now),
            "revoked": Q(revoked_at__isnull=False),
        }
        return queryset.filter(conditions.get(self.value() or "", Q()))


class PersonalTokenAdmin(AnyModelAdmin):
    """Active staff see, make and revoke tokens of their own, with the scope to read.

    Other scopes need the permission to add tokens, and the tokens of others `manage_all_tokens`.
    """

    list_display = (
        "user",
        "name",
        "begins_with",
        "scope_names",
        "expires_at",
        "last_used_at",
        "state",
    )
    list_display_links = ("name",)
    list_filter = (StateFilter, "read_only")
    list_select_related = ("user",)
    search_fields = ("name", "hint", f"user__{get_user_model().USERNAME_FIELD}")
    raw_id_fields = ("user",)
    actions = ("revoke_selected",)

    @admin.display(description="first characters", ordering="hint")
    def begins_with(self, token: PersonalToken) -> str:
        return f"mcp_{token.hint}…"

    @admin.display(description="scopes")
    def scope_names(self, token: PersonalToken) -> str:
        names = ", ".join(scope.removeprefix("mcp:") for scope in token.scopes)
        return f"{names} (read-only)" if token.read_only else names

    @admin.display(description="what it changes")
    def effect(self, token: PersonalToken) -> str:
        """Return what it may change. That says nothing of the models that there are."""
        if token.read_only:
            return "Nothing: it is read-only."
        lacks = [scope for scope in (WRITE, DELETE, ACTION) if scope not in token.scopes]
        if not lacks:
            return "What its user may change."
        named = ", ".join(lacks)
        if len(lacks) < len(SCOPES) - 1:
            return f"Some of what its user may change: it lacks {named}."
        return f"Nothing, also in models that are opened for writing: it lacks {named}."

    @admin.display(description="only these models")
    def model_names(self, token: PersonalToken) -> str:
        return "no limit" if token.models is None else ", ".join(token.models)

    # Whose tokens there are for this person.

    def get_queryset(self, request: HttpRequest) -> QuerySet[PersonalToken]:
        tokens = super().get_queryset(request)
        if may_manage_all(request) and super().has_view_permission(request):
            return tokens
        return tokens.filter(user=request.user.pk)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_active_staff(request) or super().has_module_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: PersonalToken | None = None) -> bool:
        return reaches(request, obj, is_permitted=super().has_view_permission(request, obj))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) or is_active_staff(request)

    def has_change_permission(
        self, request: HttpRequest, obj: PersonalToken | None = None
    ) -> bool:
        return reaches(request, obj, is_permitted=super().has_change_permission(request, obj))

    def has_delete_permission(
        self, request: HttpRequest, obj: PersonalToken | None = None
    ) -> bool:
        is_permitted = super().has_delete_permission(request, obj)
        return is_permitted and reaches(request, obj, is_permitted=True)

    def may_make_any(self, request: HttpRequest) -> bool:
        """Whether this person makes tokens by permission, with any scope."""
        return super().has_add_permission(request)

    def may_make_for_others(self, request: HttpRequest) -> bool:
        return self.may_make_any(request) and may_manage_all(request)

    # The forms: everything when it is made, afterwards only its name.

    def get_form(
        self,
        request: HttpRequest,
        obj: PersonalToken | None = None,
        change: bool = False,  # noqa: FBT001, FBT002  Django's signature
        **kwargs: Any,
    ) -> type[ModelForm[PersonalToken]]:
        if obj is None:
            kwargs["form"] = TokenForm if self.may_make_any(request) else ReadTokenForm
        return super().get_form(request, obj, change=change, **kwargs)

    def get_fields(self, request: HttpRequest, obj: PersonalToken | None = None) -> Any:
        if obj is not None:
            return ("name", *self.get_readonly_fields(request, obj))
        if not self.may_make_any(request):
            return ("name", "scopes", "expires_at")
        own = ("name", "scopes", "read_only", "models", "expires_at")
        return ("user", *own) if self.may_make_for_others(request) else own

    def get_readonly_fields(
        self, request: HttpRequest, obj: PersonalToken | None = None
    ) -> tuple[str, ...]:
        if obj is None:
            return ()
        return (
            "user",
            "begins_with",
            "scope_names",
            "effect",
            "model_names",
            "created_at",
            "expires_at",
            "last_used_at",
            "revoked_at",
        )

    def formfield_for_foreignkey(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        return super().formfield_for_foreignkey(
            db_field, request, queryset=possible_owners(request), **kwargs
        )

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"user": request.user.pk, **super().get_changeform_initial_data(request)}

    def render_change_form(self, request: Any, context: Any, *args: Any, **kwargs: Any) -> Any:
        if context["original"] is not None:
            context["calls_of"] = principal_of(context["original"]).key
        else:
            # The secret is shown right after saving, so there is nowhere else to go on to.
            context |= {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().render_change_form(request, context, *args, **kwargs)

    def save_model(
        self,
        request: HttpRequest,
        obj: PersonalToken,
        form: Any,
        change: bool,  # noqa: FBT001  Django's signature
    ) -> None:
        if not change:
            if not self.may_make_for_others(request):
                obj.user = request.user  # type: ignore[assignment]  # nobody anonymous comes here
            # It lives as long as the request. A message would put it into the session or a cookie.
            request.mcp_secret = obj.set_secret()  # type: ignore[attr-defined]  # ours
        super().save_model(request, obj, form, change)

    def response_add(
        self, request: HttpRequest, obj: PersonalToken, post_url_continue: str | None = None
    ) -> HttpResponse:
        """The page with the secret: the answer to the form itself, so that there is no second."""
        address = address_for_clients(request)
        return render_page(
            self,
            request,
            "secret.html",
            title="Copy the token now",
            token=obj,
            secret=request.mcp_secret,  # type: ignore[attr-defined]  # set by save_model
            cards=client_cards(address, credential=request.mcp_secret) if address else [],  # type: ignore[attr-defined]
        )

    @admin.action(description="Revoke selected personal tokens", permissions=["change"])
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[PersonalToken]) -> None:
        # One by one: each save tells every process.
        revoked = [
            token
            for token in queryset
            if token.revoked_at is None and self.has_change_permission(request, token)
        ]
        for token in revoked:
            token.revoke()
            self.log_change(request, token, "Revoked.")
        self.message_user(request, f"Personal tokens revoked: {len(revoked)}.")

    # The page on which one token is revoked.

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.revoke_view)
        route = path("<path:object_id>/revoke/", view, name="mcp_django_personaltoken_revoke")
        return [route, *super().get_urls()]

    def revoke_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask on GET, revoke on POST. Raises Http404: missing and somebody else's alike."""
        token = self.get_object(request, object_id)
        if token is None or not self.has_change_permission(request, token):
            missing(self)
        if request.method == "POST":
            if token.revoked_at is None:
                token.revoke()
                self.log_change(request, token, "Revoked.")
            self.message_user(request, f"The token “{token}” is revoked.")
            return HttpResponseRedirect(url_of(self, "change", token.pk))
        return render_page(
            self,
            request,
            "revoke.html",
            title="Revoke this token?",
            token=token,
            change_url=url_of(self, "change", token.pk),
        )


def possible_owners(request: HttpRequest) -> QuerySet[Any]:
    """Whom this person may make tokens for. A superuser's token would be a superuser's power."""
    users = get_user_model()
    found = users._default_manager.all()
    names = {field.name for field in users._meta.get_fields()}
    if "is_superuser" in names and not getattr(request.user, "is_superuser", False):
        return found.filter(is_superuser=False)
    return found


def reaches(request: HttpRequest, token: PersonalToken | None, *, is_permitted: bool) -> bool:
    """Whether somebody reaches a token: with a permission of the model or as active staff one of
    their own, and that of somebody else with both permissions.
    """
    if token is None or token.user_id == request.user.pk:
        return is_permitted or is_active_staff(request)
    return is_permitted and may_manage_all(request)
