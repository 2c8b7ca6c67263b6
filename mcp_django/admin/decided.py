"""Pages about things that exist without a row: the row comes with the first decision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import quote
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, router, transaction
from django.forms import CheckboxSelectMultiple
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.cache import add_never_cache_headers

from mcp_django.admin.pages import page
from mcp_django.principal import DEFAULT_SERVER

if TYPE_CHECKING:
    AnyModelAdmin = admin.ModelAdmin[Any]
else:
    AnyModelAdmin = admin.ModelAdmin  # it takes no subscript when it runs

#: Characters of a message in the log about one thing that changed.
LONGEST_TOLD = 400


class DecisionAdmin(AnyModelAdmin):
    """One page for each thing that code has, and a list of all of them, with a row or without."""

    #: The field that names the thing.
    key: str
    #: Whether code has a thing of that name.
    exists: Callable[[str], bool]
    #: The context of the list.
    listed: Callable[[HttpRequest], dict[str, Any]]
    list_template = "decisions.html"

    class Media:
        css = {"all": ["mcp_django/exposure.css"]}
        js = ["mcp_django/exposure.js"]

    def formfield_for_manytomany(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        return super().formfield_for_manytomany(
            db_field, request, widget=CheckboxSelectMultiple, **kwargs
        )

    # Things come from code: nobody adds any, and a row goes when it decides nothing.

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """The row of a key, or a new one where code has such a thing. The log has keys, too."""
        key = object_id
        if key.isdecimal():
            found = super().get_object(request, object_id, from_field)
            key = "" if found is None else getattr(found, self.key)
        if "\x00" in key:
            return None  # no database takes it
        rows = self.get_queryset(request).filter(server=DEFAULT_SERVER)
        if request.method == "POST" and transaction.get_connection(rows.db).in_atomic_block:
            # Whoever saves second waits, and then learns what the first one saved.
            rows = rows.using(router.db_for_write(self.model)).select_for_update()
        row = rows.filter(**{f"{self.key}__iexact": key}).first()
        if row is None and self.exists(key):
            return self.model(**{self.key: key})
        return row

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        return page(
            self,
            request,
            self.list_template,
            title=str(self.opts.verbose_name_plural).capitalize(),
            **self.listed(request),
        )

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        context = {"show_delete": False, **(extra_context or {})}
        try:
            response = super().change_view(request, object_id, form_url, context)
        except IntegrityError:
            # Two first decisions in one moment: the other one was a moment sooner.
            messages.error(request, "Somebody else decided in the same moment. Look at it again.")
            return HttpResponseRedirect(request.get_full_path())
        # Going back in the browser must not show what is no longer so.
        add_never_cache_headers(response)
        return response

    def save_model(
        self,
        request: HttpRequest,
        obj: Any,
        form: Any,
        change: bool,  # noqa: FBT001  Django's signature
    ) -> None:
        if form.decides_something():
            obj.save()
        elif obj.pk is not None:
            self.get_queryset(request).get(pk=obj.pk).delete()
            obj.pk = None

    def save_related(
        self,
        request: HttpRequest,
        form: Any,
        formsets: Any,
        change: bool,  # noqa: FBT001  Django's signature
    ) -> None:
        if form.instance.pk is not None:
            super().save_related(request, form, formsets, change)

    def construct_change_message(
        self,
        request: HttpRequest,
        form: Any,
        formsets: Any,
        add: bool = False,  # noqa: FBT001, FBT002  Django's signature
    ) -> Any:
        return told_changes(form.told_before, form.told_after()) or "Nothing changed."

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> LogEntry:
        # By its key: the row may come and go.
        key = str(getattr(obj, self.key))
        return LogEntry.objects.create(
            user_id=request.user.pk,  # type: ignore[misc]  # nobody anonymous comes here
            content_type_id=ContentType.objects.get_for_model(self.model).pk,
            object_id=key,
            object_repr=key[:200],
            action_flag=CHANGE,
            change_message=message,
        )

    def change_url(self, key: str) -> str:
        opts = self.opts
        return reverse(
            f"admin:{opts.app_label}_{opts.model_name}_change",
            args=(quote(key),),
            current_app=self.admin_site.name,
        )


def told_fields(form: Any, words: Iterable[str]) -> list[Callable[[Any], str]]:
    """Read-only fields for people who may only look, with the words of the log."""

    def made(word: str) -> Callable[[Any], str]:
        @admin.display(description=word)
        def told(row: Any) -> str:
            return str(form(instance=row).told_before[word])

        return told

    return [made(word) for word in words]


def told_changes(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """ "level: read -> hidden; groups: everybody -> clerks"."""
    return "; ".join(
        f"{name}: {short(old)} -> {short(after[name])}"
        for name, old in before.items()
        if after[name] != old
    )


def short(text: str) -> str:
    return text if len(text) <= LONGEST_TOLD else f"{text[:LONGEST_TOLD]}…"
