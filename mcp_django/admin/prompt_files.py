"""Prompts as JSON files, down and up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import router, transaction
from django.forms import BooleanField, FileField, Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from mcp_django.admin.pages import found_object, page, url_of
from mcp_django.exposure.prompt_documents import (
    LARGEST,
    BrokenDocuments,
    Step,
    carry_out,
    document_of,
    encode,
    parse_documents,
    plan,
)
from mcp_django.models import PromptTemplate
from mcp_django.principal import DEFAULT_SERVER

if TYPE_CHECKING:
    from mcp_django.admin.prompts import PromptTemplateAdmin


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
                for sentence in error.sentences:
                    self.add_error("file", sentence)
            else:
                self._check_replaced()
        return cleaned

    def _check_replaced(self) -> None:
        taken = [step.template.name for step in self.steps if not step.is_new]
        if taken and not self.cleaned_data["replace"]:
            self.add_error(
                "replace",
                f"There are prompts of these names already: {', '.join(taken)}. Nothing was "
                "changed. Tick this box to replace what they say.",
            )


def upload(model_admin: PromptTemplateAdmin, request: HttpRequest) -> HttpResponse:
    if not model_admin.has_add_permission(request):
        raise PermissionDenied
    form = UploadForm(request.POST or None, request.FILES or None, label_suffix="")
    if request.method == "POST" and form.is_valid():
        take_over(model_admin, request, form.steps)
        return HttpResponseRedirect(url_of(model_admin, "changelist"))
    return page(model_admin, request, "upload.html", title="Upload prompts", form=form)


def take_over(model_admin: PromptTemplateAdmin, request: HttpRequest, steps: list[Step]) -> None:
    for step in steps:
        if not step.is_new and not model_admin.has_change_permission(request, step.template):
            raise PermissionDenied
    with transaction.atomic(using=router.db_for_write(PromptTemplate)):
        carry_out(steps, user=request.user, comment="Uploaded.")
        for step in steps:
            if step.is_new:
                model_admin.log_addition(request, step.template, "Uploaded.")
            elif step.changes_anything:
                model_admin.log_change(request, step.template, "Replaced by an upload.")
    messages.success(request, "Uploaded. " + ", ".join(map(str, steps)) + ".")
