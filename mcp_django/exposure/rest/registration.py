"""`register_viewset`, `register_router` and `register_view`: a REST API as tools."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import ImproperlyConfigured
from django.urls import URLPattern, path

from mcp_django.exposure.registry import Registry, check_name, suggest_tool_name
from mcp_django.exposure.registry import registry as default_registry


def register_router(
    router: Any,
    *,
    exclude: Collection[str] = (),
    actions: Collection[str] | None = None,
    description: str = "",
    namespace: str = "",
    registry: Registry | None = None,
) -> None:
    """Offer the endpoints of a router of Django REST framework as tools.

        mcp.register_router(router, exclude=["internal"])

    A call goes through the view's own `dispatch`: its permissions, throttles, filters, pages,
    serializers and errors hold as for any client of the API, and the user is that of the
    credential. A tool is named after the basename and the action, as in `order_list`. `exclude`
    has basenames. `actions` are those to offer: all of them by default, but not `update` where
    there is `partial_update`. `description` follows that of each action. `namespace` is that of
    the URLconf that includes the router.

    Raises AlreadyRegistered when a name is taken, ImproperlyConfigured for what is no router.
    """
    if not hasattr(router, "registry"):
        raise ImproperlyConfigured(f"{router!r} is no router of Django REST framework.")
    known = {basename for _, _, basename in router.registry}
    if unknown := sorted(set(exclude) - known):
        raise ImproperlyConfigured(
            f"The router has no basename {unknown[0]!r}. It has: {', '.join(sorted(known))}."
        )
    for pattern in router.urls:
        initkwargs = getattr(pattern.callback, "initkwargs", {})
        basename = initkwargs.get("basename")
        # Neither the page about the API itself, nor the same again with a suffix of a format.
        if basename is None or "format" in pattern.pattern.regex.groupindex:
            continue
        if basename not in exclude:
            register_pattern(
                pattern,
                prefix=basename,
                actions=actions,
                description=description,
                namespace=namespace,
                registry=registry,
            )


def register_viewset(
    viewset: Any,
    *,
    actions: Collection[str] | None = None,
    basename: str | None = None,
    description: str = "",
    namespace: str = "",
    registry: Registry | None = None,
) -> None:
    """Offer the actions of a ViewSet of Django REST framework as tools.

        mcp.register_viewset(OrderViewSet, actions=["list", "retrieve", "create", "refund"])

    As `register_router` does with a router that has this ViewSet alone. `basename` is that of
    the site's router, by default the name of the model.
    """
    from rest_framework.routers import SimpleRouter  # type: ignore[import-untyped]  # optional

    if not hasattr(viewset, "get_extra_actions"):
        raise ImproperlyConfigured(f"{viewset!r} is no ViewSet of Django REST framework.")
    router = SimpleRouter()
    basename = basename or router.get_default_basename(viewset)
    router.register(basename, viewset, basename)
    offered = {action for url in router.urls for action in url.callback.actions.values()}
    if unknown := sorted(set(actions or ()) - offered):
        raise ImproperlyConfigured(
            f"{viewset.__name__} has no action {unknown[0]!r}. It has: "
            f"{', '.join(sorted(offered))}."
        )
    register_router(
        router, actions=actions, description=description, namespace=namespace, registry=registry
    )


def register_view(
    view: Callable[..., Any],
    *,
    route: str,
    name: str,
    description: str = "",
    namespace: str = "",
    registry: Registry | None = None,
) -> None:
    """Offer a generic view or an `@api_view` of Django REST framework as tools, one a method.

        mcp.register_view(OrderList.as_view(), route="api/orders/", name="order-list")

    `route` and `name` are those of the `path()` in the site's URLconf. With several methods, the
    tools are called `order_list_get`, `order_list_post` and so on.
    """
    if not hasattr(view, "cls"):
        raise ImproperlyConfigured(f"{view!r} is no view of Django REST framework.")
    pattern = path(route, view, name=name)
    register_pattern(
        pattern,
        prefix=name,
        actions=None,
        description=description,
        namespace=namespace,
        registry=registry,
    )


def register_pattern(
    pattern: URLPattern,
    *,
    prefix: str,
    actions: Collection[str] | None,
    description: str,
    namespace: str,
    registry: Registry | None,
) -> None:
    # The framework is optional.
    from mcp_django.exposure.rest.endpoints import endpoints_at
    from mcp_django.exposure.rest.resources import EndpointResource
    from mcp_django.exposure.rest.tools import STAND_INS, EndpointTool

    if iscoroutinefunction(pattern.callback):
        raise ImproperlyConfigured(
            f"{pattern.callback!r} is async, and only sync views are served."
        )
    registry = registry or default_registry
    endpoints = [*endpoints_at(pattern, namespace=namespace)]
    is_viewset = hasattr(pattern.callback, "actions")
    has_patch = any(endpoint.action == "partial_update" for endpoint in endpoints)
    for endpoint in endpoints:
        # Who replaces a record forgets some of it.
        is_usual = endpoint.action != "update" or not has_patch
        if is_usual if actions is None else endpoint.action in actions:
            suffix = endpoint.action if is_viewset else endpoint.method * (len(endpoints) > 1)
            tool = EndpointTool(
                endpoint,
                name=check_name(suggest_tool_name(f"{prefix}_{suffix}"), kind="tool"),
                description=description,
            )
            registry.add_tool(tool)
            if is_viewset and endpoint.action == "retrieve" and len(endpoint.variables) == 1:
                registry.add_resource(EndpointResource(tool, basename=prefix))
    for stand_in in STAND_INS:
        if stand_in.name not in registry.tools:
            registry.add_tool(stand_in)
