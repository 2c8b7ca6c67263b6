"""Forms of Django as JSON Schemas: for arguments of tools, and for forms that a person fills in.

The second are flat: "Only top-level properties are allowed, without nesting" (ElicitRequest).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import jsonschema_rs
from django.conf import settings
from django.forms import fields, widgets
from django.forms.models import ModelChoiceField, ModelMultipleChoiceField

from mcp_django.exceptions import NotAskable
from mcp_django.exposure.form_limits import lengths, limits, model_validators, pattern_of
from mcp_django.exposure.form_values import NOTHING, Choice, about, options, plain
from mcp_django.protocol.revisions import MODERN, Features

Schema: TypeAlias = dict[str, Any]

#: More choices are not listed: errors name some of them.
MOST_CHOICES = 100
#: More records are not listed: each costs a line that hardly anybody needs.
MOST_RECORDS = 25
NEWEST = MODERN[-1].features
#: The first that fits decides, so what inherits stands before what it inherits from.
KINDS: tuple[tuple[type[fields.Field], str], ...] = (
    (ModelMultipleChoiceField, "related_list"),
    (ModelChoiceField, "related"),
    (fields.MultipleChoiceField, "choice_list"),
    (fields.ChoiceField, "choice"),
    (fields.NullBooleanField, "boolean"),
    (fields.BooleanField, "checkbox"),
    (fields.FileField, "file"),
    (fields.JSONField, "anything"),
    (fields.DecimalField, "decimal"),
    (fields.FloatField, "number"),
    (fields.IntegerField, "integer"),
    (fields.SplitDateTimeField, "text"),
    (fields.MultiValueField, "array"),
    (fields.Field, "text"),
)
#: The formats of texts. A time of day has no offset here, and one of JSON Schema must have one;
#: durations with fractions of a second are none of JSON Schema. So these two have an example.
FORMATS: tuple[tuple[type[fields.Field], str], ...] = (
    (fields.SplitDateTimeField, "date-time"),
    (fields.DateTimeField, "date-time"),
    (fields.DateField, "date"),
    (fields.EmailField, "email"),
    (fields.URLField, "uri"),
    (fields.UUIDField, "uuid"),
)
EXAMPLES: tuple[tuple[type[fields.Field], str], ...] = (
    (fields.TimeField, "Such as 14:30:00."),
    (fields.DurationField, "Such as P1DT2H30M."),
)
#: "format": email, uri, date and date-time are all that a flat form may have.
FLAT_FORMATS = frozenset({"date", "date-time", "email", "uri"})


def field_schema(
    field: fields.Field, *, flat: bool = False, features: Features = NEWEST
) -> Schema:
    """What a field takes. Raises NotAskable for one that has no place in a flat form."""
    return Describer(flat=flat, features=features).field(field, field.initial)


def form_schema(
    form: Any, *, flat: bool = False, partial: bool = False, features: Features = NEWEST
) -> Schema:
    """What a form takes: its fields, but no disabled or hidden ones.

    `partial` is for an update: nothing is required and there are no defaults, which a model
    would send back and so overwrite what is stored. A flat form leaves out what no person can be
    asked for there, and raises NotAskable where that is required. `features` are those of the
    revision that a flat form is for.
    """
    return Describer(flat=flat, partial=partial, features=features).form(form)


def formset_schema(formset: Any) -> Schema:
    """What a list of changes to the rows of a model formset takes."""
    return Describer(partial=True).formset(formset)


class Describer:
    def __init__(
        self, *, flat: bool = False, partial: bool = False, features: Features = NEWEST
    ) -> None:
        self.flat = flat
        self.partial = partial
        #: Of the revision that a flat form is for.
        self.features = features
        #: Of the field that is being described.
        self.validators: Sequence[Any] = ()

    def form(self, form: Any) -> Schema:
        properties, required, missing = {}, [], []
        for name, field in shown_fields(form).items():
            # The value itself: `get_initial_for_field` cuts the microseconds of some.
            initial = form.initial.get(name, field.initial)
            try:
                more = model_validators(form, name, field)
                properties[name] = self.field(field, initial, name=name, more=more)
            except NotAskable:
                if field.required:
                    missing.append(name)
                continue
            if field.required and not self.partial and not is_filled_in(field, initial):
                required.append(name)
        if missing:
            raise NotAskable(f"A person cannot be asked for {', '.join(missing)} in a form.")
        schema: Schema = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        return schema if self.flat else {**schema, "additionalProperties": False}

    def formset(self, formset: Any) -> Schema:
        """Rows that are there are named by their key, and others are new."""
        row = formset.empty_form
        system = {"DELETE", "ORDER"}
        shown = {name: one for name, one in shown_fields(row).items() if name not in system}
        properties: Schema = {
            "pk": {
                "type": ["string", "integer"],
                "description": "Key of the row to change. Without it the row is new.",
            }
        }
        if formset.can_delete:
            properties["delete"] = {"type": "boolean"}
        for name, one in shown.items():
            more = model_validators(row, name, one)
            properties[name] = self.field(one, None, name=name, more=more)
        needed = [
            name
            for name, one in shown.items()
            if one.required and not is_filled_in(one, row.initial.get(name, one.initial))
        ]
        ways: list[Schema] = [{"required": ["pk"]}]
        if formset.max_num > 0:
            ways.append({"required": needed, "properties": {"pk": False}})
        items = {
            "type": "object",
            "properties": properties,
            "anyOf": ways,
            "additionalProperties": False,
        }
        return {"type": "array", "items": items}

    def field(
        self, field: fields.Field, initial: Any, *, name: str = "", more: Sequence[Any] = ()
    ) -> Schema:
        self.validators = [*field.validators, *more]
        if self.flat and isinstance(field.widget, widgets.PasswordInput):
            # "Servers MUST NOT use form mode elicitation to request sensitive information."
            raise NotAskable("A person cannot be asked for a secret in a form.")
        kind = next(kind for known, kind in KINDS if isinstance(field, known))
        if kind == "text" and hasattr(field, "base_field"):  # arrays of django.contrib.postgres
            kind = "array"
        own: Schema | None = getattr(field, "mcp_schema", None)
        schema: Schema = getattr(self, kind)(field) if own is None else dict(own)
        if not field.required and not self.flat:
            schema = nullable(schema)
        # `dict` would have them in any order; titles are read first.
        described = about(field, schema.pop("description", ""), name=name)
        return {**described, **schema, **self.default(field, schema, initial)}

    def default(self, field: fields.Field, schema: Schema, initial: Any) -> Schema:
        """What stands in the form before anybody fills it in, where that holds for every call."""
        is_secret = isinstance(field.widget, widgets.PasswordInput)
        if self.partial or is_secret or callable(field.initial) or callable(initial):
            return {}
        if self.flat and schema["type"] != "boolean" and not self.features.rich_elicitation:
            return {}
        value = plain(initial)
        if schema.get("type") in ("string", ["string", "null"]) and isinstance(value, int):
            value = str(value)  # of a choice
        if value is NOTHING or value in field.empty_values:
            return {}
        if isinstance(field, ModelChoiceField) and "oneOf" not in schema:
            return {}  # the key of a record that nobody has said may be seen
        is_valid = jsonschema_rs.is_valid(schema, value, validate_formats=True)
        return {"default": value} if is_valid else {}

    # One method for each kind of field

    def related(self, field: Any) -> Schema:
        choices = self.records(field)
        return self.listed(choices) if choices else self.key(field)

    def related_list(self, field: Any) -> Schema:
        choices = self.records(field)
        if self.flat and not choices:
            raise NotAskable("A person cannot be asked for a list of keys in a form.")
        return self.several(field, self.listed(choices) if choices else self.key(field))

    def key(self, field: Any) -> Schema:
        kind = "string" if self.flat else ["string", "integer"]
        return {"type": kind, "description": self.key_hint(field)}

    def records(self, field: Any) -> list[Choice] | None:
        """The records to choose from with their titles. None: too many, or not to be listed.

        As whoever wrote the form offers them: for forms of the admin see `admin_form_schemas`.
        """
        found = list(field.queryset.all()[: MOST_RECORDS + 1])
        if len(found) > MOST_RECORDS:
            return None
        return [(str(field.prepare_value(one)), field.label_from_instance(one)) for one in found]

    def key_hint(self, field: Any) -> str:
        return f"Key of a {field.queryset.model._meta.verbose_name}."

    def choice(self, field: Any) -> Schema:
        choices = list(options(field.choices))
        if 0 < len(choices) <= MOST_CHOICES and all(value == title for value, title in choices):
            return {"type": "string", "enum": [value for value, _ in choices]}
        return self.listed(choices)

    def choice_list(self, field: Any) -> Schema:
        return self.several(field, self.choice(field))

    def listed(self, choices: list[Choice]) -> Schema:
        if not choices:  # "oneOf" must have something in it
            return {"type": "string"}
        if len(choices) > MOST_CHOICES:
            return {"type": "string", "description": f"One of {len(choices)} choices."}
        if self.flat and not self.features.rich_elicitation:
            values, titles = zip(*choices, strict=True)
            return {"type": "string", "enum": [*values], "enumNames": [*titles]}
        return {
            "type": "string",
            "oneOf": [{"const": value, "title": title} for value, title in choices],
        }

    def several(self, field: fields.Field, item: Schema) -> Schema:
        is_choice = "oneOf" in item or "enum" in item
        if self.flat and not (self.features.rich_elicitation and is_choice):
            raise NotAskable("A person cannot be asked for a list in a form.")
        schema: Schema = {"type": "array"}
        if "oneOf" in item:
            # The one form of titled choices that a person can be given several of.
            schema["items"] = {"anyOf": item["oneOf"]}
        else:
            schema["items"] = item
        if field.required:
            schema["minItems"] = 1
        return schema if self.flat else {**schema, "uniqueItems": True}

    def checkbox(self, field: fields.Field) -> Schema:
        # Required means that it must be ticked: "I agree".
        if field.required and not self.flat:
            return {"type": "boolean", "const": True}
        return {"type": "boolean"}

    def boolean(self, field: fields.Field) -> Schema:
        return {"type": "boolean"} if self.flat else {"type": ["boolean", "null"]}

    def file(self, field: Any) -> Schema:
        self.refuse_flat("a file")
        longest = field.max_length or 255
        return {
            "type": "object",
            "properties": {
                "filename": {"type": "string", "minLength": 1, "maxLength": longest},
                "data": {"type": "string", "contentEncoding": "base64"},
            },
            "required": ["filename", "data"],
            "additionalProperties": False,
        }

    def anything(self, field: fields.Field) -> Schema:
        self.refuse_flat("JSON")
        return {}

    def array(self, field: Any) -> Schema:
        self.refuse_flat("a list")
        inner = getattr(field, "base_field", None)
        if inner is None:
            return {"type": "array", "items": {}}
        return {"type": "array", "items": Describer(partial=True).field(inner, None)}

    def refuse_flat(self, what: str) -> None:
        if self.flat:
            raise NotAskable(f"A person cannot be asked for {what} in a form.")

    def number(self, field: fields.Field) -> Schema:
        return {"type": "number", **limits(self.validators)}

    def integer(self, field: fields.Field) -> Schema:
        return {"type": "integer", **limits(self.validators)}

    def decimal(self, field: fields.Field) -> Schema:
        # Binary fractions are not exact; a text is.
        kind = "number" if self.flat else ["number", "string"]
        return {"type": kind, **limits(self.validators)}

    def text(self, field: fields.Field) -> Schema:
        schema: Schema = {"type": "string"}
        shape = next((name for known, name in FORMATS if isinstance(field, known)), "")
        # Without time zones a time has no offset, so it is no date-time of JSON Schema.
        if shape == "date-time" and not settings.USE_TZ:
            shape = ""
            schema["description"] = "Such as 2026-01-31T14:30:00."
        if shape and not (self.flat and shape not in FLAT_FORMATS):
            schema["format"] = shape
        if example := next((one for known, one in EXAMPLES if isinstance(field, known)), ""):
            schema["description"] = example
        if isinstance(field, fields.CharField) and shape != "uuid":
            schema |= lengths(self.validators, required=field.required)
        if not self.flat:
            schema |= pattern_of(self.validators)
        return schema


def shown_fields(form: Any) -> dict[str, fields.Field]:
    """The fields that somebody who looks at the form can fill in."""
    return {
        name: field
        for name, field in form.fields.items()
        if not field.disabled and not field.widget.is_hidden
    }


def is_filled_in(field: fields.Field, initial: Any) -> bool:
    """Whether the form has a value before anybody fills it in."""
    if isinstance(field, fields.NullBooleanField):
        return True
    value = initial() if callable(initial) else initial
    if isinstance(field, fields.BooleanField):
        return bool(value)
    return value not in field.empty_values


def nullable(schema: Schema) -> Schema:
    """The same, where null means that there is nothing. A list says it by being empty."""
    kinds = schema.get("type")
    if kinds is None or kinds in ("array", "boolean") or "null" in kinds:
        return schema
    changed = {**schema, "type": [*([kinds] if isinstance(kinds, str) else kinds), "null"]}
    if "oneOf" in changed:
        changed["oneOf"] = [*changed["oneOf"], {"const": None}]
    return changed
