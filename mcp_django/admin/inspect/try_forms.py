"""A form out of the JSON Schema of a tool: flat members as fields, anything else as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import msgspec
from django.core.exceptions import ValidationError
from django.forms import (
    BooleanField,
    CharField,
    CheckboxSelectMultiple,
    ChoiceField,
    Field,
    Form,
    HiddenInput,
    MultipleChoiceField,
    Textarea,
    TextInput,
)

from mcp_django.exposure.questions.confirmations import ARGUMENT
from mcp_django.protocol.errors import ProtocolError
from mcp_django.protocol.jsonrpc import decode_json
from mcp_django.signing import seal, unseal

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


class Member(NamedTuple):
    """One member of a JSON object: its field, and what makes a JSON value of what is filled in."""

    field: Field
    parse: Callable[[Any], Any]


class MembersForm(Form):
    """The members of a JSON object as fields. Fields that are empty are not sent."""

    members: Mapping[str, Member]
    #: Members that are sent as null where their fields are empty.
    nullable: frozenset[str] = frozenset()

    def add_members(self, members: Mapping[str, Member]) -> None:
        self.members = members
        self.fields |= {name: member.field for name, member in members.items()}

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        self.content: dict[str, Any] = {}
        for name, member in self.members.items():
            value = cleaned.get(name)
            if value not in ("", None):
                try:
                    self.content[name] = member.parse(value)
                except ValidationError as error:
                    self.add_error(name, error)
            elif name in self.nullable:
                self.content[name] = None
        return cleaned


class ArgumentsForm(MembersForm):
    """The arguments of one tool."""

    def __init__(self, schema: Schema, data: Any = None, *, models: Sequence[str] = ()) -> None:
        """With `models`, labels to choose from, `model` is one of them."""
        super().__init__(data)
        self.is_whole = bool(COMBINING & schema.keys()) or (
            not schema.get("properties") and schema.get("additionalProperties", True)
        )
        if self.is_whole:
            field = CharField(
                label="Arguments",
                required=False,
                help_text="All arguments as one JSON object.",
                widget=Textarea(attrs={"rows": 6, "class": "mcp-json"}),
            )
            self.add_members({WHOLE: Member(field, parse_object)})
        else:
            self.add_members(members_of(schema))
            if models and "model" in self.fields:
                asked = self.fields["model"]
                choices = [("", "(none)"), *((label, label) for label in models)]
                chosen = ChoiceField(
                    choices=choices,
                    label=asked.label,
                    help_text=asked.help_text,
                    required=asked.required,
                )
                self.add_members({**self.members, "model": Member(chosen, str)})

    def add_prefix(self, field_name: str) -> str:
        return f"{PREFIX}{field_name}"

    @property
    def arguments(self) -> dict[str, Any]:
        """As `tools/call` takes them. Valid forms only."""
        return self.content.get(WHOLE, {}) if self.is_whole else self.content


def members_of(schema: Schema) -> dict[str, Member]:
    required = frozenset(schema.get("required", ()))
    members = {
        name: member_of(name, given, schema, required=name in required)
        for name, given in schema.get("properties", {}).items()
    }
    # The button of the preview fills it in. Staff may ask for it where the tool itself does not.
    members[ARGUMENT] = Member(CharField(required=False, widget=HiddenInput()), str)
    return members


def member_of(name: str, given: Any, root: Schema, *, required: bool) -> Member:
    schema = without_null(resolved(given, root), root)
    common = common_of(name, given, schema, required=required)
    choices = choices_of(schema)
    if choices is not None:
        # Values travel as JSON, so that 1 and "1" are two.
        listed = [(json.dumps(value), title) for value, title in choices]
        return Member(ChoiceField(choices=[("", "(none)"), *listed], **common), json.loads)
    types = types_of(schema, root)
    if types == {"string"}:
        return Member(CharField(strip=False, widget=text_widget(schema), **common), str)
    if types and types <= {"integer", "number"}:
        widget = TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})
        return Member(CharField(widget=widget, **common), parse_number)
    if "string" in types and "object" not in types:
        # A key: 5 is a number, "5" in quotes and A-5 are texts.
        widget = TextInput(attrs={"autocomplete": "off"})
        return Member(CharField(widget=widget, **common), parse_loose)
    attributes = {"rows": 3, "class": "mcp-json", "spellcheck": "false"}
    if types == {"array"} and types_of(items_of(schema, root), root) in PLAIN_ITEMS:
        kind = types_of(items_of(schema, root), root)
        how = "One value in each line, or with commas between them."
        common["help_text"] = f"{common['help_text']} {how}".strip()
        parse = partial(parse_values, parse_item=str if kind == {"string"} else parse_number)
        return Member(CharField(widget=Textarea(attrs=attributes), **common), parse)
    common["help_text"] = f"{common['help_text']} As JSON.".strip()
    if types == {"object"}:
        attributes["placeholder"] = example_of(schema)
    return Member(CharField(widget=Textarea(attrs=attributes), **common), parse_json)


#: Types of the items of a list that people write without quotes.
PLAIN_ITEMS = ({"string"}, {"integer"}, {"number"}, {"integer", "number"})


def items_of(schema: Schema, root: Schema) -> Schema:
    return resolved(schema.get("items", {}), root)


def example_of(schema: Schema) -> str:
    """A JSON object as somebody could write it."""
    examples = schema.get("examples")
    example = examples[0] if isinstance(examples, list) and examples else {"name": "value"}
    return json.dumps(example, ensure_ascii=False)


def parse_values(text: str, *, parse_item: Callable[[str], Any]) -> Any:
    """A list: JSON, or one value in each line, or with commas between them."""
    text = text.strip()
    if text.startswith("["):
        return parse_json(text)
    parts = text.splitlines() if "\n" in text else text.split(",")
    return [parse_item(part.strip()) for part in parts if part.strip()]


def common_of(name: str, given: Any, schema: Schema, *, required: bool) -> dict[str, Any]:
    outer = given if isinstance(given, Mapping) else {}
    text = str(outer.get("description") or schema.get("description") or "")
    default = outer.get("default")
    if default is not None:
        text = f"{text} Without it: {json.dumps(default, ensure_ascii=False)}.".strip()
    return {"label": str(schema.get("title") or name), "help_text": text, "required": required}


def text_widget(schema: Schema) -> Any:
    if schema.get("maxLength", 0) > LINES:
        return Textarea(attrs={"rows": 4, "class": "vLargeTextField"})
    kind = INPUT_TYPES.get(schema.get("format", ""), "text")
    return TextInput(attrs={"autocomplete": "off", "class": "vTextField", "type": kind})


def choices_of(schema: Schema) -> list[tuple[Any, str]] | None:
    if schema.get("type") == "boolean":
        return [(True, "true"), (False, "false")]
    if "const" in schema:
        return [(schema["const"], label_of_schema(schema))]
    if isinstance(schema.get("enum"), list):
        return [(value, str(value)) for value in schema["enum"]]
    for key in ("oneOf", "anyOf"):
        options = schema.get(key)
        if options and all(isinstance(one, Mapping) and "const" in one for one in options):
            return [(one["const"], label_of_schema(one)) for one in options]
    return None


def label_of_schema(schema: Schema) -> str:
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


def without_null(schema: Schema, root: Schema) -> Schema:
    """A schema of something or null, without the null."""
    options = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(options, list):
        found = [resolved(one, root) for one in options]
        left = [one for one in found if one.get("type") != "null"]
        if len(left) == 1 and len(found) == 2:
            return {**schema, **left[0]}
    return schema


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


# Questions that a call ended with, as forms of the page, and what came back for them as JSON.

#: The field in which the browser keeps what was asked.
FIELD = "asked"
PURPOSE = "admin.asked"
#: Characters. The state is the longest part of it.
LONGEST = 1024 * 1024
ACTIONS = {"accept": "Answer", "decline": "Decline", "cancel": "Cancel"}


@dataclass(frozen=True, kw_only=True)
class AskedQuestion:
    """A call that ended with questions: the form it was made from, and how it goes on."""

    data: Mapping[str, str]
    questions: Mapping[str, Any]
    state: str

    def seal(self, *, bound_to: str) -> str:
        text = msgspec.json.encode(self).decode()
        return seal(text, purpose=PURPOSE, bound_to=bound_to)

    def forms(
        self, data: Any = None, *, before: Mapping[str, Any] | None = None
    ) -> list[QuestionForm]:
        """One form for each question. `before` is what was answered to those of the same key."""
        return [
            QuestionForm(key, question, data, number=number, before=(before or {}).get(key))
            for number, (key, question) in enumerate(self.questions.items())
        ]


def unseal_question(text: str, *, bound_to: str) -> AskedQuestion | None:
    """What this person was asked for this call, or None for anything that is not that."""
    found = unseal(text, purpose=PURPOSE, bound_to=bound_to, longest=LONGEST)
    return None if found is None else msgspec.json.decode(found, type=AskedQuestion)


def questions_in(message: Mapping[str, Any], form: Form) -> AskedQuestion | None:
    """The questions of an answer to a call that was made from a form."""
    result = message.get("result", {})
    if result.get("resultType") != "input_required":
        return None
    names = [form.add_prefix(name) for name in form.fields]
    return AskedQuestion(
        data={name: form.data[name] for name in names if name in form.data},
        questions=result["inputRequests"],
        state=result["requestState"],
    )


class QuestionForm(MembersForm):
    """One question. Fields that had a value to begin with are also sent when they are empty."""

    def __init__(
        self,
        key: str,
        question: Mapping[str, Any],
        data: Any = None,
        *,
        number: int,
        before: Mapping[str, Any] | None = None,
    ) -> None:
        self.action_name = f"action_{number}"
        chosen = "accept" if data is None else data.get(self.action_name)
        self.action = chosen if chosen in ACTIONS else "cancel"
        # Whoever declines has filled nothing in.
        filled = data if self.action == "accept" else None
        super().__init__(filled, prefix=f"question_{number}")
        params = question["params"]
        self.key, self.message = key, params["message"]
        schemas = params["requestedSchema"]["properties"]
        required = frozenset(params["requestedSchema"].get("required", ()))
        defaults = {name: one["default"] for name, one in schemas.items() if "default" in one}
        # Without null the default would come back.
        self.nullable = frozenset(defaults)
        self.add_members(
            {
                name: asked_member(name, schema, required=name in required)
                for name, schema in schemas.items()
            }
        )
        written = {**defaults, **((before or {}).get("content") or {})}
        for name, schema in schemas.items():
            self.fields[name].initial = initial_of(schema, written.get(name))

    @property
    def answer(self) -> dict[str, Any]:
        """As the client of a person sends it. Valid forms only."""
        if self.action != "accept":
            return {"action": self.action}
        return {"action": self.action, "content": self.content}

    def is_valid(self) -> bool:
        return self.action != "accept" or super().is_valid()


def asked_member(name: str, schema: Mapping[str, Any], *, required: bool) -> Member:
    """A field as a form has it: a box to tick for a yes, and one for each of several choices."""
    bare = {key: value for key, value in schema.items() if key != "default"}
    if schema["type"] == "boolean":
        # A box answers whether it is ticked or not.
        common = common_of(name, bare, bare, required=False)
        return Member(BooleanField(**common), bool)
    if schema["type"] == "array":
        choices = choices_of(schema["items"])
        field = MultipleChoiceField(
            choices=choices or (),
            widget=CheckboxSelectMultiple,
            **common_of(name, bare, bare, required=required),
        )
        return Member(field, list)
    return member_of(name, bare, {}, required=required)


def initial_of(schema: Mapping[str, Any], value: Any) -> Any:
    """A JSON value as its field shows it."""
    if value is None or schema["type"] in ("boolean", "array"):
        return value
    return json.dumps(value) if choices_of(schema) is not None else str(value)
