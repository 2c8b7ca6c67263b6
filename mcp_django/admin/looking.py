"""The pages that show what assistants have, cost and do: how they hang in an admin site."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from django.core.exceptions import PermissionDenied
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.cache import add_never_cache_headers
from django.utils.module_loading import import_string

View: TypeAlias = Callable[[Any, HttpRequest], HttpResponse]


@dataclass(frozen=True, kw_only=True)
class Page:
    """One page, and the permissions of which any opens it."""

    name: str
    title: str
    permissions: tuple[str, ...]
    #: False: never in a transaction of ATOMIC_REQUESTS, which stores refuse.
    may_be_atomic: bool = True

    @property
    def template(self) -> str:
        return f"admin/mcp_django/{self.name}.html"

    @property
    def view(self) -> View:
        """Imported at first use, since the views import this file."""
        found: View = import_string(f"mcp_django.admin.{self.name}.{self.name}_view")
        return found

    def may_open(self, request: HttpRequest) -> bool:
        user = request.user
        if not self.permissions:
            return user.has_module_perms("mcp_django")
        return any(user.has_perm(f"mcp_django.{name}") for name in self.permissions)

    def url(self, model_admin: Any) -> str:
        site = model_admin.admin_site.name
        return reverse(f"admin:mcp_django_{self.name}", current_app=site)


OVERVIEW = Page(
    name="overview",
    title="Assistants",
    permissions=(),
)
LIVE = Page(
    name="live",
    title="Live",
    permissions=("view_session", "view_livestream"),
    may_be_atomic=False,
)
INSPECT = Page(
    name="inspect",
    title="What can it see?",
    permissions=("inspect_as",),
)
COST = Page(
    name="cost",
    title="What does it cost?",
    permissions=("view_exposedtool", "change_exposedtool"),
)
TRY_IT = Page(
    name="try_it",
    title="Try it",
    permissions=("try_tools",),
)
PAGES = (OVERVIEW, LIVE, INSPECT, COST, TRY_IT)


def page_urls(model_admin: Any) -> list[URLPattern]:
    """The pages under the URLs of a ModelAdmin, behind the door of its site."""
    return [
        path(
            f"{page.name.replace('_', '-')}/",
            view_of(page, model_admin),
            name=f"mcp_django_{page.name}",
        )
        for page in PAGES
    ]


def view_of(page: Page, model_admin: Any) -> Callable[..., Any]:
    view: Any = model_admin.admin_site.admin_view(partial(opened, page, model_admin))
    for alias in () if page.may_be_atomic else connections:
        view = transaction.non_atomic_requests(alias)(view)
    return view  # type: ignore[no-any-return]  # Django's decorator says nothing


def opened(page: Page, model_admin: Any, request: HttpRequest) -> HttpResponse:
    """What the page answers. Raises PermissionDenied."""
    if not page.may_open(request):
        raise PermissionDenied
    response = page.view(model_admin, request)
    # What somebody may see of others is nothing to keep.
    add_never_cache_headers(response)
    return response


def links(model_admin: Any, request: HttpRequest, current: Page) -> list[dict[str, Any]]:
    """The pages that this person may open."""
    return [
        {"page": page, "url": page.url(model_admin), "is_current": page is current}
        for page in PAGES
        if page.may_open(request)
    ]


def response(
    page: Page, model_admin: Any, request: HttpRequest, **context: Any
) -> TemplateResponse:
    """A page inside the admin, whatever skin that has."""
    site = model_admin.admin_site
    request.current_app = site.name  # for {% url %}
    return TemplateResponse(
        request,
        page.template,
        {
            **site.each_context(request),
            "title": page.title,
            "opts": model_admin.opts,
            "page": page,
            "links": links(model_admin, request, page),
            **context,
        },
    )
