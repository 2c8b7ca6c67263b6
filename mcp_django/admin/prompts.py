"""The pages on which staff write prompts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.db.models import OuterRef, Prefetch, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from mcp_django.admin.prompt_files import download, download_response, upload
from mcp_django.admin.prompt_forms import PromptForm
from mcp_django.admin.prompt_previews import preview
from mcp_django.admin.prompt_versions import versions
from mcp_django.exposure.overrides import exposed_by
from mcp_django.exposure.prompt_contents import BrokenContents
from mcp_django.exposure.prompt_objects import names_of
from mcp_django.exposure.prompt_versions import (
    add_version,
    contents_of,
    newest_version,
    readable,
)
from mcp_django.exposure.registry import registry
from mcp_django.exposure.stored_prompts import body_of
from mcp_django.models import PromptTemplate, PromptVersion

if TYPE_CHECKING:
    PromptModelAdmin = admin.ModelAdmin[PromptTemplate]
else:
    PromptModelAdmin = admin.ModelAdmin  # it takes no subscript when it runs

OWN = ("name", "title", "description", "enabled", "groups")


@admin.register(PromptTemplate)
class PromptTemplateAdmin(PromptModelAdmin):
    """Who may change prompts writes what models read; who may view them sees what they say."""

    form = PromptForm
    list_display = ("name", "title", "enabled", "audience", "newest", "state")
    list_filter = ("enabled", "groups")
    search_fields = ("name", "title", "description")
    actions = ("enable_selected", "disable_selected", "download_selected")

    class Media:
        css = {"all": ["mcp_django/prompts.css"]}
        js = ["mcp_django/prompts.js"]

    # The list

    def get_queryset(self, request: HttpRequest) -> QuerySet[PromptTemplate]:
        last = PromptVersion.objects.filter(template=OuterRef("template")).order_by("-number")
        newest = PromptVersion.objects.filter(number=Subquery(last.values("number")[:1]))
        return (
            super()
            .get_queryset(request)
            .prefetch_related(
                "groups",
                Prefetch(
                    "versions", newest.select_related("created_by"), to_attr="newest_versions"
                ),
            )
        )

    @admin.display(description="for")
    def audience(self, template: PromptTemplate) -> str:
        return ", ".join(group.name for group in template.groups.all()) or "everybody"

    @admin.display(description="newest version")
    def newest(self, template: PromptTemplate) -> str:
        version = found_version(template)
        if version is None:
            return "none"
        by = f" by {version.created_by.get_username()}" if version.created_by else ""
        return f"{version.number}, {version.created_at:%Y-%m-%d}{by}"

    @admin.display(description="state")
    def state(self, template: PromptTemplate) -> str:
        version = found_version(template)
        if template.name in registry.prompts:
            kind = "code" if template.name in registry.code_prompts else "a file"
            return f"Hidden: there is a prompt of this name in {kind}, and that one is used."
        if version is None:
            return "Nobody gets it: it says nothing yet."
        try:
            body_of(version)
        except BrokenContents as error:
            return f"Nobody gets it: {error}"
        return "On" if template.enabled else "Off"

    @admin.action(description="Switch on selected prompts", permissions=["change"])
    def enable_selected(self, request: HttpRequest, queryset: QuerySet[PromptTemplate]) -> None:
        self._switch(request, queryset, on=True)

    @admin.action(description="Switch off selected prompts", permissions=["change"])
    def disable_selected(self, request: HttpRequest, queryset: QuerySet[PromptTemplate]) -> None:
        self._switch(request, queryset, on=False)

    def _switch(
        self, request: HttpRequest, queryset: QuerySet[PromptTemplate], *, on: bool
    ) -> None:
        # One by one: each save tells every process.
        changed = list(queryset.exclude(enabled=on))
        for template in changed:
            template.enabled = on
            template.save(update_fields=["enabled"])
            self.log_change(request, template, f"Switched {'on' if on else 'off'}.")
        self.message_user(request, f"Prompts switched {'on' if on else 'off'}: {len(changed)}.")

    @admin.action(description="Download selected prompts as JSON", permissions=["view"])
    def download_selected(
        self, request: HttpRequest, queryset: QuerySet[PromptTemplate]
    ) -> HttpResponse:
        return download_response(list(queryset))

    # The form

    def get_fieldsets(self, request: HttpRequest, obj: PromptTemplate | None = None) -> Any:
        may_write = (
            self.has_add_permission(request)
            if obj is None
            else self.has_change_permission(request, obj)
        )
        state = () if obj is None else ("state",)
        if not may_write:
            return [(None, {"fields": [*OWN, *state, "what_it_says"]})]
        help_fields = () if obj is None else ("names",)
        return [
            (None, {"fields": [*OWN, *state]}),
            ("Arguments", {"fields": ["arguments", *help_fields]}),
            ("Messages", {"fields": ["messages"]}),
            ("This version", {"fields": ["comment", "based_on"]}),
        ]

    def get_readonly_fields(
        self, request: HttpRequest, obj: PromptTemplate | None = None
    ) -> tuple[str, ...]:
        return ("state", "names", "what_it_says")

    @admin.display(description="what it says")
    def what_it_says(self, template: PromptTemplate) -> SafeString:
        lines = readable(contents_of(newest_version(template)))
        return format_html('<pre class="mcp-source">{}</pre>', "\n".join(lines))

    @admin.display(description="names for messages")
    def names(self, template: PromptTemplate) -> str:
        items = format_html_join("", "<li><code>{}</code></li>", zip(usable_names(template)))
        return format_html('<ul class="mcp-names">{}</ul>', items) if items else "none yet"

    def save_model(
        self,
        request: HttpRequest,
        obj: PromptTemplate,
        form: Any,
        change: bool,  # noqa: FBT001  Django's signature
    ) -> None:
        super().save_model(request, obj, form, change)
        if not form.has_new_contents:
            return
        comment = form.cleaned_data["comment"]
        made = add_version(obj, form.contents, user=request.user, comment=comment)
        if made.number - 1 != (form.cleaned_data["based_on"] or 0):
            messages.warning(
                request,
                f"Somebody saved version {made.number - 1} while you were writing. Yours is "
                f"version {made.number} now; look at the versions to see what was in between.",
            )

    # The other pages

    def get_urls(self) -> list[URLPattern]:
        def page(route: str, view: Any, name: str) -> URLPattern:
            wrapped = self.admin_site.admin_view(partial(view, self))
            return path(route, wrapped, name=f"mcp_django_prompttemplate_{name}")

        return [
            page("upload/", upload, "upload"),
            page("<path:object_id>/preview/", preview, "preview"),
            page("<path:object_id>/versions/", versions, "versions"),
            page("<path:object_id>/download/", download, "download"),
            *super().get_urls(),
        ]


def found_version(template: PromptTemplate) -> PromptVersion | None:
    """The newest one, from the list's own query where there was one."""
    newest = getattr(template, "newest_versions", None)
    return newest_version(template) if newest is None else next(iter(newest), None)


def usable_names(template: PromptTemplate) -> list[str]:
    """What messages may print, as it is written."""
    found = []
    exposed = exposed_by(registry, template.server).by_label
    for one in contents_of(newest_version(template)).arguments:
        found.append(f"{{{{ {one.name} }}}}")
        exposure = exposed.get(one.model)
        if exposure is not None:
            found += [f"{{{{ {one.name}.{name} }}}}" for name in names_of(exposure)]
    return found
