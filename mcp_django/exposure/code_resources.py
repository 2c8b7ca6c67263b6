"""`@mcp.resource`: a function of the site as a resource, or as a template of many."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec
from asgiref.sync import iscoroutinefunction
from django.core.exceptions import ImproperlyConfigured, ObjectDoesNotExist, PermissionDenied
from django.http import Http404, HttpRequest
from django.utils import timezone

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound
from mcp_django.exposure.code_resource_checks import (
    check_attributes,
    check_function,
    check_uri,
    check_variables,
)
from mcp_django.exposure.docstrings import parse_docstring
from mcp_django.exposure.function_arguments import (
    UNREADABLE,
    Arguments,
    check_decimals,
    check_plain,
)
from mcp_django.exposure.function_checks import Permission, check_permission
from mcp_django.exposure.function_rights import may_reach
from mcp_django.exposure.questions import Conversation, awaited, begin
from mcp_django.exposure.registry import Registry
from mcp_django.exposure.registry import registry as default_registry
from mcp_django.exposure.resource_contents import contents_of, mime_type_of
from mcp_django.exposure.signatures import read_signature
from mcp_django.exposure.uris import LONGEST
from mcp_django.principal import READ
from mcp_django.protocol.content import Annotations, ResourceContents
from mcp_django.protocol.results import Resource, ResourceTemplate

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise

    from mcp_django.exposure.permissions import Rights

Function = TypeVar("Function", bound=Callable[..., Any])
Modified: TypeAlias = datetime | Callable[[HttpRequest], datetime | None]
#: Values to choose from: fixed, or found for a request and the variables chosen so far.
Offer: TypeAlias = (
    Sequence[str] | Callable[[HttpRequest, str, Mapping[str, str]], Iterable[object]]
)
#: Django's ways to say that something is not there for this user.
ABSENT = (Http404, ObjectDoesNotExist, PermissionDenied)

logger = logging.getLogger("mcp_django")


@dataclass(frozen=True, kw_only=True)
class PendingRead:
    """An async resource, variables bound: `finish` makes contents of what awaiting it returns."""

    awaitable: Awaitable[Any]
    finish: Callable[[Any], list[ResourceContents]]


class CodeResource:
    """A function as a resource. Registered once, shared by all threads."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        uri: str,
        name: str | None,
        title: _StrOrPromise,
        description: _StrOrPromise | None,
        mime_type: str | None,
        size: int | None,
        annotations: Annotations | None,
        last_modified: Modified | None,
        permission: Permission | None,
        completions: Mapping[str, Offer],
        asks: bool = False,
    ) -> None:
        self.asks = asks
        check_function(function)
        self.function = function
        self.is_async = iscoroutinefunction(function)
        self.template = check_uri(uri)
        self.uri = uri
        self.signature = read_signature(function)
        check_variables(self.template, self.signature)
        check_attributes(uri, annotations, size=size)
        documented = parse_docstring(function.__doc__ or "")
        self.arguments = Arguments(uri, self.signature, descriptions=documented.parameters)
        self.name = name or function.__name__
        self.title = title
        self.description = description or documented.text
        self.mime_type = mime_type or ""
        self.shown_mime_type = mime_type or mime_type_of(self.signature.returns)
        self.size = size
        self.annotations = annotations
        self.last_modified = last_modified
        self.permission = check_permission(permission, tool=uri)
        self.completions = dict(completions)
        self._check()

    def __repr__(self) -> str:
        return f"<CodeResource {self.uri}>"

    def _check(self) -> None:
        if not self.description:
            raise ImproperlyConfigured(
                f"The resource {self.uri!r} has no description, so no model could know when to "
                "read it. Give the function a docstring."
            )
        if self.size is not None and self.is_template:
            raise ImproperlyConfigured(
                f"{self.uri!r} stands for many resources, so it has no size."
            )
        for variable in self.completions:
            if variable not in self.template.variables:
                raise ImproperlyConfigured(
                    f"completions of {self.uri!r} names {variable!r}, which its URI does not have."
                )

    @property
    def is_template(self) -> bool:
        return bool(self.template.variables)

    @property
    def place(self) -> tuple[bool, int, str]:
        """Literal URIs come before templates, and those that say more before the others."""
        return self.is_template, -len(self.template.literals), self.uri

    def exists_for(self, rights: Rights) -> bool:
        """Whether this caller may know of the resource at all."""
        is_reader = rights.has_scopes(frozenset({READ}))
        return is_reader and may_reach(rights, self.permission, name=f"the resource {self.uri}")

    def definition(self, request: HttpRequest) -> Resource | ResourceTemplate:
        """What lists show, lazy texts in the language of the moment."""
        common: dict[str, Any] = {
            "name": self.name,
            "title": str(self.title),
            "description": str(self.description),
            "mime_type": self.shown_mime_type,
            "annotations": self._annotations(request),
        }
        if self.is_template:
            return ResourceTemplate(uri_template=self.uri, **common)
        return Resource(uri=self.uri, size=self.size, **common)

    def _annotations(self, request: HttpRequest) -> Annotations | None:
        modified = self.last_modified
        if callable(modified):
            try:
                modified = modified(request)
            except Exception:
                # Code of the site: without this hint the list is as good.
                logger.exception("last_modified of the resource %s failed.", self.uri)
                modified = None
        if modified is None:
            return self.annotations
        return replace(self.annotations or Annotations(), last_modified=iso(modified))

    def variables(self, uri: str) -> dict[str, Any] | None:
        """The arguments in a URI, as the function takes them; None where they do not fit."""
        found = self.template.match(uri)
        if found is None:
            return None
        try:
            read = msgspec.convert(found, self.arguments.type, strict=False)
            values = {name: getattr(read, name) for name in found}
            check_plain(list(values.values()), deepest=get_config().max_depth)
            check_decimals(read)
        except UNREADABLE:
            return None
        return values

    def read(
        self, context: CallContext, rights: Rights, uri: str, variables: Mapping[str, Any]
    ) -> list[ResourceContents] | PendingRead:
        """Run the function. Raises NotFound for what it does not have or does not show."""
        bound = {**variables, **self.signature.fill(context)}
        call: dict[str, Any] = {"method": "resources/read", "name": uri, "arguments": {}}
        conversation = begin(context, rights, **call) if self.asks else None

        def finish(value: Any) -> list[ResourceContents]:
            return contents_of(value, uri=uri, mime_type=self.mime_type)

        if self.is_async:
            return PendingRead(awaitable=self._await(bound, conversation), finish=finish)
        try:
            value = self.function(**bound)
            if conversation is not None:
                conversation.settle()
            return finish(value)
        except ABSENT:
            raise not_found() from None

    async def _await(self, bound: dict[str, Any], conversation: Conversation | None) -> Any:
        try:
            returned = self.function(**bound)
            return await (awaited(conversation, returned) if conversation else returned)
        except ABSENT:
            raise not_found() from None

    def offered(
        self, rights: Rights, variable: str, value: str, *, given: Mapping[str, str]
    ) -> list[str] | None:
        """What there is to choose from for a variable. None: no such variable."""
        if variable not in self.template.variables:
            return None
        offer = self.completions.get(variable, ())
        try:
            values = offer(rights.request, value, given) if callable(offer) else offer
            return list(dict.fromkeys(str(one) for one in values))
        except Exception:
            logger.exception("The completions of %s of %s failed.", variable, self.uri)
            return []


def not_found() -> NotFound:
    return NotFound("There is no such resource.")


def iso(moment: datetime) -> str:
    if timezone.is_naive(moment):
        moment = timezone.make_aware(moment)
    return moment.astimezone(UTC).isoformat()


def code_resources(rights: Rights) -> list[CodeResource]:
    """Those that exist for this caller, in the order in which a URI is looked up."""
    return [one for one in in_order(rights) if one.exists_for(rights)]


def in_order(rights: Rights) -> list[CodeResource]:
    return sorted(rights.registry.resources.values(), key=lambda one: one.place)


def read_code_resource(
    context: CallContext, rights: Rights, uri: str
) -> list[ResourceContents] | PendingRead:
    """The contents of a URI of the site's own. Raises NotFound: missing and forbidden alike."""
    if len(uri) <= LONGEST:
        for one in in_order(rights):
            variables = one.variables(uri)
            if variables is not None and one.exists_for(rights):
                return one.read(context, rights, uri, variables)
    raise not_found()


def resource(
    uri: str,
    *,
    name: str | None = None,
    title: _StrOrPromise | None = None,
    description: _StrOrPromise | None = None,
    mime_type: str | None = None,
    size: int | None = None,
    annotations: Annotations | None = None,
    last_modified: Modified | None = None,
    permission: Permission | None = None,
    completions: Mapping[str, Offer] | None = None,
    asks: bool = False,
    registry: Registry | None = None,
) -> Callable[[Function], Function]:
    """Offer a function as a resource. Returns the function itself.

        @mcp.resource("shop://reports/{year}", permission="shop.view_order")
        def report(request: HttpRequest, year: int) -> Report:
            "What was sold in a year."

    A URI with variables is a template, and its variables are the arguments of the function, read
    as what their annotations say; `{+path}` takes slashes. A parameter annotated HttpRequest (or
    just called `request`) and one annotated `mcp.Context` are filled in by us. The function
    returns a str, bytes, plain data for JSON, or `mcp.ResourceContents`, one or a list; None,
    Http404, DoesNotExist and PermissionDenied mean that there is no such resource. Without
    `permission`, which is "app.codename" or a function of the request, every active member of the
    staff may read it. `last_modified` may be a function of the request. `completions` names what
    there is to choose from for a variable: a list, or a function of the request, the text so far
    and the variables chosen before. With `asks` the function may ask with `mcp.Context.ask` and
    its like.

    Raises AlreadyRegistered when the URI is taken, ImproperlyConfigured when the function or the
    URI cannot be a resource.
    """

    def decorate(decorated: Function) -> Function:
        made = CodeResource(
            decorated,
            uri=uri,
            name=name,
            title=title or "",
            description=description,
            mime_type=mime_type,
            size=size,
            annotations=annotations,
            last_modified=last_modified,
            permission=permission,
            completions=completions or {},
            asks=asks,
        )
        (registry or default_registry).add_resource(made)
        return decorated

    return decorate
