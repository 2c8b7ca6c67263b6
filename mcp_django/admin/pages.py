"""Our own pages in the admin: what makes them, and those that are about no single model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import connections, transaction
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    AnyModelAdmin = admin.ModelAdmin[Any]
    AnyModelForm = ModelForm[Any]
else:
    AnyModelAdmin, AnyModelForm = admin.ModelAdmin, ModelForm  # without subscripts at run time


class ReadOnlyAdmin(AnyModelAdmin):
    """Nobody adds, changes or deletes anything on these pages."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def found_object(model_admin: Any, request: HttpRequest, object_id: str) -> Any:
    """The object of a page. Raises PermissionDenied or Http404 as the admin itself would."""
    found = model_admin.get_object(request, unquote(object_id))
    if not model_admin.has_view_permission(request, found):
        raise PermissionDenied
    if found is None:
        missing(model_admin)
    return found


def visible_rows(model_admin: Any, request: HttpRequest, model: Any) -> QuerySet[Any]:
    """Return the rows that the person sees in the admin of a model on the same site, if any."""
    its_admin = model_admin.admin_site._registry.get(model)
    if its_admin is None or not its_admin.has_view_permission(request):
        return model._default_manager.none()  # type: ignore[no-any-return]  # of any model
    return its_admin.get_queryset(request)  # type: ignore[no-any-return]


def missing(model_admin: Any) -> NoReturn:
    raise Http404(f"There is no such {model_admin.opts.verbose_name}.")


def url_of(model_admin: Any, name: str, *args: Any, model: Any = None) -> str:
    """The address of a page of this admin, or of the admin of another model on the same site."""
    opts = model_admin.opts if model is None else model._meta
    return reverse(
        f"admin:{opts.app_label}_{opts.model_name}_{name}",
        args=args,
        current_app=model_admin.admin_site.name,
    )


def render_page(
    model_admin: Any, request: HttpRequest, template: str, **context: Any
) -> TemplateResponse:
    """A page inside the admin, whatever skin that has.

    The template is in the folder of the model, or in that of the app.
    """
    request.current_app = model_admin.admin_site.name  # for {% url %}
    opts = model_admin.opts
    return TemplateResponse(
        request,
        [f"admin/mcp_django/{opts.model_name}/{template}", f"admin/mcp_django/{template}"],
        {
            **model_admin.admin_site.each_context(request),
            "opts": opts,
            "media": model_admin.media,
            "list_url": url_of(model_admin, "changelist"),
            **context,
        },
    )


# Pages that show who is connected, and what assistants have, cost and do.


@dataclass(frozen=True, kw_only=True)
class AdminPage:
    """One page, and the permissions of which any opens it."""

    name: str
    title: str
    #: The module of the view, in `mcp_django.admin`. The views import this file.
    module: str
    #: Without any: everybody whom the admin lets in opens it.
    permissions: tuple[str, ...] = ()
    #: False: never in a transaction of ATOMIC_REQUESTS, which stores refuse.
    may_be_atomic: bool = True

    def may_open(self, request: HttpRequest) -> bool:
        held = (request.user.has_perm(f"mcp_django.{name}") for name in self.permissions)
        return not self.permissions or any(held)

    def route(self, model_admin: Any) -> URLPattern:
        """The page under the URLs of a ModelAdmin, behind the door of its site."""
        view = model_admin.admin_site.admin_view(partial(open_page, self, model_admin))
        for alias in () if self.may_be_atomic else connections:
            view = transaction.non_atomic_requests(alias)(view)
        route = f"{self.name.replace('_', '-')}/"
        found: URLPattern = path(route, view, name=f"mcp_django_{self.name}")
        return found

    def render(self, model_admin: Any, request: HttpRequest, **context: Any) -> TemplateResponse:
        """The page, with links to those that this person may open."""
        site = model_admin.admin_site.name
        links = [
            {
                "page": page,
                "url": reverse(f"admin:mcp_django_{page.name}", current_app=site),
                "is_current": page is self,
            }
            for page in PAGES
            if page.may_open(request)
        ]
        context |= {"title": self.title, "page": self, "links": links}
        return render_page(model_admin, request, f"{self.name}.html", **context)


def open_page(page: AdminPage, model_admin: Any, request: HttpRequest) -> HttpResponse:
    """What the page answers. Raises PermissionDenied."""
    if not page.may_open(request):
        raise PermissionDenied
    view: Callable[[Any, HttpRequest], HttpResponse]
    view = import_string(f"mcp_django.admin.{page.module}.{page.name}_view")
    return view(model_admin, request)


OVERVIEW = AdminPage(name="overview", title="Assistants", module="overview")
LIVE = AdminPage(
    name="live",
    title="Live",
    module="live",
    permissions=("view_session", "view_livestream"),
    may_be_atomic=False,
)
INSPECT = AdminPage(
    name="inspect",
    title="What can it see?",
    module="inspect.access",
    permissions=("inspect_as",),
)
COST = AdminPage(
    name="cost",
    title="What does it cost?",
    module="inspect.cost",
    permissions=("view_exposedtool", "change_exposedtool"),
)
TRY_IT = AdminPage(
    name="try_it", title="Try it", module="inspect.try_it", permissions=("try_tools",)
)
GROUPS = AdminPage(
    name="groups",
    title="Groups",
    module="groups",
    permissions=("view_exposedmodel", "change_exposedmodel"),
)
PAGES = (OVERVIEW, LIVE, GROUPS, INSPECT, COST, TRY_IT)
