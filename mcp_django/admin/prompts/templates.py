"""The pages on which staff write prompts: the list and the form, versions, files."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import router, transaction
from django.db.models import Prefetch, QuerySet
from django.forms import BooleanField, FileField, Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from mcp_django.admin.decisions.base import GroupsAdmin, names_of_groups
from mcp_django.admin.pages import found_object, missing, render_page, url_of
from mcp_django.admin.prompts.forms import PromptForm
from mcp_django.admin.prompts.previews import preview
from mcp_django.exposure.decisions import exposed_by
from mcp_django.exposure.prompts.contents import BrokenContents, Contents
from mcp_django.exposure.prompts.documents import (
    LARGEST,
    BrokenDocuments,
    Step,
    carry_out,
    document_of,
    encode,
    parse_documents,
    plan,
)
from mcp_django.exposure.prompts.stored import (
    add_version,
    body_of,
    contents_of,
    names_of,
    newest_version,
)
from mcp_django.exposure.registry import registry
from mcp_django.models import PromptTemplate, PromptVersion
from mcp_django.principal import DEFAULT_SERVER


class PromptTemplateAdmin(GroupsAdmin):
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
        versions = PromptVersion.objects.select_related("created_by").order_by("-number")
        newest = Prefetch("versions", versions[:1], to_attr="newest_versions")
        return super().get_queryset(request).prefetch_related("groups", newest)

    @admin.display(description="groups")
    def audience(self, template: PromptTemplate) -> str:
        return names_of_groups(template.groups.all())

    @admin.display(description="newest version")
    def newest(self, template: Any) -> str:
        version = next(iter(template.newest_versions), None)
        if version is None:
            return "none"
        by = f" by {version.created_by.get_username()}" if version.created_by else ""
        return f"{version.number}, {version.created_at:%Y-%m-%d}{by}"

    @admin.display(description="state")
    def state(self, template: Any) -> str:
        version = next(iter(template.newest_versions), None)
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

    def _switch(self, request: HttpRequest, queryset: Any, *, on: bool) -> None:
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
        own = (*PromptForm.Meta.fields, *(() if obj is None else ("state",)))
        if not may_write:
            return [(None, {"fields": [*own, "what_it_says"]})]
        help_fields = () if obj is None else ("names",)
        return [
            (None, {"fields": own}),
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


# The versions of a prompt: what each changed, and back to any of them.

PER_PAGE = 20
#: What the first sign of a line of a difference means.
KINDS = {"+": "added", "-": "removed", "@": "place", " ": "same"}


def versions(
    model_admin: PromptTemplateAdmin, request: HttpRequest, object_id: str
) -> HttpResponse:
    template = found_object(model_admin, request, object_id)
    if request.method == "POST":
        return restore(model_admin, request, template)
    found = template.versions.select_related("created_by").order_by("-number")
    shown = Paginator(found, PER_PAGE).get_page(request.GET.get("page"))
    return render_page(
        model_admin,
        request,
        "versions.html",
        title=f"Versions of {template}",
        page_name="Versions",
        original=template,
        page=shown,
        versions=[described(template, one) for one in shown.object_list],
        newest=newest_version(template),
        may_restore=model_admin.has_change_permission(request, template),
    )


def readable(contents: Contents) -> Iterator[str]:
    """Contents as lines for people."""
    for argument in contents.arguments:
        facts = [argument.type, argument.model, "required" if argument.required else "optional"]
        yield f"argument {argument.name}: {', '.join(fact for fact in facts if fact)}"
        if argument.title:
            yield f"  title: {argument.title}"
        yield from (f"  description: {line}" for line in argument.description.splitlines())
        yield from (f"  choice: {choice}" for choice in argument.choices)
    for message in contents.messages:
        yield f"{message.role}:"
        resource = message.resource
        lines = [f"resource {resource}"] if resource else message.text.splitlines()
        yield from (f"  {line}" for line in lines)


def described(template: PromptTemplate, version: PromptVersion) -> dict[str, Any]:
    before = template.versions.filter(number__lt=version.number).order_by("-number").first()
    contents = contents_of(version)
    old, new = list(readable(contents_of(before))), list(readable(contents))
    # Without the header of `diff -u`.
    lines = list(unified_diff(old, new, lineterm="", n=2))[2:]
    return {
        "version": version,
        "before": before,
        "lines": [(KINDS[line[:1]], line) for line in lines],
        "text": "\n".join(new),
    }


def restore(
    model_admin: PromptTemplateAdmin, request: HttpRequest, template: PromptTemplate
) -> HttpResponse:
    if not model_admin.has_change_permission(request, template):
        raise PermissionDenied
    wanted = request.POST.get("restore", "")
    number = int(wanted) if wanted.isdecimal() and len(wanted) < 10 else 0
    version = template.versions.filter(number=number).first()
    if version is None:
        missing(model_admin)
    newest = newest_version(template)
    back = HttpResponseRedirect(url_of(model_admin, "versions", template.pk))
    if newest is not None and contents_of(newest) == contents_of(version):
        messages.info(request, f"The prompt says what version {number} said. Nothing was changed.")
        return back
    try:
        contents = body_of(version).contents
    except BrokenContents as error:
        messages.error(request, f"Version {number} cannot be used any more. {error}")
        return back
    with transaction.atomic(using=router.db_for_write(PromptTemplate)):
        comment = f"Version {number} again."
        made = add_version(template, contents, user=request.user, comment=comment)
        sentence = f"Restored version {number} as version {made.number}."
        model_admin.log_change(request, template, sentence)
    messages.success(request, sentence)
    return back


# Prompts as JSON files, down and up.


def download(
    model_admin: PromptTemplateAdmin, request: HttpRequest, object_id: str
) -> HttpResponse:
    return download_response([found_object(model_admin, request, object_id)])


def download_response(templates: list[PromptTemplate]) -> HttpResponse:
    """One prompt as an object, several as a list."""
    documents = [document_of(template) for template in templates]
    name = templates[0].name if len(templates) == 1 else "prompts"
    return HttpResponse(
        encode(documents[0] if len(documents) == 1 else documents),
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{name}.json"'},
    )


class UploadForm(Form):
    file = FileField(
        label="JSON file", help_text="One prompt, or a list of them, as a download has them."
    )
    replace = BooleanField(
        required=False,
        label="Replace prompts of the same name",
        help_text="They get a new version. The one before stays in their list of versions.",
    )

    steps: list[Step]

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        file = self.cleaned_data.get("file")
        if file is not None:
            try:
                # One byte more tells that it is too long, however long it is.
                self.steps = plan(parse_documents(file.read(LARGEST + 1)), server=DEFAULT_SERVER)
            except BrokenDocuments as error:
                self.add_error("file", list(error.sentences))
                return cleaned
            taken = [step.template.name for step in self.steps if not step.is_new]
            if taken and not self.cleaned_data["replace"]:
                self.add_error(
                    "replace",
                    f"There are prompts of these names already: {', '.join(taken)}. Nothing was "
                    "changed. Tick this box to replace what they say.",
                )
        return cleaned


def upload(model_admin: PromptTemplateAdmin, request: HttpRequest) -> HttpResponse:
    if not model_admin.has_add_permission(request):
        raise PermissionDenied
    form = UploadForm(request.POST or None, request.FILES or None, label_suffix="")
    if request.method == "POST" and form.is_valid():
        take_over(model_admin, request, form.steps)
        return HttpResponseRedirect(url_of(model_admin, "changelist"))
    return render_page(
        model_admin, request, "upload.html", title="Upload prompts", page_name="Upload", form=form
    )


def take_over(model_admin: PromptTemplateAdmin, request: HttpRequest, steps: list[Step]) -> None:
    for step in steps:
        if not step.is_new and not model_admin.has_change_permission(request, step.template):
            raise PermissionDenied
    with transaction.atomic(using=router.db_for_write(PromptTemplate)):
        carry_out(steps, user=request.user, comment="Uploaded.")
        for step in steps:
            if step.is_new:
                model_admin.log_addition(request, step.template, "Uploaded.")
            elif step.is_changed:
                model_admin.log_change(request, step.template, "Replaced by an upload.")
    messages.success(request, "Uploaded. " + ", ".join(map(str, steps)) + ".")
