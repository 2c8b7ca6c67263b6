"""The versions of a prompt: what each changed, and back to any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import router, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from mcp_django.admin.pages import found_object, missing, page, url_of
from mcp_django.exposure.prompt_contents import BrokenContents
from mcp_django.exposure.prompt_versions import (
    add_version,
    contents_of,
    difference,
    newest_version,
    readable,
)
from mcp_django.exposure.stored_prompts import body_of
from mcp_django.models import PromptTemplate, PromptVersion

if TYPE_CHECKING:
    from mcp_django.admin.prompts import PromptTemplateAdmin

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
    return page(
        model_admin,
        request,
        "versions.html",
        title=f"Versions of {template}",
        original=template,
        page=shown,
        versions=[described(template, one) for one in shown.object_list],
        newest=newest_version(template),
        may_restore=model_admin.has_change_permission(request, template),
    )


def described(template: PromptTemplate, version: PromptVersion) -> dict[str, Any]:
    earlier = template.versions.filter(number__lt=version.number).order_by("-number")
    before = earlier.first()
    contents = contents_of(version)
    lines = difference(contents_of(before), contents)
    return {
        "version": version,
        "before": before,
        "lines": [(KINDS[line[:1]], line) for line in lines],
        "text": "\n".join(readable(contents)),
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
    if newest is not None and contents_of(newest) == contents_of(version):
        messages.info(request, f"The prompt says what version {number} said. Nothing was changed.")
        return back(model_admin, template)
    try:
        contents = body_of(version).contents
    except BrokenContents as error:
        messages.error(request, f"Version {number} cannot be used any more. {error}")
        return back(model_admin, template)
    with transaction.atomic(using=router.db_for_write(PromptTemplate)):
        comment = f"Version {number} again."
        made = add_version(template, contents, user=request.user, comment=comment)
        sentence = f"Restored version {number} as version {made.number}."
        model_admin.log_change(request, template, sentence)
    messages.success(request, sentence)
    return back(model_admin, template)


def back(model_admin: PromptTemplateAdmin, template: PromptTemplate) -> HttpResponse:
    return HttpResponseRedirect(url_of(model_admin, "versions", template.pk))
