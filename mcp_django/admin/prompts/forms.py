"""The form of a stored prompt: its arguments and messages in rows that people can fill in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import models
from django.forms import (
    BooleanField,
    CharField,
    ChoiceField,
    Field,
    Form,
    HiddenInput,
    IntegerField,
    Select,
    Textarea,
    TextInput,
    Widget,
    formset_factory,
)
from django.forms.formsets import BaseFormSet
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from mcp_django.admin.pages import AnyModelForm
from mcp_django.admin.tokens import exposed_models
from mcp_django.exposure.decisions import exposed_by
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import RETURN, declaration_of
from mcp_django.exposure.prompts.contents import (
    LONGEST_DESCRIPTION,
    LONGEST_TITLE,
    MOST_ARGUMENTS,
    MOST_MESSAGES,
    ArgumentContent,
    Body,
    BrokenContents,
    Contents,
    Problem,
    compile_contents,
    normal,
    parse_contents,
)
from mcp_django.exposure.prompts.documents import name_problem
from mcp_django.exposure.prompts.stored import contents_of, names_of, newest_version
from mcp_django.exposure.registry import registry
from mcp_django.models import PromptTemplate
from mcp_django.principal import DEFAULT_SERVER
from mcp_django.templating.engine import RestrictedTemplate

# A field of a form that is a list of small forms: rows that people add, fill in and order.
#
# As a field it needs no place of its own in a page, so every skin of the admin shows it.

if TYPE_CHECKING:
    Rows = BaseFormSet[Form]
else:
    Rows = BaseFormSet  # it takes no subscript when it runs


class FormsetWidget(Widget):
    """Copied for each form, so it holds the rows of that form: with what is wrong with them."""

    template = "mcp_django/formset.html"

    def __init__(self, formset_class: type[Rows], *, row: str) -> None:
        super().__init__()
        self.formset_class = formset_class
        self.row = row
        #: What the rows were before, to tell those that people did not touch.
        self.initial: list[dict[str, Any]] = []
        self._rows: Rows | None = None

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> Rows:
        if self._rows is None or self._rows.data is not data:
            self._rows = self.formset_class(data, prefix=name, initial=self.initial)
        return self._rows

    def id_for_label(self, id_: str) -> str:
        return ""  # each input in it has a label of its own

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        rows = value
        if not isinstance(rows, BaseFormSet):
            rows = self.formset_class(prefix=name, initial=value or [])
        return render_to_string(
            self.template, {"formset": rows, "name": name, "row": self.row, "attrs": attrs}
        )


class FormsetField(Field):
    """Its value is a list of the rows' cleaned data, in the order that people gave them."""

    widget: FormsetWidget

    def __init__(self, formset_class: type[Rows], *, row: str, **options: Any) -> None:
        widget = FormsetWidget(formset_class, row=row)
        super().__init__(required=False, widget=widget, **options)

    def clean(self, value: Rows) -> list[dict[str, Any]]:
        if not value.is_valid():
            errors = value.non_form_errors()
            raise ValidationError(list(errors) or f"Correct the {self.widget.row}s below.")
        return [form.cleaned_data for form in rows_of(value)]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(data.has_changed())


def rows_of(formset: Rows) -> list[Form]:
    """The rows that count, in their order: without those that are empty or deleted."""
    ordered = formset.ordered_forms if formset.can_order else formset.forms
    return [form for form in ordered if form.has_changed() or form.initial]


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
    return [("", "(none)"), *exposed_models()]


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
        plain = {name: self.cleaned_data.get(name) for name in ArgumentContent.__struct_fields__}
        lines = normal(plain["choices"] or "").split("\n") if plain["type"] == "choice" else ()
        plain["choices"] = [line.strip() for line in lines if line.strip()]
        if plain["type"] != "object":
            plain["model"] = ""
        return plain


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


class PromptForm(AnyModelForm):
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
            found: dict[str, list[Any]]
            found = {part: rows_of(self[part].value()) for part in parts}
            try:
                plain = {part: [row.plain() for row in found[part]] for part in found}
                body = compile_contents(parse_contents(**plain))
                exposed = exposed_by(registry, DEFAULT_SERVER).by_label
                if problems := list(attribute_problems(body, exposed)):
                    raise BrokenContents(problems)
                self.contents = body.contents
            except BrokenContents as error:
                for problem in error.problems:
                    self._show(problem, found[problem.part])
        return cleaned

    def _show(self, problem: Problem, found: list[Any]) -> None:
        """Above the list, and in the row that it is about."""
        self.add_error(problem.part, str(problem))
        if problem.at is not None:
            line = "" if problem.line is None else f"Line {problem.line}: "
            found[problem.at].add_error(problem.field or None, f"{line}{problem.sentence}")

    @property
    def has_new_contents(self) -> bool:
        return self.contents is not None and self.contents != self.before


# Names in messages that nothing would be printed for.


def attribute_problems(body: Body, exposures: Mapping[str, ModelExposure]) -> Iterator[Problem]:
    """Uses of objects in messages that would always print nothing, by the labels of models.

    What is hidden and what never was get the same sentence.
    """
    for at, (_, content) in enumerate(body.parts):
        uses = content.uses if isinstance(content, RestrictedTemplate) else ()
        for line, (name, *bits) in uses:
            exposure = exposures.get(body.contents.models.get(name, ""))
            if exposure is None or not bits:
                continue
            if fault := attribute_fault(exposure, name, bits):
                yield Problem(part="messages", at=at, field="text", line=line, sentence=fault)


#: Fields whose values have no parts.
SCALARS = (
    models.CharField,
    models.TextField,
    models.IntegerField,
    models.DecimalField,
    models.DateField,
)


def attribute_fault(exposure: ModelExposure, name: str, bits: Sequence[str]) -> str | None:
    """What is wrong with a use of an object, by the name of its argument and what follows it."""
    text, names = ".".join(bits), names_of(exposure)
    if any(own == text or own.startswith(f"{text}.") for own in names):
        return None
    for path in declaration_of(exposure).paths[RETURN]:
        inner = bits[len(path.names) :]
        if inner and tuple(bits[: len(path.names)]) == path.names:
            # A relation has a key. JSON and lists may have anything.
            has_parts = not isinstance(path.field, SCALARS)
            if inner == ["pk"] if path.field.is_relation else has_parts:
                return None
            break
    close = get_close_matches(text[:60], names, n=1, cutoff=0.5)
    hint = f"did you mean {name}.{close[0]}?" if close else f"it has: {', '.join(names[:20])}"
    return f"{exposure.label} has no {ascii(text)[1:-1][:60]} that prompts may use; {hint}"
