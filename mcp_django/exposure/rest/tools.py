"""Endpoints of a REST API as tools: each as one, or with many of them three that stand in.

Imports Django REST framework, so import this late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
from django.utils.translation import get_language

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound, ToolError
from mcp_django.exposure.functions.json_schemas import of_arguments
from mcp_django.exposure.functions.results import structured
from mcp_django.exposure.primitives import Outcome
from mcp_django.exposure.registry import Registry
from mcp_django.exposure.rest.calls import EndpointRequest, call_view, result_of_response
from mcp_django.exposure.rest.endpoints import VALUES, Endpoint
from mcp_django.exposure.tools.decisions import tool_definition
from mcp_django.protocol.results import ToolAnnotations, ToolDefinition, ToolResult

if TYPE_CHECKING:
    from mcp_django.exposure.permissions import Rights


class EndpointTool:
    """One method of a view as a tool. Its view decides who may call it."""

    asks = False
    confirms_itself = False
    decides_itself = True

    def __init__(self, endpoint: Endpoint, *, name: str, description: str) -> None:
        self.endpoint = endpoint
        self.name = name
        self.scope = endpoint.scope
        self._site_description = description
        self._definitions: dict[str | None, ToolDefinition] = {}

    @property
    def definition(self) -> ToolDefinition:
        """What clients get, in the language of the moment. Made at first use: serializers are not
        read while apps load.
        """
        language, method = get_language(), self.endpoint.method
        if language not in self._definitions:
            # A copy reads lazy texts again.
            endpoint = replace(self.endpoint)
            self._definitions[language] = ToolDefinition(
                name=self.name,
                title=self.name.replace("_", " ").capitalize(),
                description=f"{endpoint.description} {self._site_description}".strip(),
                input_schema=of_arguments(endpoint.declared),
                annotations=ToolAnnotations(
                    read_only=method == "get",
                    destructive=method != "get" and endpoint.action != "create",
                    idempotent=method in ("get", "put", "delete"),
                    open_world=False,
                ),
            )
        return self._definitions[language]

    def admits(self, rights: Rights) -> bool:
        """Return whether this caller may use the endpoint, be it a tool of its own or not."""
        restriction, model = rights.principal.restriction, self.endpoint.model
        if not rights.has_scopes(frozenset({self.scope})):
            return False
        if rights.is_read_only and self.endpoint.method != "get":
            return False
        # Only its model says what a view is about: without one it may touch anything.
        if restriction.models is not None and (
            model is None or not restriction.allows_model(model._meta.label_lower)
        ):
            return False
        return self.endpoint.admits(rights)

    def exists_for(self, rights: Rights) -> bool:
        return not has_many(rights.registry) and self.admits(rights)

    def check(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> None:
        self.endpoint.read(arguments)

    def call(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> Outcome:
        result = result_of_response(self.respond(context, rights, arguments), context)
        model = self.endpoint.model
        if model is None or self.endpoint.method == "get":
            return result
        keys = [arguments[name] for name in self.endpoint.variables]
        return replace(result, model=model._meta.label_lower, keys=keys)

    def respond(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> Any:
        """Return the response of the view. Raises ToolError for what it refuses."""
        endpoint = self.endpoint
        arguments = endpoint.read(arguments)
        path, match = endpoint.match({name: arguments[name] for name in endpoint.variables})
        request = EndpointRequest(
            rights.request,
            method=endpoint.method,
            path=path,
            query={
                name: arguments[name] for name in endpoint.query_parameters if name in arguments
            },
            values=arguments.get(VALUES, {}) if endpoint.takes_values else None,
        )
        refused = VALUES if endpoint.takes_values else ""
        return call_view(context, request, match, refused=refused)


# With many endpoints three tools stand in, so that the list of tools does not grow with the API.


def endpoint_tools(registry: Registry) -> dict[str, EndpointTool]:
    tools = tuple(registry.tools.values())
    return {tool.name: tool for tool in tools if isinstance(tool, EndpointTool)}


def has_many(registry: Registry) -> bool:
    """Return whether three tools stand in: for everybody or for nobody."""
    return len(endpoint_tools(registry)) > get_config().most_endpoint_tools


def offered_endpoints(rights: Rights) -> list[EndpointTool]:
    """Return the endpoints that this caller may use, and staff have not switched off."""
    tools = sorted(endpoint_tools(rights.registry).items())
    return [tool for _, tool in tools if is_offered(rights, tool)]


def is_offered(rights: Rights, tool: EndpointTool) -> bool:
    return rights.is_left(rights.exposed.decisions.tools.get(tool.name)) and tool.admits(rights)


def find_endpoint(rights: Rights, name: object) -> EndpointTool:
    """Raises NotFound: missing and forbidden alike."""
    tool = endpoint_tools(rights.registry).get(name) if isinstance(name, str) else None
    if tool is None or not is_offered(rights, tool):
        raise NotFound("There is no such endpoint. list_endpoints names them.")
    return tool


def list_endpoints(
    context: CallContext, rights: Rights, arguments: Mapping[str, Any]
) -> ToolResult:
    definitions = [tool_definition(rights, tool) for tool in offered_endpoints(rights)]
    listing = {"endpoints": {each.name: each.description for each in definitions}}
    return structured(msgspec.json.encode(listing))


def describe_endpoint(
    context: CallContext, rights: Rights, arguments: Mapping[str, Any]
) -> ToolResult:
    tool = find_endpoint(rights, arguments.get("endpoint"))
    definition = tool_definition(rights, tool)
    description = {
        "endpoint": tool.name,
        "description": definition.description,
        "arguments": definition.input_schema,
    }
    if (schema := tool.endpoint.answer_schema) is not None:
        description["answers"] = schema
    return structured(msgspec.json.encode(description))


def call_endpoint(context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> Outcome:
    tool, own = resolve_endpoint(rights, arguments)
    return tool.call(context, rights, own)


def resolve_endpoint(
    rights: Rights, arguments: Mapping[str, Any]
) -> tuple[EndpointTool, Mapping[str, Any]]:
    """Return the endpoint that `call_endpoint` calls, and its arguments.

    Raises ToolError. The token of a confirmation stands beside the arguments.
    """
    own, others = arguments.get("arguments") or {}, dict(arguments)
    if not isinstance(own, dict):
        raise ToolError("The argument arguments must be an object.")
    tool = find_endpoint(rights, others.pop("endpoint", None))
    others.pop("arguments", None)
    return tool, {**own, **others}


class StandIn:
    """A tool about all endpoints."""

    asks = False
    confirms_itself = False
    annotations = ToolAnnotations(
        read_only=True, destructive=False, idempotent=True, open_world=False
    )

    def __init__(
        self,
        name: str,
        description: str,
        run: Callable[[CallContext, Rights, Mapping[str, Any]], Outcome],
        **properties: dict[str, Any],
    ) -> None:
        self.name = name
        self._run = run
        self.definition = ToolDefinition(
            name=name,
            title=name.replace("_", " ").capitalize(),
            description=description,
            input_schema={
                "type": "object",
                "properties": properties,
                "required": [*properties][:1],
            },
            annotations=self.annotations,
        )

    def exists_for(self, rights: Rights) -> bool:
        return has_many(rights.registry) and bool(offered_endpoints(rights))

    def check(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> None:
        """Nothing can be said before the endpoint is looked up."""

    def call(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> Outcome:
        return self._run(context, rights, arguments)


class CallEndpoint(StandIn):
    """What staff decided about the endpoint holds for the call: see `resolve`."""

    annotations = ToolAnnotations(
        read_only=False, destructive=True, idempotent=False, open_world=False
    )
    resolve = staticmethod(resolve_endpoint)


ENDPOINT = {"type": "string", "description": "A name from list_endpoints."}
ENDPOINT_ARGUMENTS = {
    "type": "object",
    "description": "As describe_endpoint says.",
}
API = "of this site's REST API"
STAND_INS = (
    StandIn("list_endpoints", f"List the endpoints {API} that you may call.", list_endpoints),
    StandIn(
        "describe_endpoint",
        f"Describe an endpoint {API}: what it takes, and what it answers.",
        describe_endpoint,
        endpoint=ENDPOINT,
    ),
    CallEndpoint(
        "call_endpoint",
        f"Call an endpoint {API}.",
        call_endpoint,
        endpoint=ENDPOINT,
        arguments=ENDPOINT_ARGUMENTS,
    ),
)
