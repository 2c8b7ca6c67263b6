"""What `retrieve` of a REST_OBJECTS API answers, as resources: `django://rest/order/5`.

Imports Django REST framework, so import this late.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest

from mcp_django.context import CallContext
from mcp_django.exceptions import Limited, ToolError
from mcp_django.exposure.functions.results import JSON, contents_of
from mcp_django.exposure.resources.functions import CodeResource, not_found
from mcp_django.exposure.rest.tools import EndpointTool, is_offered
from mcp_django.exposure.uris import REST_OBJECTS, object_uri
from mcp_django.protocol.results import ReadResult, ResourceTemplate
from mcp_django.protocol.uri_templates import URITemplate

if TYPE_CHECKING:
    from mcp_django.exposure.permissions import Rights


class EndpointResource(CodeResource):
    """An endpoint that answers with one object, which one part of its path names."""

    def __init__(self, tool: EndpointTool, *, basename: str) -> None:
        [self.variable] = tool.endpoint.variables
        self.tool, self.name, self.completions = tool, basename, {}
        self.uri = self.key = f"{REST_OBJECTS}{basename}/{{{self.variable}}}"
        self.template = URITemplate(self.uri)

    def definition(self, request: HttpRequest) -> ResourceTemplate:
        shown = self.tool.definition
        return ResourceTemplate(
            uri_template=self.uri,
            name=self.name,
            title=shown.title,
            description=shown.description,
            mime_type=JSON,
        )

    def exists_for(self, rights: Rights) -> bool:
        return is_offered(rights, self.tool)

    def variables(self, uri: str) -> dict[str, Any] | None:
        return self.template.match(uri)

    def record_uri(self, uri: str) -> str:
        model = self.tool.endpoint.model
        view = self.tool.endpoint.view_class
        # The value of another field does not say which record it is.
        if model is None or getattr(view, "lookup_field", "") not in ("pk", model._meta.pk.name):
            return ""
        return object_uri(model._meta.label_lower, (self.variables(uri) or {})[self.variable])

    def read(
        self, context: CallContext, rights: Rights, uri: str, variables: Mapping[str, Any]
    ) -> ReadResult:
        try:
            content = self.tool.respond(context, rights, variables).content
        except Limited:
            raise
        except ToolError:
            raise not_found() from None
        return ReadResult(contents=contents_of(content.decode(), uri=uri, mime_type=JSON))
