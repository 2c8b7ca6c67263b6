"""Which annotations become headers, and which would make clients drop a tool."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest
from django.core.exceptions import ImproperlyConfigured
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map

from mcp_django.exposure.functions.site_schemas import param_headers
from mcp_django.protocol.revisions import Era, Revision
from tests.clients import CheckedClient, over_asgi_and_wsgi
from tests.spec import requirement

pytestmark = pytest.mark.django_db
REGION = {"type": "string", "x-mcp-header": "Region"}


def schema_of(**properties):
    return {"type": "object", "properties": properties}


# Registration


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (schema_of(), {}),
        (schema_of(region=REGION), {("region",): "Region"}),
        (
            schema_of(page=schema_of(size={"type": "integer", "x-mcp-header": "Page-2"})),
            {("page", "size"): "Page-2"},
        ),
        (schema_of(dry={"type": "boolean", "x-mcp-header": "D"}), {("dry",): "D"}),
        (schema_of(**{"x-mcp-header": {"type": "array"}}), {}),
        (schema_of(properties=REGION), {("properties",): "Region"}),
        (schema_of(region={"type": "string", "default": {"x-mcp-header": "No"}}), {}),
    ],
)
def test_annotated_properties_are_found_where_clients_find_them(schema, expected):
    assert param_headers(schema, tool="orders") == expected == x_mcp_header_map(schema)
    assert find_invalid_x_mcp_header(schema) is None


@requirement("parameter-headers:registration")
@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (REGION, "stands where no client finds it"),
        (schema_of(a={"type": "array", "items": REGION}), "#/properties/a/items stands where"),
        (schema_of(a={"anyOf": [REGION, {"type": "null"}]}), "a default of its type, not None"),
        ({"allOf": [schema_of(a=REGION)]}, "stands where"),
        ({"if": True, "then": schema_of(a=REGION)}, "stands where"),
        ({"$defs": {"a": REGION}, "properties": {"a": {"$ref": "#/$defs/a"}}}, "stands where"),
        ({"patternProperties": {"a": REGION}}, "stands where"),
        ({"$defs": {"properties": {"properties": {"a": REGION}}}}, "stands where"),
        (schema_of(a={**REGION, "type": "number"}), "exactly one of string, integer, boolean"),
        (schema_of(a={**REGION, "type": ["string", "null"]}), "exactly one of"),
        (schema_of(a={**REGION, "type": "object"}), "exactly one of"),
        (schema_of(a={"x-mcp-header": "Region"}), "exactly one of"),
        (schema_of(a={**REGION, "x-mcp-header": ""}), "letters, digits and hyphens"),
        (schema_of(a={**REGION, "x-mcp-header": "A B"}), "letters, digits and hyphens"),
        (schema_of(a={**REGION, "x-mcp-header": "A\r\nB: c"}), "letters, digits and hyphens"),
        (schema_of(a={**REGION, "x-mcp-header": "Région"}), "letters, digits and hyphens"),
        (schema_of(a={**REGION, "x-mcp-header": True}), "letters, digits and hyphens"),
        (schema_of(a=REGION, b={**REGION, "x-mcp-header": "REGION"}), "which another argument"),
        # Clients take it. Servers confuse it with another name.
        (schema_of(a={**REGION, "x-mcp-header": "A_B"}), "letters, digits and hyphens"),
    ],
)
def test_annotations_that_clients_drop_tools_for_are_refused(schema, message):
    assert find_invalid_x_mcp_header(schema) or "A_B" in str(schema)

    with pytest.raises(ImproperlyConfigured, match=message) as caught:
        param_headers(schema, tool="orders")

    assert "'orders'" in str(caught.value)


Mirrored = Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})]


def by_region(region: Mirrored = "eu") -> str:
    """Say a region."""
    return f"Region {region}."


# Calls


@pytest.fixture
def offered(add_tool):
    return add_tool(by_region)


def posted(client, arguments, *, headers, tool="by_region"):
    """Status and body of a call whose headers are changed; None takes one away."""
    call = {"name": tool, "arguments": arguments}
    answer = client.post_request("tools/call", call, headers=headers)
    return answer.status, answer.messages[0]


@over_asgi_and_wsgi
@pytest.mark.parametrize("region", ["us", "Zürich", "", " x ", "=?base64?eA==?="])
def test_a_call_that_repeats_its_argument_is_answered(client, offered, region):
    answer = client.call_tool("by_region", region=region)

    assert answer.text == f"Region {region}."


@requirement("parameter-headers:equal")
@over_asgi_and_wsgi
@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ({"region": "eu"}, None),
        ({"region": "eu"}, "us"),
        # Before the arguments are read.
        ({"region": "eu", "nothing": 1}, "us"),
    ],
)
def test_a_call_that_does_not_is_refused_before_the_tool_runs(client, offered, arguments, value):
    status, message = posted(client, arguments, headers={"Mcp-Param-Region": value})

    assert (status, message["error"]["code"]) == (400, -32020)
    assert isinstance(message["id"], int)


@pytest.mark.parametrize("revision", [one for one in Revision if one.era is Era.LEGACY])
def test_older_revisions_have_no_such_header_and_none_is_looked_at(client, offered, revision):
    status, message = posted(client, {"region": "eu"}, headers={"Mcp-Param-Region": "us"})

    assert (status, message["result"]["content"][0]["text"]) == (200, "Region eu.")


@pytest.mark.parametrize("sent", [None, "eu", "us"])
@pytest.mark.parametrize("arguments", [{"region": "eu"}, {"region": 5}])
@pytest.mark.parametrize(
    ("options", "token"),
    [
        ({"permission": "shop.delete_order"}, {}),
        ({"permission": lambda request: False}, {}),
        ({"permission": lambda request: 1 / 0}, {}),
        ({"read_only": False}, {"read_only": True}),
        ({"read_only": False, "destructive": True}, {"scopes": ["mcp:read"]}),
        ({}, {"models": ["shop.order"]}),
    ],
)
def test_a_tool_that_does_not_exist_for_a_caller_is_not_told_apart_by_its_headers(
    staff, add_tool, caplog, options, token, arguments, sent
):
    add_tool(by_region, **options)
    client = CheckedClient(user=staff, **token)

    hidden = posted(client, arguments, headers={"Mcp-Param-Region": sent})
    missing = posted(client, arguments, tool="by_regiox", headers={"Mcp-Param-Region": sent})

    assert hidden[0] == missing[0] == 200
    assert hidden[1]["error"] == {
        **missing[1]["error"],
        "message": missing[1]["error"]["message"].replace("regiox", "region"),
    }
    assert hidden[1]["error"]["code"] == -32602
