"""The page on which people make personal tokens, see them listed, and end them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.forms import CheckboxSelectMultiple, ModelForm, MultipleChoiceField, SelectMultiple
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.cache import add_never_cache_headers

from mcp_django.admin.pages import AnyModelAdmin, AnyModelForm, render_page
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


MANAGE_ALL = "mcp_django.manage_all_tokens"


def may_manage_all(request: HttpRequest) -> bool:
    return request.user.has_perm(MANAGE_ALL)


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
    """People see their own tokens; those of others need the permission `manage_all_tokens`."""

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
    raw_id_fields = ("user",)
    actions = ("revoke_selected",)

    @admin.display(description="begins with", ordering="hint")
    def begins_with(self, token: PersonalToken) -> str:
        return f"mcp_{token.hint}…"

    @admin.display(description="scopes")
    def scope_names(self, token: PersonalToken) -> str:
        names = ", ".join(scope.removeprefix("mcp:") for scope in token.scopes)
        return f"{names} (read-only)" if token.read_only else names

    @admin.display(description="only these models")
    def model_names(self, token: PersonalToken) -> str:
        return "no limit" if token.models is None else ", ".join(token.models)

    @admin.display(description="state")
    def state(self, token: PersonalToken) -> str:
        return token.state()

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        return ("name", "hint", f"user__{get_user_model().USERNAME_FIELD}")

    # Whose tokens there are for this person.

    def get_queryset(self, request: HttpRequest) -> QuerySet[PersonalToken]:
        tokens = super().get_queryset(request)
        return tokens if may_manage_all(request) else tokens.filter(user=request.user.pk)

    def has_view_permission(self, request: HttpRequest, obj: PersonalToken | None = None) -> bool:
        return super().has_view_permission(request, obj) and is_theirs(request, obj)

    def has_change_permission(
        self, request: HttpRequest, obj: PersonalToken | None = None
    ) -> bool:
        return super().has_change_permission(request, obj) and is_theirs(request, obj)

    def has_delete_permission(
        self, request: HttpRequest, obj: PersonalToken | None = None
    ) -> bool:
        return super().has_delete_permission(request, obj) and is_theirs(request, obj)

    # The forms: everything when it is made, afterwards only its name.

    def get_form(
        self,
        request: HttpRequest,
        obj: PersonalToken | None = None,
        change: bool = False,  # noqa: FBT001, FBT002  Django's signature
        **kwargs: Any,
    ) -> type[ModelForm[PersonalToken]]:
        if obj is None:
            kwargs["form"] = TokenForm
        return super().get_form(request, obj, change=change, **kwargs)

    def get_fields(self, request: HttpRequest, obj: PersonalToken | None = None) -> Any:
        if obj is not None:
            return ("name", *self.get_readonly_fields(request, obj))
        own = ("name", "scopes", "read_only", "models", "expires_at")
        return ("user", *own) if may_manage_all(request) else own

    def get_readonly_fields(
        self, request: HttpRequest, obj: PersonalToken | None = None
    ) -> tuple[str, ...]:
        if obj is None:
            return ()
        return (
            "user",
            "begins_with",
            "scope_names",
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

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        # The secret is shown right after saving, so there is nowhere else to go on to.
        buttons = {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().add_view(request, form_url, {**(extra_context or {}), **buttons})

    def save_model(
        self,
        request: HttpRequest,
        obj: PersonalToken,
        form: Any,
        change: bool,  # noqa: FBT001  Django's signature
    ) -> None:
        if not change:
            if not may_manage_all(request):
                obj.user = request.user  # type: ignore[assignment]  # nobody anonymous comes here
            # It lives as long as the request. A message would put it into the session or a cookie.
            request.mcp_secret = obj.set_secret()  # type: ignore[attr-defined]  # ours
        super().save_model(request, obj, form, change)

    def response_add(
        self, request: HttpRequest, obj: PersonalToken, post_url_continue: str | None = None
    ) -> HttpResponse:
        """The page with the secret: the answer to the form itself, so that there is no second."""
        response = render_page(
            self,
            request,
            "secret.html",
            title="Copy the token now",
            token=obj,
            secret=request.mcp_secret,  # type: ignore[attr-defined]  # set by save_model
        )
        add_never_cache_headers(response)
        return response

    @admin.action(description="Revoke selected personal tokens", permissions=["change"])
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[PersonalToken]) -> None:
        # One by one: each save tells every process.
        revoked = [token for token in queryset if token.revoked_at is None]
        for token in revoked:
            token.revoke()
            self.log_change(request, token, "Revoked.")
        self.message_user(request, f"Personal tokens revoked: {len(revoked)}.")


def possible_owners(request: HttpRequest) -> QuerySet[Any]:
    """Whom this person may make tokens for. A superuser's token would be a superuser's power."""
    users = get_user_model()
    found = users._default_manager.all()
    names = {field.name for field in users._meta.get_fields()}
    if "is_superuser" in names and not getattr(request.user, "is_superuser", False):
        return found.filter(is_superuser=False)
    return found


def is_theirs(request: HttpRequest, token: PersonalToken | None) -> bool:
    return token is None or token.user_id == request.user.pk or may_manage_all(request)
