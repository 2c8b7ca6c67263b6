"""Forms of Django as JSON Schemas: for arguments of tools, and for forms that a person fills in.

The second are flat: "Only top-level properties are allowed, without nesting" (ElicitRequest).
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import jsonschema_rs
import msgspec
from django.conf import settings
from django.core import validators
from django.core.exceptions import NON_FIELD_ERRORS
from django.forms import fields, widgets
from django.forms.models import ModelChoiceField, ModelMultipleChoiceField
from django.forms.utils import pretty_name
from django.utils.functional import Promise
from django.utils.html import strip_tags

from mcp_django.exceptions import NotAskable
from mcp_django.exposure.fields import log_once
from mcp_django.exposure.functions.json_schemas import Examples
from mcp_django.models.uploads import SCHEME
from mcp_django.protocol.revisions import MODERN, Features

# The values of forms, as JSON.

#: Value and title.
Choice: TypeAlias = tuple[str, str]
#: Larger numbers are not written in schemas.
MOST = 2**64 - 1
#: For files that are too long for an argument.
UPLOADS = f"Or {SCHEME}..., of a file that the person put into the admin."


class InvalidValue(Exception):
    """A value that a field cannot take. Says what it takes."""


def plain(value: Any) -> Any:
    """Return a value as JSON has it. Raises TypeError or ValueError for what JSON has no form for:
    it is never the `str()` of an unknown object.
    """
    if isinstance(value, (int, float, Decimal)) and not is_writable(value):
        raise ValueError
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=own_text))


def is_writable(number: int | float | Decimal) -> bool:
    return math.isfinite(number) and -MOST <= number <= MOST


def own_text(value: Any) -> str:
    if not isinstance(value, (str, Promise)):
        raise TypeError
    # Exactly a str: encoders take no subclass of it.
    return str.__str__(str(value))


def folded(text: Any) -> str:
    """A label or a help text on one line. Those of Django have HTML in them at times."""
    written = str(text)
    return " ".join((strip_tags(written) if "<" in written else written).split())


def options(choices: Iterable[Any]) -> Iterator[Choice]:
    """Each value once, as the form compares it, with its title and that of its group."""
    seen = {""}
    for value, title in choices:
        is_group = isinstance(title, (list, tuple))
        members = title if is_group else [(value, title)]
        for member, own in members:
            written = "" if member is None else str(member)
            if written not in seen:
                seen.add(written)
                yield written, folded(f"{value}: {own}" if is_group else own)


# What validators of form fields say about numbers and texts, in the keywords of JSON Schema.

#: Fields of forms that give the model the value that they got. Fields of a site may convert it.
NUMBERS = (fields.IntegerField, fields.FloatField, fields.DecimalField)
SAME_VALUE = frozenset({fields.CharField, fields.SlugField, *NUMBERS})


def model_validators(form: Any, name: str, field: fields.Field) -> Sequence[Any]:
    """The validators of the model's field, if it gets the same value as the field of the form."""
    model = getattr(getattr(form, "_meta", None), "model", None)
    if model is None or type(field) not in SAME_VALUE:
        return ()
    known = {one.name: one for one in model._meta.fields}
    return known[name].validators if name in known else ()


#: The keyword of each, and which of two limits leaves less.
LIMIT_KEYWORDS: Any = {
    validators.MinValueValidator: ("minimum", max),
    validators.MaxValueValidator: ("maximum", min),
    validators.MinLengthValidator: ("minLength", max),
    validators.MaxLengthValidator: ("maxLength", min),
}


def limits(given: Iterable[Any]) -> dict[str, Any]:
    """The limits that validators have, if they are numbers that JSON has."""
    found: dict[str, Any] = {}
    for one in given:
        for kind, (keyword, narrower) in LIMIT_KEYWORDS.items():
            if isinstance(one, kind):
                limit = one.limit_value() if callable(one.limit_value) else one.limit_value
                # Some fields have limits for their texts, and JSON has no infinity.
                if isinstance(limit, (int, float, Decimal)) and is_writable(limit):
                    number = limit if isinstance(limit, int) else float(limit)
                    found[keyword] = narrower(number, found.get(keyword, number))
    return found


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
    (fields.MultiValueField, "parts"),
    (fields.Field, "text"),
)


#: Kinds that no person can be asked for in a flat form.
NOT_FLAT = frozenset({"file", "anything", "array", "parts"})


def kind_of_form_field(field: fields.Field) -> str:
    kind = next(kind for known, kind in KINDS if isinstance(field, known))
    # Arrays of django.contrib.postgres.
    return "array" if kind == "text" and hasattr(field, "base_field") else kind


#: The formats of texts.
FORMATS: tuple[tuple[type[fields.Field], str], ...] = (
    (fields.SplitDateTimeField, "date-time"),
    (fields.DateTimeField, "date-time"),
    (fields.DateField, "date"),
    (fields.EmailField, "email"),
    (fields.URLField, "uri"),
    (fields.UUIDField, "uuid"),
)


@dataclass(eq=False, kw_only=True)
class Describer:
    """Describes what forms take: their fields, but no disabled or hidden ones.

    `partial` is for an update: nothing is required and there are no defaults, which a model would
    send back and so overwrite what is stored. A flat form leaves out what no person can be asked
    for there, and raises NotAskable where that is required. `features` are those of the revision
    that a flat form is for.
    """

    flat: bool = False
    partial: bool = False
    features: Features = NEWEST
    #: Of the field that is being described.
    validators: Sequence[Any] = ()

    def form(self, form: Any, *, names: Collection[str] | None = None) -> Schema:
        """What a form takes; with `names`, of these fields alone."""
        properties, missing = {}, []
        for name, field in shown_fields(form).items():
            if names is not None and name not in names:
                continue
            # The value itself: `get_initial_for_field` cuts the microseconds of some.
            initial = form.initial.get(name, field.initial)
            try:
                properties[name] = self.field(field, initial, name=name, form=form)
            except NotAskable:
                if field.required:
                    missing.append(name)
                continue
            except Exception as error:  # code of the site; the form and its page know better
                if self.flat:
                    raise
                log_once(f"{type(form).__name__}.{name}", "cannot be described.", error)
                properties[name] = {}
        if missing:
            raise NotAskable(f"A person cannot be asked for {', '.join(missing)} in a form.")
        schema: Schema = {"type": "object", "properties": properties}
        required = [name for name in needed_fields(form) if name in properties]
        if required and not self.partial:
            schema["required"] = required
        return schema if self.flat else {**schema, "additionalProperties": False}

    def formset(self, formset: Any, *, names: Collection[str]) -> Schema:
        """What a list of changes to the rows of a model formset takes, of these fields of a row:
        rows that are there are named by their key, and others are new.
        """
        row = formset.empty_form
        described = self.form(row, names=names)["properties"]
        properties: Schema = {
            "pk": {
                "type": ["string", "integer"],
                "description": "Key of the row to change. Without it the row is new.",
            },
            **({"delete": {"type": "boolean"}} if formset.can_delete else {}),
            **described,
        }
        needed = [name for name in needed_fields(row) if name in described]
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
        self, field: fields.Field, initial: Any, *, name: str = "", form: Any = None
    ) -> Schema:
        self.validators = [*field.validators, *model_validators(form, name, field)]
        kind = kind_of_form_field(field)
        # "Servers MUST NOT use form mode elicitation to request sensitive information."
        is_secret = isinstance(field.widget, widgets.PasswordInput)
        if self.flat and (is_secret or kind in NOT_FLAT):
            raise NotAskable
        own: Schema | None = getattr(field, "mcp_schema", None)
        schema: Schema = getattr(self, kind)(field) if own is None else dict(own)
        # A set of related records may be empty, but it is never null.
        is_set = isinstance(field, ModelMultipleChoiceField)
        if not (field.required or self.flat or is_set):
            schema = nullable(schema)
        # `dict` would have them in any order; titles are read first.
        title = folded(pretty_name(name) if field.label is None else field.label)
        hints = (folded(field.help_text), schema.pop("description", ""))
        about = {"title": title, "description": " ".join(hint for hint in hints if hint)}
        described = {key: text for key, text in about.items() if text}
        return {**described, **schema, **self.default(field, schema, initial)}

    def default(self, field: fields.Field, schema: Schema, initial: Any) -> Schema:
        """What the form has before anybody fills it in, if that is the same for every call."""
        is_secret = isinstance(field.widget, widgets.PasswordInput)
        if self.partial or is_secret or callable(field.initial) or callable(initial):
            return {}
        if self.flat and schema["type"] != "boolean" and not self.features.rich_elicitation:
            return {}
        try:
            value = plain(initial)
        except (TypeError, ValueError):
            return {}
        if schema.get("type") in ("string", ["string", "null"]) and isinstance(value, int):
            value = str(value)  # of a choice
        if value in field.empty_values:
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
        return self.several(field, self.listed(choices) if choices else self.key(field))

    def key(self, field: Any) -> Schema:
        kind = "string" if self.flat else ["string", "integer"]
        return {"type": kind, "description": self.key_hint(field)}

    def records(self, field: Any) -> list[Choice] | None:
        """The records to choose from with their titles. None: too many, or not to be listed.

        They are those that the form offers. For forms of the admin see `AdminDescriber`.
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
            raise NotAskable
        schema: Schema = {"type": "array"}
        if "oneOf" in item:
            # A list of titled choices has no other form in elicitation.
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
        longest = field.max_length or 255
        # The keywords of objects say nothing about texts, nor do theirs about objects.
        return {
            "type": ["object", "string"],
            "description": UPLOADS,
            "pattern": f"^{SCHEME}",
            "properties": {
                "filename": {"type": "string", "minLength": 1, "maxLength": longest},
                "data": {"type": "string", "contentEncoding": "base64"},
            },
            "required": ["filename", "data"],
            "additionalProperties": False,
        }

    def anything(self, field: fields.Field) -> Schema:
        return {}

    def array(self, field: Any) -> Schema:
        return {"type": "array", "items": Describer(partial=True).field(field.base_field, None)}

    def parts(self, field: Any) -> Schema:
        """One list, with a part for each of its fields: of money the amount and the currency."""
        inner = copy(self)
        # A part is replaced as a whole: a set in it is no set of its own.
        inner.partial = False
        parts = [inner.field(one, None) for one in parts_of(field)]
        return {
            "type": "array" if field.required else ["array", "null"],
            "prefixItems": parts,
            "minItems": len(parts),
            "maxItems": len(parts),
            "description": f"Such as {example_of_parts(field)}.",
        }

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
        # "format": email, uri, date and date-time are all that a flat form may have.
        if shape and not (self.flat and shape == "uuid"):
            schema["format"] = shape
        # A time of day has no offset here, and one of JSON Schema must have one; durations with
        # fractions of a second are none of JSON Schema.
        if isinstance(field, fields.TimeField):
            schema["description"] = "Such as 14:30:00."
        if isinstance(field, fields.DurationField):
            schema["description"] = "Such as P1DT2H30M."
        if isinstance(field, fields.CharField) and shape != "uuid":
            schema |= limits(self.validators)
            if field.required:
                schema["minLength"] = max(1, schema.get("minLength", 1))
        return schema


def parts_of(field: Any) -> list[fields.Field]:
    """The fields of the parts. A field that asks for all of them has made each optional."""
    parts = [copy(one) for one in field.fields]
    for one in parts:
        one.required = one.required or field.require_all_fields
    return parts


def example_of_parts(field: Any) -> str:
    """What a field of several parts takes, as JSON."""
    return json.dumps([example_of(one) for one in parts_of(field)])


def example_of(field: fields.Field) -> Any:
    if isinstance(field, (ModelChoiceField, fields.IntegerField)):
        return 1
    if isinstance(field, fields.ChoiceField):
        choices: Any = field.choices
        return next((value for value, _ in options(choices)), "")
    return Examples().make(Describer().field(field, field.initial))


def shown_fields(form: Any) -> dict[str, fields.Field]:
    """The fields that somebody who looks at the form can fill in."""
    return {
        name: field
        for name, field in form.fields.items()
        if not field.disabled and not field.widget.is_hidden
    }


def needed_fields(form: Any) -> list[str]:
    """The fields that somebody must fill in, since the form begins without a value for them."""
    return [
        name
        for name, field in shown_fields(form).items()
        if field.required and not is_filled_in(field, form.initial.get(name, field.initial))
    ]


def is_filled_in(field: fields.Field, initial: Any) -> bool:
    """Whether the form has a value before anybody fills it in."""
    if isinstance(field, fields.NullBooleanField):
        return True
    value = initial() if callable(initial) else initial
    if isinstance(field, fields.BooleanField):
        return bool(value)
    return value not in field.empty_values


def nullable(schema: Schema) -> Schema:
    """The same schema, which also takes null for nothing. For a list, nothing is an empty list."""
    kinds = schema.get("type")
    if kinds is None or kinds in ("array", "boolean") or "null" in kinds:
        return schema
    changed = {**schema, "type": [*([kinds] if isinstance(kinds, str) else kinds), "null"]}
    if "oneOf" in changed:
        changed["oneOf"] = [*changed["oneOf"], {"const": None}]
    return changed


# What is wrong with a form, for those who filled it in.

MOST_ALLOWED = 20


def errors_of(
    form: Any, formsets: Iterable[Any] = (), *, describer: Describer
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is wrong with a bound form and its formsets: each error with its path.

    An error has a message, a code, and for a wrong choice some that are right. A path is the name
    of a field, `parts-0.qty` in a row of the formset `parts`, `parts-0` for the row, `parts` for
    all rows together, and "" for the whole record.
    """
    yield from form_errors(form, describer)
    for formset in formsets:
        for error in formset.non_form_errors().get_json_data():
            yield formset.prefix, error
        for at, row in enumerate(formset.forms):
            place = f"{formset.prefix}-{at}"
            for path, error in form_errors(row, describer):
                yield f"{place}.{path}" if path else place, error


def form_errors(form: Any, describer: Describer) -> Iterator[tuple[str, dict[str, Any]]]:
    if not form.errors:
        # Of rows that may only be viewed the admin sets them to a plain dict.
        return
    for name, errors in form.errors.get_json_data().items():
        for error in errors:
            if name == NON_FIELD_ERRORS:
                yield "", error
            elif error["code"] == "invalid_choice":
                yield name, {**error, **allowed(form.fields[name], describer)}
            else:
                yield name, error


def allowed(field: Any, describer: Describer) -> dict[str, Any]:
    """Some values that would have been right."""
    if isinstance(field, ModelChoiceField):
        choices = describer.records(field) or []
    elif isinstance(field, fields.ChoiceField):
        given: Any = field.choices
        choices = list(options(given))
    else:
        return {}
    return {"allowed": [value for value, _ in choices[:MOST_ALLOWED]]} if choices else {}
