"""What a tool has to know of one method of one route of a REST API.

Imports Django REST framework, so import this late.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.db.models import IntegerField, Model
from django.http import Http404
from django.urls import NoReverseMatch, Resolver404, ResolverMatch, URLPattern, resolve, reverse
from django.urls.converters import IntConverter
from django.urls.resolvers import RegexPattern, RoutePattern, URLResolver
from django.utils.text import capfirst
from rest_framework.exceptions import APIException  # type: ignore[import-untyped]  # no types
from rest_framework.fields import FileField  # type: ignore[import-untyped]
from rest_framework.request import Request  # type: ignore[import-untyped]

from mcp_django.exceptions import NotFound, ToolError
from mcp_django.exposure.fields import quoted
from mcp_django.exposure.functions.arguments import as_declared
from mcp_django.exposure.functions.drf import MOST_FAULTS, SchemaOf, unknown_names
from mcp_django.exposure.limits import raise_lost_database
from mcp_django.exposure.rest.calls import EndpointRequest
from mcp_django.principal import ACTION, DELETE, READ, WRITE

if TYPE_CHECKING:
    from mcp_django.exposure.permissions import Rights

logger = logging.getLogger("mcp_django")

#: The argument with the body of a request.
VALUES = "values"
#: Names of query parameters that clients of models accept as names of arguments.
PARAMETER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
#: What REST framework's own methods do to the records of a model.
SENTENCES = {
    "list": "List {}.",
    "retrieve": "Get one of the {}.",
    "create": "Add to the {}.",
    "update": "Replace one of the {}.",
    "partial_update": "Change one of the {}. Send only what is to change.",
    "destroy": "Delete one of the {}.",
}
#: The actions of a view that is no ViewSet, by method, for a list and for an object.
ACTIONS = {
    "get": ("list", "retrieve"),
    "post": ("create", "create"),
    "put": ("update", "update"),
    "patch": ("partial_update", "partial_update"),
    "delete": ("destroy", "destroy"),
}
WRITING = frozenset({"create", "update", "partial_update"})


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One method of a view, at the pattern of a URLconf that leads there."""

    pattern: URLPattern
    #: In small letters.
    method: str
    #: That of a ViewSet, or the one of its usual actions that a method is in any other view.
    action: str
    #: Of the URLconf in which the site includes the pattern.
    namespace: str = ""

    @property
    def view_class(self) -> Any:
        return self.pattern.callback.cls  # type: ignore[attr-defined]  # REST framework's

    @cached_property
    def variables(self) -> dict[str, dict[str, str]]:
        """The parts of the path that a caller chooses, with their schemas."""
        view, route = self.view_class, self.pattern.pattern
        converters: Any = route.converters if isinstance(route, RoutePattern) else {}
        lookup = getattr(view, "lookup_field", None)
        is_number = lookup == "pk" and self.model and isinstance(self.model._meta.pk, IntegerField)
        numbers = {getattr(view, "lookup_url_kwarg", None) or lookup} if is_number else set()
        numbers |= {name for name, each in converters.items() if isinstance(each, IntConverter)}
        return {
            name: {"type": "integer" if name in numbers else "string"}
            for name in route.regex.groupindex
        }

    @cached_property
    def model(self) -> type[Model] | None:
        """Of whose records it is, as far as the class of the view says."""
        meta = getattr(getattr(self.view_class, "serializer_class", None), "Meta", None)
        models = (
            getattr(source, "model", None)
            for source in (getattr(self.view_class, "queryset", None), meta)
        )
        return next(filter(None, models), None)

    @property
    def scope(self) -> str:
        """What a credential needs."""
        if self.method == "get":
            return READ
        if self.method == "delete":
            return DELETE
        return WRITE if self.action in WRITING else ACTION

    @property
    def takes_values(self) -> bool:
        return self.method in ("post", "put", "patch")

    def view(self, request: Any = None) -> Any:
        """Return a view that can be asked about itself. Without a request, as for a schema."""
        callback: Any = self.pattern.callback
        view = self.view_class(**getattr(callback, "initkwargs", {}))
        view.args, view.kwargs, view.format_kwarg = (), {}, None
        view.request, view.action, view.action_map = request, self.action, {}
        # What drf-yasg and drf-spectacular set, so what sites ask for.
        view.swagger_fake_view = request is None
        return view

    # Who may know of it

    def admits(self, rights: Rights) -> bool:
        """Return whether the permissions of the view let this caller in, whatever the object."""
        request = EndpointRequest(rights.request, method=self.method)
        view = self.view(asked := Request(request))
        asked.user = request.user
        try:
            view.check_permissions(asked)
        except (APIException, PermissionDenied, Http404):
            return False
        except KeyError:
            # It asks for a part of the path. The call has that, and asks again.
            return bool(self.variables)
        except Exception as error:
            raise_lost_database(error)
            logger.exception("The permissions of %s failed.", self.view_class.__name__)
            return False
        return True

    # What it takes, and what it answers

    @cached_property
    def serializer(self) -> Any:
        """Of the body, or of the answer where there is none. None: nothing is known of it."""
        view = self.view()
        if not hasattr(view, "get_serializer") or self.method == "delete":
            return None
        try:
            serializer = view.get_serializer()
        except Exception:  # code of the site, which may want a request
            logger.info("The serializer of %s is not known.", self.view_class.__name__)
            return None
        fields = getattr(serializer, "fields", {}) if self.takes_values else {}
        for name, field in [*fields.items()]:
            # No argument of a tool is a file.
            if isinstance(field, FileField) and not field.required:
                del fields[name]
        # An action that names none has that of the ViewSet, and seldom uses it.
        is_usual = type(serializer) is getattr(self.view_class, "serializer_class", None)
        return None if is_usual and self.action not in SENTENCES else serializer

    @cached_property
    def declared(self) -> dict[str, Any]:
        """The schema of all arguments, which takes no others."""
        properties: dict[str, Any] = dict(self.variables)
        required = list(self.variables)
        if self.takes_values:
            properties[VALUES] = self._values_schema()
            if properties[VALUES].get("required"):
                required.append(VALUES)
        else:
            properties |= self.query_parameters
        schema = {"type": "object", "properties": properties, "required": required}
        return {**schema, "additionalProperties": False}

    def _values_schema(self) -> dict[str, Any]:
        if self.serializer is None:
            return {"type": "object"}
        try:
            schema = SchemaOf(reads=True).whole(self.serializer)
        except ImproperlyConfigured:  # a file
            return {"type": "object"}
        if self.method == "patch":
            schema.pop("required", None)
        return schema

    @cached_property
    def query_parameters(self) -> dict[str, dict[str, Any]]:
        """Those of filters and of pages, as far as they say which they have."""
        view = self.view()
        parameters: dict[str, dict[str, Any]] = {}
        if self.action != "list" or not hasattr(view, "filter_backends"):
            return parameters
        sources = [backend() for backend in view.filter_backends]
        if view.paginator is not None:
            sources.append(view.paginator)
        for source in sources:
            try:
                parameters |= dict(parameters_of(source, view))
            except Exception:  # code of the site, which may want a request
                logger.info("The parameters of %s are not known.", type(source).__name__)
        return {
            name: schema for name, schema in parameters.items() if PARAMETER_NAME.fullmatch(name)
        }

    @cached_property
    def answer_schema(self) -> dict[str, Any] | None:
        """Of an object in its answers. None: nothing is known of it. No promise."""
        is_usual = self.serializer is not None and self.action in SENTENCES
        return SchemaOf(reads=False).whole(self.serializer) if is_usual else None

    @property
    def description(self) -> str:
        """The docstring of the method, or what REST framework's own does."""
        handlers = (getattr(self.view_class, name, None) for name in (self.action, self.method))
        handler = next(filter(None, handlers))
        plural = f"objects of {self.view_class.__name__}"
        if self.model is not None:
            plural = str(self.model._meta.verbose_name_plural)
        text = "" if is_framework(handler) else (handler.__doc__ or "").strip()
        if not text and not hasattr(self.pattern.callback, "actions"):
            text = (self.view_class.__doc__ or "").strip()
        if not text and self.action in SENTENCES and is_framework(handler):
            text = SENTENCES[self.action].format(plural)
        text = text or f"{capfirst(self.action.replace('_', ' '))}: {plural}."
        names = (self.answer_schema or {}).get("properties", ()) if self.method == "get" else ()
        if names:
            text = f"{text} It answers with {', '.join(names)}."
        return " ".join(text.split())

    # A call of it

    @cached_property
    def _resolver(self) -> URLResolver:
        return URLResolver(RegexPattern(r"^/"), (self.pattern,))

    def match(self, values: Mapping[str, Any]) -> tuple[str, ResolverMatch]:
        """Return the path with these parts, and what it leads to. Raises NotFound.

        The path is the site's where its URLconf includes the pattern, so that links lead there.
        """
        kwargs = {name: str(value) for name, value in values.items()}
        try:
            own = "/" + self._resolver.reverse(self.pattern.callback, **kwargs)  # type: ignore[arg-type]  # it may
            match = self._resolver.resolve(own)
        except (NoReverseMatch, Resolver404, ValueError):
            raise NotFound("There is no such object.") from None
        name = self.pattern.name
        try:
            path = reverse(f"{self.namespace}:{name}" if self.namespace else name, kwargs=kwargs)
            outer = resolve(path)
            # One of the same name may be another view.
            if getattr(outer.func, "cls", None) is self.view_class:
                return path, outer
        except (NoReverseMatch, Resolver404):
            pass
        return own, match

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as they are declared.

        Raises ToolError for names that nobody reads: the framework would ignore them.
        """
        arguments, names = (
            as_declared(arguments, self.declared, takes_empty=False),
            self.declared["properties"],
        )
        faults = [
            f"Unknown argument {quoted(name)}. It takes: {', '.join(names) or 'none'}."
            for name in arguments
            if name not in names
        ]
        missing = [name for name in self.variables if name not in arguments]
        faults += [f"The argument {name} is missing." for name in missing]
        values = arguments.get(VALUES, {})
        if self.takes_values and not isinstance(values, dict):
            faults.append("The argument values must be an object.")
        elif self.serializer is not None:
            faults += unknown_names(self.serializer, values, place=VALUES)
        if faults:
            raise ToolError(" ".join(faults[:MOST_FAULTS]))
        return arguments


def is_framework(handler: Any) -> bool:
    return str(getattr(handler, "__module__", "")).startswith("rest_framework.")


def parameters_of(source: Any, view: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what a filter backend or a paginator reads in a query, with schemas."""
    facts: list[tuple[str, str, object]] = []
    if hasattr(source, "get_schema_operation_parameters"):
        for each in source.get_schema_operation_parameters(view):
            kind = each.get("schema", {}).get("type", "string")
            facts.append((each["name"], kind, each.get("description")))
    elif hasattr(source, "get_filterset_class"):
        # That of django-filter.
        filterset = source.get_filterset_class(view, getattr(view, "queryset", None))
        for name, each in getattr(filterset, "base_filters", {}).items():
            facts.append((name, "string", each.extra.get("help_text")))
    for name, kind, text in facts:
        yield name, {"type": kind, **({"description": str(text)} if text else {})}


def endpoints_at(pattern: URLPattern, *, namespace: str) -> Iterator[Endpoint]:
    """Yield each method that a view of REST framework has at a pattern."""
    callback: Any = pattern.callback
    actions = getattr(callback, "actions", None)
    if actions is None:
        # One object or a list, as its handlers are called; else as its path has variables.
        is_single = not hasattr(callback.cls, "list")
        if not hasattr(callback.cls, "retrieve"):
            is_single = bool(pattern.pattern.regex.groupindex)
        allowed = callback.cls.http_method_names
        actions = {
            method: usual[is_single]
            for method, usual in ACTIONS.items()
            if method in allowed and hasattr(callback.cls, method)
        }
    for method, action in actions.items():
        if method in ACTIONS:
            yield Endpoint(pattern=pattern, method=method, action=action, namespace=namespace)
