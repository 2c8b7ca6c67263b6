"""The form of a stored prompt: its arguments and messages in rows that people can fill in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.forms import (
    BooleanField,
    CharField,
    CheckboxSelectMultiple,
    ChoiceField,
    Form,
    HiddenInput,
    IntegerField,
    ModelForm,
    Select,
    Textarea,
    TextInput,
    formset_factory,
)

from mcp_django.admin.formset_fields import FormsetField, rows_of
from mcp_django.exposure.overrides import exposed_by
from mcp_django.exposure.prompt_contents import (
    LONGEST_DESCRIPTION,
    LONGEST_TITLE,
    MOST_ARGUMENTS,
    MOST_MESSAGES,
    BrokenContents,
    Contents,
    Problem,
    compile_contents,
    normal,
    parse_contents,
)
from mcp_django.exposure.prompt_documents import name_problem
from mcp_django.exposure.prompt_versions import contents_of, newest_version
from mcp_django.exposure.registry import registry
from mcp_django.models import PromptTemplate
from mcp_django.principal import DEFAULT_SERVER

TYPES = [
    ("text", "Text"),
    ("number", "Number"),
    ("date", "Date"),
    ("choice", "One of some choices"),
    ("object", "An object of the site"),
]
#: What the admin calls its own inputs, so that skins know them.
LINE, LINES = {"class": "vTextField"}, {"class": "vLargeTextField"}
ROLES = [("user", "The user"), ("assistant", "The assistant")]


def model_choices() -> list[tuple[str, str]]:
    exposures = exposed_by(registry, DEFAULT_SERVER).exposures.values()
    labels = [(one.label, f"{one.model._meta.verbose_name} ({one.label})") for one in exposures]
    return [("", "(none)"), *labels]


class ArgumentForm(Form):
    name = CharField(
        max_length=40,
        help_text="How messages write it: <code>{{ name }}</code>.",
        widget=TextInput(attrs={**LINE, "spellcheck": "false", "autocapitalize": "none"}),
    )
    type = ChoiceField(choices=TYPES, initial="text", widget=Select(attrs={"data-mcp-type": ""}))
    required = BooleanField(required=False)
    title = CharField(
        max_length=LONGEST_TITLE,
        required=False,
        widget=TextInput(attrs=LINE),
        help_text="What people see. Empty: its name.",
    )
    description = CharField(
        max_length=LONGEST_DESCRIPTION,
        required=False,
        help_text="What to fill in, such as “Number of the order, as A-1”.",
        widget=TextInput(attrs=LINE),
    )
    choices = CharField(
        required=False,
        help_text="One in each line.",
        widget=Textarea(attrs={**LINES, "rows": 3, "data-mcp-for": "choice"}),
    )
    model = ChoiceField(
        choices=model_choices,
        required=False,
        help_text="People get the objects that they may see, and of each what they may read.",
        widget=Select(attrs={"data-mcp-for": "object"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field, stored = self.fields["model"], self.initial.get("model")
        # A model that is exposed no more stays what it is until somebody chooses another.
        if isinstance(field, ChoiceField) and stored and not field.valid_value(stored):
            field.choices = [*model_choices(), (stored, f"{stored} (not exposed)")]

    def plain(self) -> dict[str, Any]:
        """As it is stored. What belongs to another type is dropped, as the page hides it."""
        found = {name: self.cleaned_data.get(name) for name in self.fields if name in KEPT}
        lines = normal(found.pop("choices") or "").split("\n")
        kind = found["type"]
        found["choices"] = [one.strip() for one in lines if one.strip()]
        if kind != "choice":
            found["choices"] = []
        if kind != "object":
            found["model"] = ""
        return found


KEPT = frozenset({"name", "type", "required", "title", "description", "choices", "model"})


class MessageForm(Form):
    role = ChoiceField(choices=ROLES, initial="user", label="Who says it")
    text = CharField(
        required=False,
        # Django templates begin with blank lines now and then, and lines are counted.
        strip=False,
        widget=Textarea(attrs={**LINES, "rows": 8, "spellcheck": "true"}),
    )
    resource = CharField(
        required=False,
        label="Or a resource",
        help_text="Its address, with arguments in braces, such as "
        "<code>django://objects/shop.order/{order}</code>. It is read with the rights of whoever "
        "gets the prompt.",
        widget=TextInput(attrs={**LINE, "spellcheck": "false"}),
    )

    def plain(self) -> dict[str, Any]:
        given = self.cleaned_data
        return {
            "role": given["role"],
            "text": normal(given["text"]) if given["text"].strip() else "",
            "resource": given["resource"].strip(),
        }


def rows(form: type[Form], *, most: int) -> Any:
    return formset_factory(
        form, extra=1, can_delete=True, can_order=True, max_num=most, validate_max=True
    )


if TYPE_CHECKING:
    PromptModelForm = ModelForm[PromptTemplate]
else:
    PromptModelForm = ModelForm  # it takes no subscript when it runs


class PromptForm(PromptModelForm):
    arguments = FormsetField(
        rows(ArgumentForm, most=MOST_ARGUMENTS),
        row="argument",
        help_text="What people fill in before they send the prompt. None is fine, too.",
    )
    messages = FormsetField(
        rows(MessageForm, most=MOST_MESSAGES),
        row="message",
        help_text="What the model reads, in this order.",
    )
    comment = CharField(
        required=False,
        max_length=200,
        help_text="What you changed and why, for the list of versions.",
        widget=TextInput(attrs=LINE),
    )
    based_on = IntegerField(required=False, widget=HiddenInput)

    class Meta:
        model = PromptTemplate
        fields = ("name", "title", "description", "enabled", "groups")
        # As every skin shows it.
        widgets = {"groups": CheckboxSelectMultiple}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        version = newest_version(self.instance)
        self.before = contents_of(version)
        #: What the form makes; None while something is wrong.
        self.contents: Contents | None = None
        stored = self.before.as_plain()
        shown = {
            "arguments": [
                {**one, "choices": "\n".join(one.get("choices", ()))}
                for one in stored["arguments"]
            ],
            "messages": stored["messages"],
        }
        for name, initial in shown.items():
            self.initial[name] = self.fields[name].widget.initial = initial
        self.initial["based_on"] = version.number if version else 0

    def clean_name(self) -> Any:
        name = self.cleaned_data["name"]
        if (sentence := name_problem(name)) is not None:
            raise ValidationError(sentence)
        # The form has no server, so that Django leaves the constraint out.
        others = PromptTemplate.objects.filter(server=self.instance.server, name=name)
        if others.exclude(pk=self.instance.pk).exists():
            raise ValidationError("There is a prompt of this name already.")
        return name

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if "arguments" in self.cleaned_data and "messages" in self.cleaned_data:
            parts = ("arguments", "messages")
            # Asked once: a formset with errors does not tell the order of its rows any more.
            found = {part: rows_of(self[part].value()) for part in parts}
            try:
                self.contents = self._contents(found)
            except BrokenContents as error:
                for problem in error.problems:
                    self._show(problem, found[problem.part])
        return cleaned

    def _contents(self, found: dict[str, list[Any]]) -> Contents:
        """Raises BrokenContents."""
        plain = {part: [row.plain() for row in found[part]] for part in found}
        return compile_contents(parse_contents(**plain)).contents

    def _show(self, problem: Problem, found: list[Any]) -> None:
        """Above the list, and in the row that it is about."""
        self.add_error(problem.part, str(problem))
        if problem.at is not None:
            line = "" if problem.line is None else f"Line {problem.line}: "
            found[problem.at].add_error(problem.field or None, f"{line}{problem.sentence}")

    @property
    def has_new_contents(self) -> bool:
        return self.contents is not None and self.contents != self.before
