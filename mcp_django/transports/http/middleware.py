"""The project's middleware around a call, without what only browsers need.

A class that sets a tenant or a language must run, or tools would work on the wrong rows. Django's
own browser classes must not: they would ask for sessions, CSRF tokens and cookies.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, TypeAlias, cast

from asgiref.sync import async_to_sync, iscoroutinefunction, sync_to_async
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import MiddlewareNotUsed
from django.core.handlers.exception import convert_exception_to_response
from django.core.signals import request_started, setting_changed
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import (
    Resolver404,
    ResolverMatch,
    URLPattern,
    get_resolver,
    get_urlconf,
    include,
    resolve,
    set_urlconf,
)
from django.urls import (
    path as url_path,
)
from django.urls.resolvers import RoutePattern
from django.utils.functional import SimpleLazyObject
from django.utils.module_loading import import_string

from mcp_django.auth.resource import endpoint_route
from mcp_django.conf import get_config
from mcp_django.exceptions import Cancelled
from mcp_django.principal import Principal
from mcp_django.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, ProtocolError
from mcp_django.stores.transactions import is_inside
from mcp_django.transports.exchanges import HeaderList, Reply, crashed, refuse_exchange
from mcp_django.transports.serving import Service

Handler: TypeAlias = Callable[[HttpRequest], HttpResponseBase]

BROWSER_ONLY = (
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.common.BrokenLinkEmailsMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.auth.middleware.RemoteUserMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "django.middleware.http.ConditionalGetMiddleware",
    "django.middleware.cache.UpdateCacheMiddleware",
    "django.middleware.cache.FetchFromCacheMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
)


#: Sets the user for the view. Round a call the user is set already.
CALLER = "mcp_django.middleware.CallerMiddleware"
AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"


def chosen() -> list[str]:
    """The dotted paths that run around a call, in order. Empty: the fast path."""
    choice = get_config().run_middleware
    if choice == "none":
        return []
    if choice == "project":
        paths = list(settings.MIDDLEWARE)
    elif choice == "auto":
        # Subclasses of browser classes are browser classes.
        paths = [path for path in settings.MIDDLEWARE if not is_kind_of(path, *BROWSER_ONLY)]
    else:
        paths = list(choice)
    return [path for path in paths if path != CALLER]


def middleware_before_caller(*, is_identified: bool = True) -> list[str]:
    """What should run around a call, but does not see the caller where Django runs the view.

    That is what stands between Django's AuthenticationMiddleware and ours, or anywhere behind
    Django's while ours is missing or has not identified the caller. What stands in front of
    Django's sees no user of any request, and Django's own classes ask for none.
    """
    paths = list(settings.MIDDLEWARE)
    start = max(
        (n + 1 for n, path in enumerate(paths) if is_kind_of(path, AUTHENTICATION)), default=0
    )
    behind = paths[start:]
    if is_identified and CALLER in behind:
        behind = behind[: behind.index(CALLER)]
    return [
        path
        for path in chosen()
        if (path in behind or path not in paths) and not path.startswith("django.")
    ]


def advice(early: Sequence[str]) -> str:
    """What is wrong with MIDDLEWARE, and what to do."""
    return (
        "Where the endpoint is a view, this middleware does not see who calls: "
        f"{', '.join(early)}. Put {CALLER} behind {AUTHENTICATION} and in front of the others."
    )


def is_kind_of(path: str, *kinds: str) -> bool:
    middleware = import_string(path)
    if not isinstance(middleware, type):
        return False
    bases = {f"{base.__module__}.{base.__qualname__}" for base in middleware.__mro__}
    return not bases.isdisjoint(kinds)


@dataclass(kw_only=True, slots=True)
class Passage:
    """One call on its way through the chain."""

    innermost: Handler
    view: Callable[..., Any]
    #: The URLconf of the request and of the thread, as they were left here.
    urlconfs: tuple[Any, Any] | None = None
    #: Who calls, as the layers see them.
    user: Any = None
    #: The response that is on its way out, and the dotted path of the middleware that made it.
    response: HttpResponseBase | None = None
    made_by: str = ""

    def settle(self, request: HttpRequest) -> None:
        """In front of each layer: what the one outside has set does not hide the call from it."""
        self.settle_urls(request)
        user: Any = getattr(request, "user", None)
        if user is not self.user:
            self.user = SimpleLazyObject(partial(put_back, self.user, user))
            request.user = self.user

    def settle_urls(self, request: HttpRequest) -> None:
        """Set `resolver_match`, and the URLconf unless the site's own has the endpoint: it keeps
        resolving in whatever URLconf middleware chooses for the call.
        """
        urlconfs = (getattr(request, "urlconf", None), get_urlconf())
        if urlconfs == self.urlconfs:
            return
        # Middleware may set either, as Django's own documentation has it.
        is_of_request = self.urlconfs is None or urlconfs[0] is not self.urlconfs[0]
        urlconf = (urlconfs[0] if is_of_request else urlconfs[1]) or settings.ROOT_URLCONF
        try:
            match = resolve(request.path_info, urlconf)
        except Resolver404:
            match = None
        if match is None or match.func is not self.view:
            urls = with_endpoint(urlconf, self.view, endpoint_route())
            match = urls.endpoint.match(request.path_info.removeprefix("/"))
            urlconf = request.urlconf = urls  # type: ignore[assignment]  # any object with patterns
        set_urlconf(urlconf)
        request.resolver_match = match
        self.urlconfs = (getattr(request, "urlconf", None), get_urlconf())

    def note(self, response: HttpResponseBase, path: str) -> None:
        if response is not self.response:
            self.response, self.made_by = response, path or self.made_by


def put_back(caller: Any, user: Any) -> Any:
    """Whom middleware identified, unless that is nobody: it has looked for a browser's session."""
    return user if user.is_authenticated else caller


def passage_of(request: HttpRequest) -> Passage:
    passage: Passage = request._mcp_passage  # type: ignore[attr-defined]  # set by Chain
    return passage


class Chain:
    """Middleware loaded once, round any innermost function."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._view_hooks: list[tuple[str, Callable[..., Any]]] = []
        # What a hook for views raises is a response for all middleware.
        handler = layer("", guarded(self._view))
        for path in reversed(paths):
            handler = self._wrap(path, handler)
        self._handler = handler

    def __call__(
        self, request: HttpRequest, innermost: Handler, *, view: Callable[..., Any]
    ) -> HttpResponseBase:
        """The response of `innermost`, or of a middleware that answered first."""
        request._mcp_passage = Passage(  # type: ignore[attr-defined]  # for each layer
            innermost=innermost,
            view=view,
            user=getattr(request, "user", None),
        )
        before, token = get_urlconf(), served.set(request.path_info)
        set_urlconf(settings.ROOT_URLCONF)
        try:
            return self._handler(request)
        finally:
            set_urlconf(before)
            served.reset(token)

    def _view(self, request: HttpRequest) -> HttpResponseBase:
        passage = passage_of(request)
        for path, hook in self._view_hooks:
            passage.made_by = path
            response: HttpResponseBase | None = hook(request, passage.view, (), {})
            if response is not None:
                return response
        passage.made_by = ""
        return passage.innermost(request)

    def _wrap(self, path: str, handler: Handler) -> Handler:
        middleware = import_string(path)
        is_sync = getattr(middleware, "sync_capable", True)
        inner = handler if is_sync else sync_to_async(handler, thread_sensitive=True)
        try:
            wrapped = middleware(inner)
        except MiddlewareNotUsed:
            return handler
        if hasattr(wrapped, "process_view"):
            hook = wrapped.process_view
            hook = async_to_sync(hook) if iscoroutinefunction(hook) else hook
            self._view_hooks.insert(0, (path, hook))
        return layer(path, guarded(wrapped if is_sync else async_to_sync(wrapped)))


def layer(path: str, handler: Handler) -> Handler:
    """One middleware of the chain: URLs resolve in front of it, and its name is on its answers."""

    def run(request: HttpRequest) -> HttpResponseBase:
        passage = passage_of(request)
        passage.settle(request)
        response = handler(request)
        passage.note(response, path)
        return response

    return run


def guarded(handler: Handler) -> Handler:
    """As Django guards each layer: what it raises becomes a response for the layers outside."""
    return cast("Handler", convert_exception_to_response(handler))


class Loaded:
    """The chain of this process, loaded at first need."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_loaded = False
        self._chain: Chain | None = None

    @property
    def is_known_to_be_empty(self) -> bool:
        """Never loads anything, so event loops may ask."""
        return self._is_loaded and self._chain is None

    def chain(self) -> Chain | None:
        """None where nothing is left to run: the fast path. May load it, so ask in a thread."""
        with self._lock:
            if not self._is_loaded:
                paths = chosen()
                self._chain = Chain(paths) if paths else None
                self._is_loaded = True
            return self._chain

    def forget(self) -> None:
        self._is_loaded = False


loaded = Loaded()


@receiver(setting_changed)
def forget_chain(*, setting: str, **kwargs: Any) -> None:
    if setting in ("MIDDLEWARE", "MCP_DJANGO"):
        loaded.forget()


# A call inside the project's middleware: what middleware may see and change, and what not.

logger = logging.getLogger("mcp_django")

#: Headers that describe a body, which is ours, or a connection, or belong to browsers.
NOT_PASSED_ON = frozenset(
    {
        "connection",
        "content-disposition",
        "content-encoding",
        "content-length",
        "content-type",
        "etag",
        "last-modified",
        "location",
        "set-cookie",
        "transfer-encoding",
    }
)


class Caller:
    """Who calls, found out at first touch and once: a tenant can be set before the first query."""

    def __init__(
        self, request: HttpRequest, recognize: Callable[[HttpRequest], Principal]
    ) -> None:
        self._request = request
        self._recognize = recognize
        self._found: Principal | Exception | None = None
        #: The user behind the credential, or AnonymousUser: the call itself is refused then.
        self.user: Any = SimpleLazyObject(self._user)

    def recognize(self, request: HttpRequest) -> Principal:
        """As `authenticate`."""
        if self._found is None:
            try:
                self._found = self._recognize(self._request)
            except Exception as error:
                # The call answers for it, a bug of an authenticator included.
                self._found = error
        if isinstance(self._found, Exception):
            raise self._found
        return self._found

    def _user(self) -> Any:
        try:
            return self.recognize(self._request).user
        except Exception:
            return AnonymousUser()


def serve_as(service: Service, caller: Caller, principal: Principal) -> Reply:
    """The reply to a caller who is known, unless middleware takes them for somebody else."""
    user: Any = service.request.user
    # Not so for AnonymousUser either, whom the rest of middleware took for the caller.
    if user is not caller.user and user.pk != principal.user.pk:
        return service.refuse("Middleware identified another user.", status=403)
    return service.wait_for(service.serve(principal))


def respond_through(chain: Chain, service: Service, *, view: Callable[..., Any]) -> Reply:
    """The reply, with `service` as the innermost view of the chain. Raises Cancelled."""
    request = service.request
    caller = Caller(request, service.recognize)
    given_up: list[Cancelled] = []
    waiting: list[Callable[[], object]] = []
    later = partial(now_or_later, waiting)
    service = replace(service, outside_transaction=later, recognize=caller.recognize)
    request.user = caller.user

    def innermost(request: HttpRequest) -> HttpResponseBase:
        try:
            principal = service.identify()
            if isinstance(principal, Reply):
                return response_of(principal)
            return response_of(serve_as(service, caller, principal))
        except Cancelled as error:
            # Middleware would take it for a bug of the site, and log it.
            given_up.append(error)
            return HttpResponse(status=503)
        except Exception:
            # A bug of ours is no answer of the site's middleware.
            return response_of(crashed(service.exchange))

    request_started.send(sender=Chain, scope=getattr(request, "scope", None))
    # Closing it sends request_finished.
    with closing(chain(request, innermost, view=view)) as response:
        if given_up:
            raise given_up[0]
        reply = reply_of(response, service)
    # A middleware's own answer begins no session.
    if own_reply(response) is not None:
        try:
            for work in waiting:
                work()
        except ProtocolError as error:
            return refuse_exchange(service.exchange, error, headers=reply.headers)
    return reply


def now_or_later(waiting: list[Callable[[], object]], work: Callable[[], object]) -> None:
    """What a store keeps must not roll back with a middleware's transaction."""
    if is_inside():
        waiting.append(work)
    else:
        work()


def response_of(reply: Reply) -> HttpResponseBase:
    """A reply as Django's response, which has one value per header."""
    response = HttpResponse(reply.body, status=reply.status, content_type=reply.content_type)
    if not reply.body:
        del response.headers["Content-Type"]
    for name, value in reply.headers:
        before = response.headers.get(name)
        response.headers[name] = value if before is None else f"{before}, {value}"
    response._mcp_reply = reply  # type: ignore[attr-defined]  # for own_reply
    return response


def own_reply(response: HttpResponseBase) -> Reply | None:
    """The reply that the response was made of. None: a middleware has answered."""
    return getattr(response, "_mcp_reply", None)


def reply_of(response: HttpResponseBase, service: Service) -> Reply:
    """Our own reply with the headers that middleware added, or what a middleware answered."""
    own = own_reply(response)
    headers: HeaderList = tuple(
        (name, value) for name, value in response.items() if name.lower() not in NOT_PASSED_ON
    )
    if own is not None:
        return replace(own, status=response.status_code, headers=headers)
    return refusal_of(response.status_code, service, headers)


def refusal_of(status: int, service: Service, headers: HeaderList) -> Reply:
    """The page that middleware made is for people, and may tell them more than a peer may know."""
    made_by = passage_of(service.request).made_by
    if service.request.method == "OPTIONS" and 200 <= status < 300:
        # A browser asks whether a page of another origin may send the request.
        logger.debug("%s answered a preflight with status %s", made_by, status)
        return Reply(status=status, headers=headers)
    if status >= 500:
        correlation_id = secrets.token_hex(8)
        logger.error("%s answered a call with status %s [%s]", made_by, status, correlation_id)
        error = ProtocolError(INTERNAL_ERROR, "Internal error", {"id": correlation_id})
    else:
        logger.warning("%s answered a call with status %s", made_by, status)
        error = ProtocolError(INVALID_REQUEST, "The site's middleware refused this request.")
    error.status = status if status >= 400 else 403
    return refuse_exchange(service.exchange, error, headers=headers)


# The URLconf of a call: the site's own, in which the path of the endpoint resolves as well.
#
# Servers route the endpoint before Django sees a URL, so a site need not have it in its URLconf.
# Middleware asks Django all the same which view it is in front of.


#: The path of the call that is being answered, without the prefix of the site.
served: ContextVar[str | None] = ContextVar("served", default=None)


class EndpointURL(URLPattern):
    """Matches the path of the call, whatever path a server routes to the endpoint."""

    def resolve(self, path: str) -> ResolverMatch | None:
        if f"/{path}" != served.get():
            return None
        return self.match(path)

    def match(self, path: str) -> ResolverMatch:
        names: list[str | None] = ["mcp_django"]
        return ResolverMatch(
            self.callback,
            (),
            {},
            url_name="endpoint",
            app_names=names,
            namespaces=names,
            route=path,
            captured_kwargs={},
            extra_kwargs={},
        )


class SiteURLs:
    """A URLconf of the site, and the endpoint."""

    def __init__(self, site: Any, view: Callable[..., Any], route: str) -> None:
        self.site = site
        self.endpoint = EndpointURL(RoutePattern(route), view)
        self._route = route

    @property
    def urlpatterns(self) -> list[Any]:
        return [
            # First, since a site may send all other paths to one view.
            self.endpoint,
            *get_resolver(self.site).url_patterns,
            # Last, so that a site that includes the endpoint itself reverses to its own path.
            url_path(self._route, include("mcp_django.urls")),
        ]

    def __getattr__(self, name: str) -> Any:
        # The site's handlers of errors.
        return getattr(get_resolver(self.site).urlconf_module, name)


#: Django keeps what it resolves with for each URLconf, so there is one for each of the site's.
with_endpoint = cache(SiteURLs)
