"""What services of models publish about the schemas that they take, held to what is listed here.

Where a service refuses one definition it refuses the whole request, so an agent has no tools at
all. Nothing is sent to a service: its rules stand here as code, each with its source.
"""

from __future__ import annotations

import re

import jsonschema_rs
import pytest
from django import forms

from mcp_django.exposure.admin_bridge.compat import Place
from mcp_django.exposure.forms.schemas import Describer
from mcp_django.exposure.functions.json_schemas import subschemas
from mcp_django.exposure.tools.actions import action_definition
from mcp_django.protocol.render import tool_definition
from mcp_django.protocol.revisions import Revision
from tests.exposure.function_tools import tool_of
from tests.exposure.functions.test_arguments import everything
from tests.exposure.functions.test_drf import OrderForm, place
from tests.exposure.functions.test_signatures import ANNOTATIONS
from tests.exposure.functions.test_site_schemas import SHIP, ship
from tests.exposure.tools.test_actions import action

ROOT_COMBINATIONS = frozenset({"anyOf", "oneOf", "allOf", "not", "enum"})


def places(tool):
    """Each schema inside the arguments of a tool, with a name such as `find_records.filters`."""
    for pointer, schema in subschemas(tool["inputSchema"]):
        parts = [part for part in pointer if part not in ("properties", "anyOf")]
        yield ".".join([tool["name"], *parts]), schema


def openai(tool):
    """https://platform.openai.com/docs/guides/function-calling, and what its service refuses."""
    schema = tool["inputSchema"]
    # "Invalid 'tools[0].function.name': string does not match pattern."
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"]):
        yield "name"
    # "Invalid 'tools[0].function.description': string too long. Expected maximum length 1024."
    if len(tool["description"]) > 1024:
        yield "description"
    # "Invalid schema for function: In context=(), object schema missing properties."
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        yield "root"
    # "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top
    # level."
    if ROOT_COMBINATIONS & schema.keys():
        yield "root combinations"
    for name, keywords in places(tool):
        # "In context=(...), array schema missing items."
        if keywords.get("type") == "array" and not {"items", "prefixItems"} & keywords.keys():
            yield f"{name} has no items"


def anthropic(tool):
    """https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use

    Of names (with 128 characters since 2025) and of the root it asks no more than OpenAI.
    """
    schema = tool["inputSchema"]
    # "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'."
    for name in schema.get("properties", {}):
        if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name):
            yield f"key {name}"
    # "JSON schema is invalid. It must match JSON Schema draft 2020-12."
    if not jsonschema_rs.meta.is_valid(schema):
        yield "schema"


#: Members of `Schema`, https://ai.google.dev/api/caching#Schema. Clients write what a reference
#: leads to in its place, and leave out the others, which only narrow what a server looks at
#: itself.
GEMINI = frozenset(
    {
        "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems",
        "properties", "required", "minProperties", "maxProperties", "minLength", "maxLength",
        "pattern", "example", "anyOf", "propertyOrdering", "default", "items", "minimum",
        "maximum",
    }
)  # fmt: skip
LEFT_OUT = frozenset(
    {
        "additionalProperties", "contentEncoding", "uniqueItems", "exclusiveMinimum",
        "exclusiveMaximum", "multipleOf", "examples", "const", "x-mcp-header",
    }
)  # fmt: skip


def gemini_parameters(tool):
    """`FunctionDeclaration.parameters`, an OpenAPI subset: https://ai.google.dev/api/caching"""
    # "Must be a-z, A-Z, 0-9, or contain underscores, colons, dots, and dashes, with a maximum
    # length of 64."
    if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", tool["name"]):
        yield "the name"
    for name, keywords in places(tool):
        is_root = keywords is tool["inputSchema"]
        if "additionalProperties" not in name.split("."):
            yield from (f"{name} {what}" for what in gemini_schema(keywords, is_root=is_root))


def gemini_schema(keywords, *, is_root):
    kind, properties = keywords.get("type"), keywords.get("properties", {})
    # "Proto field is not repeating, cannot start list."
    if isinstance(kind, list):
        yield "has a list of types"
    # "Unknown name: Cannot find field."
    for keyword in sorted(keywords.keys() - GEMINI - LEFT_OUT):
        yield f"has {keyword}"
    # "items: missing field."
    if kind == "array" and not keywords.get("items"):
        yield "has no items"
    # "properties: should be non-empty for OBJECT type." Those of a whole tool are left out.
    if kind == "object" and not properties and not is_root:
        yield "has no properties"
    # "properties: only allowed for OBJECT type."
    if kind != "object" and (properties or keywords.get("required")):
        yield "has properties and is no object"
    # "required[0]: property is not defined."
    if not set(keywords.get("required", ())) <= properties.keys():
        yield "requires what it has no property for"
    # "enum: only allowed for STRING type."
    if "enum" in keywords and kind != "string":
        yield "has an enum of other things than texts"
    # "Type is not specified", where nothing else says it.
    if kind is None and not {"anyOf", "enum"} & keywords.keys():
        yield "has no type"


#: Objects whose members have names that only describe_model tells, so `parameters` cannot list
#: them. Clients declare these as texts, and their JSON is read.
CONDITIONS = ["filters", "exclude", "any_of.items"]
FREE_OBJECTS = {
    "find_records": CONDITIONS,
    "export_records": CONDITIONS,
    "aggregate_records": [*CONDITIONS, "metrics", "having"],
    "create_record": ["values", "inlines"],
    "update_record": ["values", "inlines"],
    "update_records": ["values", "filters", "exclude"],
    "delete_record": CONDITIONS,
}
#: Of an action.
FREE_ARGUMENTS = ["filters", "exclude", "answer"]
#: What a function may take and `parameters` has no words for: objects of any members, any value,
#: tuples, enumerations of numbers, and texts with titles.
NO_WORDS = (
    "has no properties", "has no type", "has no items", "has prefixItems",
    "has an enum of other things than texts", "has oneOf",
)  # fmt: skip


#: https://ai.google.dev/gemini-api/docs/structured-output#json_schema_support, which holds for
#: `parametersJsonSchema`, too. Other keywords are ignored.
def gemini_json_schema(tool):
    # The root is an object with properties, as for OpenAI, and the schema one, as for Anthropic.
    for name, keywords in places(tool):
        # "enum (for strings and numbers)."
        kinds = (str, int, float, type(None))
        if any(not isinstance(one, kinds) for one in keywords.get("enum", ())):
            yield f"{name} has an enum of other things"


def no_list_of_types(tool):
    """autogen-core 0.7 fails at one with a TypeError, and offers no tool of the server."""
    for schema in (tool["inputSchema"], tool.get("outputSchema", {})):
        for pointer, inner in subschemas(schema):
            if isinstance(inner.get("type"), list):
                yield "/".join(pointer)


def no_references(tool):
    """Clients drop the tool, or all tools: github/copilot-cli#1876, anthropics/claude-code#76881,
    kirodotdev/Kiro#10040.
    """
    for schema in (tool["inputSchema"], tool.get("outputSchema", {})):
        for pointer, inner in subschemas(schema):
            if {"$ref", "$defs", "definitions", "$anchor"} & inner.keys():
                yield "/".join(pointer)


def nova(tool):
    """Amazon Nova's troubleshooting of tools: the root has no other members."""
    yield from tool["inputSchema"].keys() - {"type", "properties", "required"}


def required(tool):
    """ "'required' is required to be supplied and to be an array": opencode#45245."""
    for name, keywords in places(tool):
        is_object = "properties" in keywords and keywords.get("type") == "object"
        if is_object and not isinstance(keywords.get("required"), list):
            yield name


def open_objects(tool):
    """OpenAI's Responses close an object that says nothing of other members, and fall back where
    they cannot: langchain-ai/langchain#35837.
    """
    for name, keywords in places(tool):
        is_free = keywords.get("type") == "object" and not keywords.get("properties")
        if is_free and name != tool["name"] and "additionalProperties" not in keywords:
            yield name


RULES = [
    *(openai, anthropic, gemini_json_schema, no_list_of_types, no_references, nova, required),
    open_objects,
]


def wire(definition):
    return tool_definition(definition, list(Revision)[-1].features)


def of_fixtures():
    """Functions with every kind of annotation, schema and serializer, and every kind of action."""
    yield wire(tool_of(everything).definition)
    yield wire(tool_of(ship, input_schema=SHIP, output_schema=SHIP).definition)
    yield wire(tool_of(place, serializer=OrderForm).definition)
    for number, spot in enumerate(Place):
        yield wire(action_definition(f"action_{number}", action(place=spot)))
    for number, field in enumerate(FIELDS):
        answer = Describer().form(type("AnswerForm", (forms.Form,), {"it": field})())
        yield wire(action_definition(f"asks_{number}", action(), answer=answer))
    for number, annotation in enumerate(ANNOTATIONS):
        if not hasattr(annotation, "marks"):
            yield wire(taking(annotation, name=f"takes_{number}").definition)


def taking(annotation, *, name):
    def take(value):
        """Take a value."""

    take.__annotations__ = {"value": annotation, "return": annotation}
    return tool_of(take, name=name)


FIELDS = [
    forms.CharField(max_length=3), forms.CharField(required=False),
    forms.DecimalField(required=False), forms.NullBooleanField(),
    forms.ChoiceField(choices=[("a", "A")], required=False),
    forms.MultipleChoiceField(choices=[("a", "a")]), forms.FileField(), forms.JSONField(),
]  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize("rule", RULES)
def test_every_definition_of_the_depot_keeps_a_published_rule(boss, rule):
    tools = boss.list_tools()

    assert any(tool["name"].startswith("depot_") for tool in tools)
    assert {tool["name"]: [*rule(tool)] for tool in tools if [*rule(tool)]} == {}


@pytest.mark.parametrize("rule", RULES)
def test_every_kind_of_fixture_keeps_a_published_rule(rule):
    broken = {tool["name"]: [*rule(tool)] for tool in of_fixtures() if [*rule(tool)]}

    # A schema that the site wrote keeps its references and its root.
    assert broken.keys() == ({"ship"} if rule in (no_references, nova) else set())


@pytest.mark.django_db
def test_gemini_has_parameters_for_all_but_the_objects_that_are_named_here(boss):
    # Forms that a site declares are of any kind: see the fixtures.
    declared = ("declared", "checked_first")
    tools = [one for one in boss.list_tools() if not any(word in one["name"] for word in declared)]

    lines = {line for tool in tools for line in gemini_parameters(tool)}

    free = {
        f"{tool['name']}.{argument} has no properties"
        for tool in tools
        for argument in FREE_OBJECTS.get(tool["name"], FREE_ARGUMENTS)
        if argument.partition(".")[0] in tool["inputSchema"]["properties"]
    }
    assert lines == free


def test_gemini_lacks_words_for_some_types_of_functions_and_refuses_nothing_else():
    tools = [tool for tool in of_fixtures() if tool["name"] != "ship"]

    found = [line for tool in tools for line in gemini_parameters(tool)]

    assert [line for line in found if not line.endswith(NO_WORDS)] == []
