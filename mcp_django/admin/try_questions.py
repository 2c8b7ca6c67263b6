"""Questions that a call ended with, as forms of the page, and what came back for them as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from django.core.exceptions import ValidationError
from django.forms import BooleanField, CheckboxSelectMultiple, Form, MultipleChoiceField

from mcp_django.admin.try_forms import Member, choices_of, common_of, member_of
from mcp_django.signing import seal, unseal

#: The field in which the browser keeps what was asked.
FIELD = "asked"
PURPOSE = "admin.asked"
#: Characters. The state is the longest part of it.
LONGEST = 1024 * 1024
ACTIONS = {"accept": "Answer", "decline": "Decline", "cancel": "Cancel"}


@dataclass(frozen=True, kw_only=True)
class Asked:
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


def opened(text: str, *, bound_to: str) -> Asked | None:
    """What this person was asked for this call, or None for anything that is not that."""
    found = unseal(text, purpose=PURPOSE, bound_to=bound_to, longest=LONGEST)
    return None if found is None else msgspec.json.decode(found, type=Asked)


def asked_in(message: Mapping[str, Any], form: Form) -> Asked | None:
    """The questions of an answer to a call that was made from a form."""
    result = message.get("result", {})
    if result.get("resultType") != "input_required":
        return None
    names = [form.add_prefix(name) for name in form.fields]
    return Asked(
        data={name: form.data[name] for name in names if name in form.data},
        questions=result["inputRequests"],
        state=result["requestState"],
    )


class QuestionForm(Form):
    """One question. Fields that are empty are not sent, unless they had a value to begin with."""

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
        schema = params["requestedSchema"]
        required = frozenset(schema.get("required", ()))
        self.schemas: dict[str, Any] = schema["properties"]
        written = {**defaults_of(self.schemas), **((before or {}).get("content") or {})}
        self.members = [
            asked_member(name, one, required=name in required)
            for name, one in self.schemas.items()
        ]
        for member in self.members:
            member.field.initial = initial_of(self.schemas[member.name], written.get(member.name))
            self.fields[member.name] = member.field

    @property
    def answer(self) -> dict[str, Any]:
        """As the client of a person sends it. Valid forms only."""
        if self.action != "accept":
            return {"action": self.action}
        return {"action": self.action, "content": self.content}

    def is_valid(self) -> bool:
        return self.action != "accept" or super().is_valid()

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        self.content: dict[str, Any] = {}
        for member in self.members:
            value = cleaned.get(member.name)
            if value not in ("", None):
                try:
                    self.content[member.name] = member.parse(value)
                except ValidationError as error:
                    self.add_error(member.name, error)
            elif "default" in self.schemas[member.name]:
                # Without it the default would come back.
                self.content[member.name] = None
        return cleaned


def asked_member(name: str, schema: Mapping[str, Any], *, required: bool) -> Member:
    """A field as a form has it: a box to tick for a yes, and one for each of several choices."""
    bare = {key: value for key, value in schema.items() if key != "default"}
    if schema["type"] == "boolean":
        common = common_of(name, bare, bare, required=required)
        return Member(name=name, field=BooleanField(**common), parse=bool)
    if schema["type"] == "array":
        choices = choices_of(schema["items"])
        field = MultipleChoiceField(
            choices=choices or (),
            widget=CheckboxSelectMultiple,
            **common_of(name, bare, bare, required=required),
        )
        return Member(name=name, field=field, parse=list)
    return member_of(name, bare, {}, required=required)


def defaults_of(schemas: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one["default"] for name, one in schemas.items() if "default" in one}


def initial_of(schema: Mapping[str, Any], value: Any) -> Any:
    """A JSON value as its field shows it."""
    if value is None or schema["type"] in ("boolean", "array"):
        return value
    return json.dumps(value) if choices_of(schema) is not None else str(value)
