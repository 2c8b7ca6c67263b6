"""Results in the words of each revision: nothing that it cannot say, and all that it can."""

from __future__ import annotations

import base64
import json
from contextlib import nullcontext
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mcp_django.protocol.content import (
    Annotations,
    AudioContent,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from mcp_django.protocol.jsonrpc import encode_result
from mcp_django.protocol.negotiation import META
from mcp_django.protocol.render import LIST_TTL, ServerInfo, render
from mcp_django.protocol.results import (
    DiscoverResult,
    EmptyResult,
    InitializeResult,
    ListResult,
    ReadResult,
    Resource,
    ResourceTemplate,
    Result,
    ToolAnnotations,
    ToolDefinition,
    ToolResult,
)
from mcp_django.protocol.revisions import Era, Revision
from tests.oracle import assert_valid_message, assert_valid_result
from tests.spec import requirement

V24, V2503, V2506, V2511, V26 = Revision
SERVER = ServerInfo(name="Shop", version="2.3", instructions="Ask for orders.")
SERVER_INFO = {"name": "Shop", "version": "2.3"}
OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}}
HINTS = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
ANNOTATIONS = Annotations(audience=["user"], priority=0.5, last_modified="2026-01-01T00:00:00Z")

TOOL = ToolDefinition(
    name="revenue",
    title="Revenue",
    description="What was sold.",
    input_schema={"type": "object", "$defs": {"x": {}}, "additionalProperties": False},
    output_schema=OBJECT,
    annotations=HINTS,
)
PLAIN_TOOL = ToolDefinition(
    name="x", description="", input_schema={"type": "object"}, annotations=HINTS
)
SITE = {"uri": "django://site", "name": "site", "title": "Site", "description": "All"}
RESOURCE = Resource(**SITE, size=0, annotations=ANNOTATIONS)
TEMPLATE = ResourceTemplate(
    uri_template="django://objects/{model}",
    name="objects",
    title="Objects",
    description="Rows",
    annotations=ANNOTATIONS,
)
LINK = ResourceLink(**SITE, mime_type="text/plain")
RESULTS: dict[str, Result] = {
    "tools/list": ListResult(key="tools", definitions=[TOOL, PLAIN_TOOL], next_cursor=""),
    "resources/list": ListResult(key="resources", definitions=[RESOURCE]),
    "resources/templates/list": ListResult(key="resourceTemplates", definitions=[TEMPLATE]),
    "resources/read": ReadResult(
        contents=[
            ResourceContents(uri="a:b", mime_type="text/plain", text=""),
            ResourceContents(uri="a:b", mime_type="image/png", blob=b"\x00\xff"),
        ]
    ),
    "tools/call": ToolResult(
        content=[TextContent("1"), LINK], structured={"a": 1}, has_structured=True
    ),
    "initialize": InitializeResult(protocol_version="2025-06-18"),
    "server/discover": DiscoverResult(),
    "ping": EmptyResult(),
}
ONLY = {"initialize": Era.LEGACY, "ping": Era.LEGACY, "server/discover": Era.MODERN}


def wire(result, revision, server=SERVER):
    """The result as a peer reads it."""
    return json.loads(encode_result(1, render(result, revision, server)))["result"]


@requirement("lifecycle:negotiated-only", "render:members")
@pytest.mark.parametrize(
    ("method", "revision"),
    [
        (method, revision)
        for method in RESULTS
        for revision in Revision
        if ONLY.get(method, revision.era) is revision.era
    ],
)
def test_every_result_is_one_that_the_revision_knows(method, revision):
    assert_valid_message(
        revision, method, encode_result(1, render(RESULTS[method], revision, SERVER))
    )


@requirement(
    "render:modern-members", "results:type", "results:server-info", "results:extension-types"
)
@pytest.mark.parametrize("method", RESULTS)
def test_the_modern_envelope_of_a_result_exists_in_the_modern_era_only(method, revision):
    found = wire(RESULTS[method], revision)

    own = {"resultType", "_meta", "ttlMs", "cacheScope"} & found.keys()
    if revision.era is Era.LEGACY:
        assert own == set()
    else:
        assert found["resultType"] == "complete"
        assert found["_meta"] == {"io.modelcontextprotocol/serverInfo": SERVER_INFO}


@requirement("caching:members", "caching:private", "caching:never")
@pytest.mark.parametrize(
    ("method", "ttl"),
    [
        *((f"{name}/list", LIST_TTL) for name in ("tools", "resources", "resources/templates")),
        ("server/discover", LIST_TTL),
        ("resources/read", 0),
        *((method, None) for method in ("tools/call", "ping")),
    ],
)
def test_what_may_be_kept_is_private_and_a_call_is_never_kept(method, ttl):
    found = wire(RESULTS[method], V26)

    assert found.get("ttlMs") == ttl
    assert found.get("cacheScope") == (None if ttl is None else "private")


# Definitions


@requirement("render:members", "schemas:verbatim")
def test_a_tool_has_the_members_that_its_revision_knows(revision):
    tool, plain = wire(RESULTS["tools/list"], revision)["tools"]

    members = {"name", "description", "inputSchema"}
    members |= {"annotations"} if revision.features.tool_annotations else set()
    members |= {"title", "outputSchema"} if revision.features.titles else set()
    # 2025-03-26 has a title among the annotations only.
    assert ("title" in tool.get("annotations", ())) is (revision is V2503)
    assert "title" not in plain.keys() | plain.get("annotations", {}).keys()
    assert tool.keys() == members
    assert tool["inputSchema"] == TOOL.input_schema


@pytest.mark.parametrize("root", [{"type": "array"}, {"type": ["object", "null"]}, {"anyOf": []}])
def test_an_output_schema_without_an_object_at_its_root_waits_for_the_modern_era(revision, root):
    tool = replace(PLAIN_TOOL, output_schema=root)

    found = wire(ListResult(key="tools", definitions=[tool]), revision)["tools"][0]

    assert found.get("outputSchema") == (root if revision is V26 else None)


# Contents


@requirement("render:content-blocks", "resources:contents", "tools:content")
@given(st.text(), st.binary())
def test_any_contents_are_valid_in_every_revision(text, data):
    encoded = base64.b64encode(data).decode()
    held = [{"text": text}, {"blob": data}]
    read = ReadResult(
        contents=[ResourceContents(uri="a:b", mime_type="a/b", **one) for one in held]
    )
    drawn = ImageContent(data=data, mime_type="image/png")
    called = ToolResult(content=[drawn, AudioContent(data=data, mime_type="audio/wav")])

    for revision in Revision:
        contents, (image, audio) = wire(read, revision), wire(called, revision)["content"]
        assert_valid_result(revision, "resources/read", contents)
        assert_valid_result(revision, "tools/call", wire(called, revision))
        told = [one.get("text", one.get("blob")) for one in contents["contents"]]
        assert told == [text, encoded]
        assert image == {"type": "image", "data": encoded, "mimeType": "image/png"}
        if revision.features.audio:
            assert audio == {"type": "audio", "data": encoded, "mimeType": "audio/wav"}
        else:
            resource = audio["resource"]
            assert (resource["blob"], resource["mimeType"]) == (encoded, "audio/wav")


# Structured content


@pytest.mark.parametrize(
    ("value", "since"),
    [
        *((value, "2025-06-18") for value in ({}, {"a": [1]})),
        *((value, "2026-07-28") for value in ([], [{"a": 1}], "a", 0, False, None)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("is_encoded", [False, True])
def test_structured_content_is_an_object_until_the_modern_era_takes_any_value(
    value, since, is_encoded, revision
):
    structured = msgspec.Raw(msgspec.json.encode(value)) if is_encoded else value

    found = wire(ToolResult(structured=structured, has_structured=True), revision)

    assert_valid_result(revision, "tools/call", found)
    assert ("structuredContent" in found) is (revision.value >= since)
    assert found.get("structuredContent", value) == value


# The oracle itself: a judge that accepts everything proves nothing.

TITLED = {"name": "a", "inputSchema": {"type": "object"}, "title": ""}
LINKED = {"type": "resource_link", "uri": "a:b", "name": "a"}
NAMED = {"_meta": {f"{META}subscriptionId": 1}}


def result(members):
    return {"id": 1, "result": members}


def error(code, **members):
    return {**members, "error": {"code": code, "message": "No."}}


def notified(name, **params):
    return {"method": f"notifications/{name}", "params": params}


@pytest.mark.parametrize(
    ("revision", "method", "members", "is_valid"),
    [
        (V2506, "tools/call", result({"content": [], "resultType": "complete"}), False),
        (V26, "tools/call", result({"content": [], "_meta": {}}), False),
        (V2503, "tools/call", result({"content": [], "structuredContent": {}}), False),
        (V2511, "tools/call", result({"content": [], "structuredContent": []}), False),
        (V2503, "tools/call", result({"content": [LINKED]}), False),
        (V24, "tools/list", result({"tools": [TITLED]}), False),
        (V2506, "tools/list", result({"tools": [{**TITLED, "inputSchema": {}}]}), False),
        (V2506, "tools/list", result({"tools": [], "nextCursor": None}), False),
        (V2506, "initialize", result({"protocolVersion": "x", "capabilities": {}}), False),
        (V2506, "ping", result({"done": True}), False),
        (V2506, "ping", error(-32600, id=None), True),
        (V2511, "ping", error(-32600), True),
        (V2511, "ping", error(-32002, id=1), True),
        (V2511, "ping", error(-32020, id=1), False),
        (V26, "ping", error(-32020, id=1), True),
        *((V26, "ping", error(code, id=1), False) for code in (-32002, -32042, -32050)),
        (V2506, "notifications/resources/updated", notified("resources/updated"), False),
        (V2506, "notifications/resources/updated", notified("resources/updated", uri="a"), True),
        (V26, "notifications/resources/updated", notified("resources/updated", uri="a"), False),
        (V26, "notifications/tools/list_changed", notified("tools/list_changed", **NAMED), True),
        (
            V2506,
            "notifications/tools/list_changed",
            notified("tools/list_changed", **NAMED),
            False,
        ),
        (V26, "notifications/message", notified("message", level="trace", data=1), False),
        (V26, "notifications/message", notified("message", level="info", data=1, x=1), False),
        (V26, "notifications/nothing", notified("nothing"), False),
    ],
)
def test_the_oracle_refuses_what_a_revision_does_not_know(revision, method, members, is_valid):
    refusals = (AssertionError, ValidationError, KeyError)

    with nullcontext() if is_valid else pytest.raises(refusals):
        assert_valid_message(revision, method, {"jsonrpc": "2.0", **members})


LISTED = [TOOL, PLAIN_TOOL, RESOURCE, TEMPLATE]


@pytest.mark.parametrize("definition", LISTED, ids=lambda one: one.name)
def test_what_one_revision_was_told_of_a_definition_does_not_leak_into_another(definition):
    def told(one, revision):
        return wire(ListResult(key="found", definitions=[one]), revision)["found"]

    shared = replace(definition)
    for revision in (*Revision, *reversed(Revision)):
        assert told(shared, revision) == told(replace(definition), revision)
