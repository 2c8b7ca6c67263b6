"""A form out of the JSON Schema of a tool: flat members as fields, anything else as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.core.exceptions import ValidationError
from django.forms import CharField, ChoiceField, Field, Form, HiddenInput, Textarea, TextInput

from mcp_django.exposure.confirmations import ARGUMENT
from mcp_django.protocol.errors import ProtocolError
from mcp_django.protocol.jsonrpc import decode_json

Schema: TypeAlias = Mapping[str, Any]

PREFIX = "argument_"
#: The field that takes all arguments at once, for schemas that are no plain list of members.
WHOLE = "arguments"
#: Members of a root that make more of a schema than a list of members.
COMBINING = frozenset({"anyOf", "oneOf", "allOf", "not", "if", "$ref", "patternProperties"})
#: Steps from a $ref to what it stands for.
MOST_STEPS = 20
#: From this length on a text has lines.
LINES = 200
INPUT_TYPES = {"date": "date", "time": "time", "email": "email"}


@dataclass(frozen=True, kw_only=True)
class Member:
    """One argument: its field, and how the text in the field becomes a JSON value."""

    name: str
    field: Field
    parse: Callable[[str], Any]


class ArgumentsForm(Form):
    """The arguments of one tool. Texts that are empty are not sent."""

    def __init__(self, schema: Schema, data: Any = None) -> None:
        super().__init__(data)
        self.members = members_of(schema)
        for member in self.members:
            self.fields[PREFIX + member.name] = member.field

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        #: As `tools/call` takes them.
        self.arguments: dict[str, Any] = {}
        for member in self.members:
            text = cleaned.get(PREFIX + member.name, "")
            if text == "":
                continue
            try:
                value = member.parse(text)
            except ValidationError as error:
                self.add_error(PREFIX + member.name, error)
                continue
            if member.name == WHOLE and len(self.members) == 1:
                self.arguments |= value
            else:
                self.arguments[member.name] = value
        return cleaned


def members_of(schema: Schema) -> list[Member]:
    properties = schema.get("properties", {})
    if COMBINING & schema.keys() or (not properties and schema.get("additionalProperties", True)):
        field = CharField(
            label="Arguments",
            required=False,
            help_text="All arguments as one JSON object.",
            widget=Textarea(attrs={"rows": 6, "class": "mcp-json"}),
        )
        return [Member(name=WHOLE, field=field, parse=parse_object)]
    required = frozenset(schema.get("required", ()))
    members = [
        # The button of the preview fills it in.
        hidden_member()
        if name == ARGUMENT
        else member_of(name, one, schema, required=name in required)
        for name, one in properties.items()
    ]
    if ARGUMENT not in properties:
        # Staff may ask for a confirmation where the tool itself does not.
        members.append(hidden_member())
    return members


def hidden_member() -> Member:
    field = CharField(required=False, widget=HiddenInput())
    return Member(name=ARGUMENT, field=field, parse=str)


def member_of(name: str, given: Any, root: Schema, *, required: bool) -> Member:
    schema, _ = without_null(resolved(given, root), root)
    common = common_of(name, given, schema, required=required)
    choices = choices_of(schema)
    if choices is not None:
        return Member(name=name, field=choice_field(choices, common), parse=json.loads)
    types = types_of(schema, root)
    if types == {"string"}:
        widget = text_widget(schema)
        return Member(name=name, field=CharField(strip=False, widget=widget, **common), parse=str)
    if types and types <= {"integer", "number"}:
        widget = TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})
        return Member(name=name, field=CharField(widget=widget, **common), parse=parse_number)
    if "string" in types and "object" not in types:
        # A key: 5 is a number, "5" in quotes and A-5 are texts.
        field = CharField(widget=TextInput(attrs={"autocomplete": "off"}), **common)
        return Member(name=name, field=field, parse=parse_loose)
    common["help_text"] = f"{common['help_text']} As JSON.".strip()
    widget = Textarea(attrs={"rows": 3, "class": "mcp-json", "spellcheck": "false"})
    return Member(name=name, field=CharField(widget=widget, **common), parse=parse_json)


def common_of(name: str, given: Any, schema: Schema, *, required: bool) -> dict[str, Any]:
    return {
        "label": str(schema.get("title") or name),
        "help_text": help_of(given, schema),
        "required": required,
    }


def help_of(given: Any, schema: Schema) -> str:
    described = given.get("description") if isinstance(given, Mapping) else None
    text = str(described or schema.get("description") or "")
    default = given.get("default") if isinstance(given, Mapping) else None
    if default is not None:
        text = f"{text} Without it: {json.dumps(default, ensure_ascii=False)}.".strip()
    return text


def text_widget(schema: Schema) -> Any:
    attrs = {"autocomplete": "off", "class": "vTextField"}
    if schema.get("maxLength", 0) > LINES:
        return Textarea(attrs={"rows": 4, "class": "vLargeTextField"})
    kind = INPUT_TYPES.get(schema.get("format", ""), "text")
    return TextInput(attrs={**attrs, "type": kind})


def choice_field(choices: list[tuple[Any, str]], common: dict[str, Any]) -> ChoiceField:
    """Values travel as JSON, so that 1 and "1" are two."""
    listed = [(json.dumps(value), title) for value, title in choices]
    return ChoiceField(choices=[("", "(none)"), *listed], **common)


def choices_of(schema: Schema) -> list[tuple[Any, str]] | None:
    if schema.get("type") == "boolean":
        return [(True, "true"), (False, "false")]
    if "const" in schema:
        return [(schema["const"], title_of(schema))]
    if isinstance(schema.get("enum"), list):
        return [(value, str(value)) for value in schema["enum"]]
    for key in ("oneOf", "anyOf"):
        options = schema.get(key)
        if options and all(isinstance(one, Mapping) and "const" in one for one in options):
            return [(one["const"], title_of(one)) for one in options]
    return None


def title_of(schema: Schema) -> str:
    return str(schema.get("title") or schema["const"])


def resolved(schema: Any, root: Schema) -> Schema:
    """What a reference inside the schema stands for. Nothing is fetched, and circles end."""
    for _ in range(MOST_STEPS):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if reference is None:
            return schema
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return {}
        found: Any = root
        for part in reference[2:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, Mapping) else None
        schema = found
    return {}


def without_null(schema: Schema, root: Schema) -> tuple[Schema, bool]:
    """A schema of something or null, without the null."""
    options = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(options, list):
        found = [resolved(one, root) for one in options]
        left = [one for one in found if one.get("type") != "null"]
        if len(left) == 1 and len(found) == 2:
            return {**schema, **left[0]}, True
    return schema, False


def types_of(schema: Schema, root: Schema) -> set[str]:
    """The JSON types that a value may have. Empty: any."""
    given = schema.get("type")
    if given is not None:
        return {given} - {"null"} if isinstance(given, str) else set(given) - {"null"}
    found: set[str] = set()
    for key in ("anyOf", "oneOf"):
        for option in schema.get(key, ()):
            kind = resolved(option, root).get("type")
            if not isinstance(kind, str):
                return set()
            found.add(kind)
    return found - {"null"}


def parse_json(text: str) -> Any:
    try:
        return decode_json(text.encode())
    except ProtocolError as error:
        raise ValidationError(str(error).replace("The body", "This")) from None


def parse_object(text: str) -> dict[str, Any]:
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ValidationError("Write a JSON object, such as {}.")
    return value


def parse_number(text: str) -> int | float:
    value = parse_loose(text.strip())
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValidationError("Write a number.")
    return value


def parse_loose(text: str) -> Any:
    try:
        return parse_json(text)
    except ValidationError:
        return text
