"""`@mcp.resource`: a function of the site as a resource, or as a template of many."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import msgspec
from django.core.exceptions import ImproperlyConfigured, ObjectDoesNotExist, PermissionDenied
from django.http import Http404, HttpRequest
from django.utils import timezone

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound
from mcp_django.exposure.functions.arguments import (
    UNREADABLE,
    Arguments,
    alternatives,
    check_decimals,
    check_plain,
    types_of,
)
from mcp_django.exposure.functions.json_schemas import input_schema
from mcp_django.exposure.functions.results import contents_of, mime_type_of
from mcp_django.exposure.functions.signatures import Signature, SiteOptions
from mcp_django.exposure.limits import raise_lost_database
from mcp_django.exposure.primitives import PendingCall
from mcp_django.exposure.registry import Registry
from mcp_django.exposure.registry import registry as default_registry
from mcp_django.exposure.site_functions import Function, SiteFunction, registering
from mcp_django.exposure.uris import LONGEST
from mcp_django.protocol.content import Annotations
from mcp_django.protocol.results import ReadResult, Resource, ResourceTemplate
from mcp_django.protocol.uri_templates import EXPRESSION, URITemplate

if TYPE_CHECKING:
    from mcp_django.exposure.permissions import Rights


# Checks at registration.

#: RFC 3986, 3.1. Capitals would be another spelling of the same scheme.
SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):.")
#: The characters of RFC 3986 without "#": a fragment is for the client alone.
LITERAL = re.compile(r"(?:[A-Za-z0-9\-._~:/?@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*\Z")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
AUDIENCES = frozenset({"user", "assistant"})
#: JSON types that a part of a URI can be read as.
PLAIN = frozenset({"string", "integer", "number", "boolean"})
TAKEN = {
    "django": "belongs to the models that are exposed",
    "file": "is for files that the client itself can open",
    "http": "is for what the client can fetch from the web itself",
    "https": "is for what the client can fetch from the web itself",
}


def check_uri(uri: Any) -> URITemplate:
    """The template of a URI of the site's own. Raises ImproperlyConfigured."""
    if not isinstance(uri, str) or not (found := SCHEME.match(uri)) or len(uri) > LONGEST:
        raise ImproperlyConfigured(
            f'{uri!r} is no URI. Write a scheme of your own: @mcp.resource("shop://reports").'
        )
    if found[1] in TAKEN:
        raise ImproperlyConfigured(
            f"{uri!r}: the scheme {found[1]!r} {TAKEN[found[1]]}. Choose one of your own, such "
            "as shop://."
        )
    template = URITemplate(uri)
    first, *rest = EXPRESSION.split(uri)
    operators, names, behind = rest[::3], rest[1::3], rest[2::3]
    are_literal = all(LITERAL.match(part) for part in (first, *behind))
    faults = {
        " has characters that no URI has, or a form of variable that is not served. Write "
        "variables as {year}, or {+path} for one that may have slashes, and other characters as "
        "percent octets.": not are_literal or not SCHEME.match(f"{first}x"),
        ": write each variable by itself, as in shop://{year}/{month}.": (
            "?" in operators or not all(NAME.match(name) for name in names)
        ),
        " has a variable twice.": len(set(names)) < len(names),
        ": nothing stands between two variables, so nobody could tell where one ends.": (
            not all(behind[:-1])
        ),
        ": a variable that may have slashes can only be the last.": "+" in operators[:-1],
    }
    for sentence, is_made in faults.items():
        if is_made:
            raise ImproperlyConfigured(f"{uri!r}{sentence}")
    return template


def check_variables(template: URITemplate, signature: Signature) -> None:
    """Each variable is an argument that can be read from a text, and each argument a variable."""
    names, arguments = set(template.variables), signature.annotations
    for name in template.variables:
        if name not in arguments:
            raise ImproperlyConfigured(
                f"The function of {template.text!r} does not take {name!r}. Add it: {name}: str."
            )
    for name, annotation in arguments.items():
        if name not in names:
            raise ImproperlyConfigured(
                f"The function of {template.text!r} takes {name!r}, which its URI does not have. "
                f"Add {{{name}}} to the URI, or drop the argument."
            )
        if not is_plain(annotation):
            raise ImproperlyConfigured(
                f"The argument {name!r} of {template.text!r} cannot be read from a part of a URI."
                " Take a str, int, float, bool, Decimal, date, datetime, time, UUID or Enum."
            )


def is_plain(annotation: Any) -> bool:
    """Whether texts can be read as this type."""
    try:
        schema = input_schema({"one": annotation}, defaults={}, descriptions={})
    except (TypeError, NameError):
        return False
    options = alternatives(schema["properties"]["one"])
    return all(types_of(option) <= PLAIN for option in options)


def check_attributes(uri: str, annotations: Annotations | None, *, size: int | None) -> None:
    """What the specification allows of the hints for clients."""
    if size is not None and (type(size) is not int or size < 0):
        raise ImproperlyConfigured(f"size of {uri!r} is a number of bytes, not {size!r}.")
    if annotations is None:
        return
    unknown = sorted(set(annotations.audience) - AUDIENCES)
    if unknown or isinstance(annotations.audience, str):
        raise ImproperlyConfigured(
            f'The audience of {uri!r} is a list of "user" and "assistant", not {unknown!r}.'
        )
    priority = annotations.priority
    if priority is not None and not 0 <= priority <= 1:
        raise ImproperlyConfigured(f"The priority of {uri!r} is from 0 to 1, not {priority!r}.")
    if annotations.last_modified is not None:
        try:
            datetime.fromisoformat(annotations.last_modified)
        except ValueError:
            raise ImproperlyConfigured(
                f"last_modified of {uri!r} is not as in 2026-01-31T12:00:00Z."
            ) from None


Modified: TypeAlias = datetime | Callable[[HttpRequest], datetime | None]
#: Values to choose from: fixed, or found for a request and the variables chosen so far.
Offer: TypeAlias = (
    Sequence[str] | Callable[[HttpRequest, str, Mapping[str, str]], Iterable[object]]
)
#: Django's ways to say that something is not there for this user.
ABSENT = (Http404, ObjectDoesNotExist, PermissionDenied)

logger = logging.getLogger("mcp_django")


@contextmanager
def absence_in_words() -> Iterator[None]:
    try:
        yield
    except ABSENT:
        raise not_found() from None


class ResourceOptions(SiteOptions, total=False):
    name: str | None
    mime_type: str | None
    size: int | None
    annotations: Annotations | None
    last_modified: Modified | None
    completions: Mapping[str, Offer] | None


class CodeResource(SiteFunction):
    """A function as a resource."""

    kind = "resource"
    decorator = '@mcp.resource("shop://reports/{year}")'
    options = ResourceOptions
    no_generators = "A resource returns its whole content."
    described_for = "read it"
    method = "resources/read"
    refusals = staticmethod(absence_in_words)

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        uri: str,
        name: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | None = None,
        last_modified: Modified | None = None,
        completions: Mapping[str, Offer] | None = None,
        **options: Any,
    ) -> None:
        self.template = check_uri(uri)
        self.uri = uri
        super().__init__(function, key=uri, **options)
        check_variables(self.template, self.signature)
        check_attributes(uri, annotations, size=size)
        self.arguments = Arguments(uri, self.signature, descriptions=self.parameters)
        self.name = name or function.__name__
        self.mime_type = mime_type or ""
        self.shown_mime_type = mime_type or mime_type_of(self.signature.returns)
        self.size = size
        self.annotations = annotations
        self.last_modified = last_modified
        self.completions = dict(completions or {})
        if size is not None and self.is_template:
            raise ImproperlyConfigured(f"{uri!r} stands for many resources, so it has no size.")
        for variable in self.completions:
            if variable not in self.template.variables:
                raise ImproperlyConfigured(
                    f"completions of {uri!r} names {variable!r}, which its URI does not have."
                )

    @property
    def is_template(self) -> bool:
        return bool(self.template.variables)

    @property
    def place(self) -> tuple[bool, int, str]:
        """Literal URIs come before templates, and those that say more before the others."""
        return self.is_template, -len(self.template.literals), self.uri

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
        if timezone.is_naive(modified):
            modified = timezone.make_aware(modified)
        text = modified.astimezone(UTC).isoformat()
        return replace(self.annotations or Annotations(), last_modified=text)

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

    def record_uri(self, uri: str) -> str:
        """Return the URI of the record whose changes it hears of. Empty: of none."""
        return ""

    def read(
        self, context: CallContext, rights: Rights, uri: str, variables: Mapping[str, Any]
    ) -> ReadResult | PendingCall:
        """Run the function. Raises NotFound for what it does not have or does not show."""

        def finish(value: Any) -> ReadResult:
            return ReadResult(contents=contents_of(value, uri=uri, mime_type=self.mime_type))

        return self.run(context, rights, variables, finish=finish, sent={}, key=uri)

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
        except Exception as error:
            raise_lost_database(error)
            logger.exception("The completions of %s of %s failed.", variable, self.uri)
            return []


def not_found() -> NotFound:
    return NotFound("There is no such resource.")


def code_definitions(rights: Rights) -> list[Resource | ResourceTemplate]:
    """Those that exist for this caller, in the order in which a URI is looked up."""
    return [one.definition(rights.request) for one in in_order(rights) if one.exists_for(rights)]


def in_order(rights: Rights) -> list[CodeResource]:
    return sorted(rights.registry.resources.values(), key=lambda one: one.place)


def find_code_resource(rights: Rights, uri: str) -> CodeResource:
    """Raises NotFound: missing and forbidden alike."""
    if len(uri) <= LONGEST:
        for resource in in_order(rights):
            if resource.variables(uri) is not None and resource.exists_for(rights):
                return resource
    raise not_found()


def read_code_resource(context: CallContext, rights: Rights, uri: str) -> ReadResult | PendingCall:
    """The contents of a URI of the site's own. Raises NotFound: missing and forbidden alike."""
    resource = find_code_resource(rights, uri)
    return resource.read(context, rights, uri, resource.variables(uri) or {})


def resource(
    uri: str, *, registry: Registry | None = None, **options: Unpack[ResourceOptions]
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
    # Here, since `@mcp.resource` without a URI never gets its function.
    check_uri(uri)
    add = (registry or default_registry).add_resource
    return registering(CodeResource, add, options, uri=uri)
