"""What our own pages in the admin have in common."""

from __future__ import annotations

from typing import Any, NoReturn

from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse


def found_object(model_admin: Any, request: HttpRequest, object_id: str) -> Any:
    """The object of a page. Raises PermissionDenied or Http404 as the admin itself would."""
    found = model_admin.get_object(request, unquote(object_id))
    if not model_admin.has_view_permission(request, found):
        raise PermissionDenied
    if found is None:
        missing(model_admin)
    return found


def missing(model_admin: Any) -> NoReturn:
    raise Http404(f"There is no such {model_admin.opts.verbose_name}.")


def url_of(model_admin: Any, name: str, *args: Any) -> str:
    opts = model_admin.opts
    return reverse(
        f"admin:{opts.app_label}_{opts.model_name}_{name}",
        args=args,
        current_app=model_admin.admin_site.name,
    )


def page(
    model_admin: Any, request: HttpRequest, template: str, *, title: str, **context: Any
) -> TemplateResponse:
    """A page inside the admin, whatever skin that has."""
    request.current_app = model_admin.admin_site.name  # for {% url %}
    opts = model_admin.opts
    return TemplateResponse(
        request,
        f"admin/{opts.app_label}/{opts.model_name}/{template}",
        {
            **model_admin.admin_site.each_context(request),
            "title": title,
            "opts": opts,
            "media": model_admin.media,
            "list_url": url_of(model_admin, "changelist"),
            **context,
        },
    )
