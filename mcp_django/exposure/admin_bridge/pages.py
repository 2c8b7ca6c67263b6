"""Pages between choosing an action and running it: what they ask, and how they are answered."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any
from urllib.parse import urljoin, urlsplit

import jsonschema_rs
from django.forms import BaseForm, BoundField
from django.forms.formsets import BaseFormSet
from django.forms.utils import pretty_name
from django.utils.datastructures import MultiValueDict

from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_bridge.actions import MENU, ActionRun, AdminAnswer
from mcp_django.exposure.admin_bridge.deletes import confirmation_text
from mcp_django.exposure.admin_bridge.relations import AdminDescriber, find_related, related_words
from mcp_django.exposure.admin_bridge.requests import page_match
from mcp_django.exposure.admin_bridge.rights import tolerant
from mcp_django.exposure.forms.html import BUTTONS, Control, Form, asked_by, folded, read_page
from mcp_django.exposure.forms.schemas import InvalidValue, errors_of
from mcp_django.exposure.forms.values import Pair, Post, pairs_of, query_dict
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.questions.words import choice_words, field_line, value_line, without_times
from mcp_django.signing import digest_of_json

#: How deep in a template's context forms are looked for, and among how many members of a list.
DEPTH, WIDTH = 2, 20
#: Errors that the answer to one call names.
MOST_ERRORS = 20


@dataclass(frozen=True, kw_only=True)
class ActionPage:
    title: str
    text: str
    #: The form that a person would fill in, or None on a page that is only to be read.
    form: Form | None
    #: Where that form is sent.
    path: str
    #: The Django forms behind it, by prefix.
    forms: Mapping[str, BaseForm] = field(default_factory=dict)
    #: The field of such a form behind a control, by the name of the control.
    fields: Mapping[str, BoundField] = field(default_factory=dict)
    #: What it asks: JSON Schemas by the name of the control.
    asks: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    required: Sequence[str] = ()

    @property
    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "object", "properties": dict(self.asks)}
        if self.required:
            schema["required"] = list(self.required)
        return {**schema, "additionalProperties": False}

    @property
    def statement(self) -> str:
        """What the page says apart from its title, and from the labels and help texts of what it
        asks: a question has the labels, with the answers.
        """
        labels = [] if self.form is None else [one.label for one in self.form.controls]
        about = [folded(str(bound.help_text)) for bound in self.fields.values()]
        text = self.text.removeprefix(self.title)
        for part in (*(label for label in labels if label.endswith(":")), *about):
            text = text.replace(part, " ", 1) if part else text
        return folded(text)

    def answer_lines(self, answer: Mapping[str, Any], rights: Rights) -> list[str]:
        """The values of an answer, a line for each, as a person reads them on the page."""
        related = partial(related_words, rights)
        return [
            field_line(self.fields[name], value, related=related)
            if name in self.fields
            else value_line(
                self.asks[name].get("title") or pretty_name(name),
                choice_words(self.asks[name], value),
            )
            for name, value in answer.items()
        ]

    @property
    def digest(self) -> str:
        """Of what a person would read and fill in."""
        return digest_of_json(self.title, without_times(self.text), self.schema)

    def check(self, answer: Mapping[str, Any]) -> None:
        """Raise ToolError for names that the page does not ask for, and for those that miss."""
        unknown = [name for name in answer if name not in self.asks]
        missing = [name for name in self.required if name not in answer]
        asks = f"The page asks: {', '.join(self.asks) or 'nothing'}."
        if unknown:
            raise ToolError(f"answer: the page has no {ascii(unknown[0])[:60]}. {asks}")
        if missing:
            raise ToolError(f"answer: missing {', '.join(missing)}. {asks}")

    def post(self, answer: Mapping[str, Any], rights: Rights) -> Post:
        """What a browser would send: the page as it was made, and our values over it.

        Raises ToolError for a value that has no place in its control.
        """
        assert self.form is not None  # noqa: S101  who sends a page has seen its form
        post = Post(find=partial(find_related, rights))
        for name, value in self.form.pairs():
            is_replaced = any(is_part_of(name, given) for given in answer)
            if name != "csrfmiddlewaretoken" and not is_replaced:
                post.pairs.append((name, value))
        for name, value in answer.items():
            if name in self.fields:
                fill_in(post, self.fields[name], value)
            else:
                try:
                    jsonschema_rs.validate(self.asks[name], value)
                except jsonschema_rs.ValidationError as error:
                    raise ToolError(f"answer: {name}: {error.message[:200]}.") from None
                post.pairs += plain_pairs(self.form, name, value)
        buttons = [(one.name, one.value) for one in self.form.buttons if one.name]
        post.pairs += buttons[:1]
        return post

    def refusals(self, post: Post, rights: Rights) -> dict[str, Any]:
        """What the forms of the page find wrong with this post, which is not sent yet."""
        forms = {
            prefix: filled_in(form, post)
            for prefix, form in self.forms.items()
            if self._has_all_of(form)
        }
        errors: dict[str, Any] = {}
        # Code of the site may expect what only its view has.
        with tolerant(f"The form of the page {self.title!r} cannot be checked."):
            errors = replace(self, forms=forms).errors(rights)
        for file in post.files.values():
            file.seek(0)
        return errors

    def _has_all_of(self, form: BaseForm) -> bool:
        """Whether the page sends every field of a form. If not, its view may use another one."""
        controls = [] if self.form is None else self.form.controls
        names = [*self.asks, *(one.name for one in controls)]
        return all(
            field.disabled or any(is_part_of(name, form.add_prefix(own)) for name in names)
            for own, field in form.fields.items()
        )

    def repeats(self, before: ActionPage, rights: Rights) -> bool:
        """Whether this is the page that was sent, because the action did not take the values."""
        names, hidden = self._controls()
        if (names, hidden) == before._controls():
            return bool(names) or self.digest == before.digest
        return bool(names) and names == before._controls()[0] and bool(self.errors(rights))

    def _controls(self) -> tuple[list[str], list[Pair]]:
        """The names of what a person fills in, and what the page sends besides: many wizards keep
        their step there. A declared form is not looked at.
        """
        controls = [] if self.form is None else self.form.controls
        sent = [one for one in controls if one.name not in ("", "csrfmiddlewaretoken")]
        names = [one.name for one in sent if one.kind not in ("hidden", *BUTTONS)]
        return names, [(one.name, one.value) for one in sent if one.kind == "hidden"]

    def errors(self, rights: Rights) -> dict[str, Any]:
        """What is wrong with the values that the page came back with."""
        describer = AdminDescriber(rights)
        errors = [
            (f"{prefix}-{name}" if prefix and name else name, error)
            for prefix, form in self.forms.items()
            if form.is_bound
            for name, error in errors_of(form, describer=describer)
        ]
        if more := errors[MOST_ERRORS:]:
            sentence = f"There are {len(more)} more."
            errors[MOST_ERRORS:] = [("", {"message": sentence, "code": "more"})]
        found: dict[str, list[dict[str, Any]]] = {}
        for path, error in errors:
            found.setdefault(path, []).append(error)
        return found


def filled_in(form: Any, post: Post) -> Any:
    """A copy of a form of the page, with what would be posted of the page."""
    filled = copy(form)
    # Its bound fields would look at the other form.
    filled._bound_fields_cache = {}
    filled._errors = None
    filled.is_bound = True
    filled.data = query_dict(post.pairs)
    filled.files = MultiValueDict({name: [file] for name, file in post.files.items()})
    if hasattr(form, "instance"):
        filled.instance = copy(form.instance)
    return filled


def fill_in(post: Post, bound: Any, value: Any) -> None:
    """Give a bound field a value. Raises ToolError for one that it cannot hold."""
    try:
        post.fill_in(bound, value)
    except InvalidValue as error:
        raise ToolError(f"answer: {bound.html_name}: {error}") from None


def plain_pairs(form: Form, name: str, value: Any) -> list[Pair]:
    """Where only the HTML is known: texts, options by their values, and boxes to tick."""
    boxes = [one for one in form.controls if one.name == name and one.kind == "checkbox"]
    if boxes:
        return [(name, boxes[0].value)] if value else []
    values = value if isinstance(value, list) else [value]
    return [(name, str(one)) for one in values]


def is_part_of(name: str, given: str) -> bool:
    """Whether a control belongs to a value: widgets of several controls number them."""
    return name == given or name.removeprefix(f"{given}_").isdigit()


def read_action_page(answer: AdminAnswer, run: ActionRun, *, declared: Any = None) -> ActionPage:
    """Find out what a page asks. `declared` is the form class that the action names itself."""
    read = read_page(answer.html)
    form = form_to_answer(read.forms, run)
    path = run.home if form is None else target_of(form, run)
    text = confirmation_text(run.rights, answer.context) or read.text
    title = folded(str(answer.context.get("title") or "")) or text[:80]
    page = ActionPage(title=title, text=text, form=form, path=path)
    if form is None:
        return page
    names = None if declared else {one.name for one in form.controls if one.name}
    found = [declared()] if declared else list(forms_in(answer.context))
    return with_forms(page, found, run.rights, names=names)


def page_of_form(form: BaseForm, rights: Rights) -> ActionPage:
    """The page of a form that an action declares, as far as it is known before it is shown."""
    sent = [pairs_of(one.field.widget, one.html_name, one.value()) for one in form]
    controls = [Control(name=name, kind="hidden", value=value) for name, value in chain(*sent)]
    page = ActionPage(title="", text="", form=Form(controls=controls), path="")
    return with_forms(page, [form], rights, names=None)


def with_forms(
    page: ActionPage, found: Sequence[BaseForm], rights: Rights, *, names: Collection[str] | None
) -> ActionPage:
    """The page with those of the forms that have a field among `names`, or with all of them."""
    describer = AdminDescriber(rights)
    forms: dict[str, BaseForm] = {}
    fields: dict[str, BoundField] = {}
    asks: dict[str, dict[str, Any]] = {}
    required: list[str] = []
    for one in found:
        schema = describer.form(one)
        for name, property_ in schema["properties"].items():
            html_name = one.add_prefix(name)
            if names is None or any(is_part_of(known, html_name) for known in names):
                forms[one.prefix or ""] = one
                fields[html_name] = one[name]
                asks[html_name] = property_
                # Some templates get one form by two names.
                if name in schema.get("required", ()) and html_name not in required:
                    required.append(html_name)
    if not asks and page.form is not None:
        asks, required = asked_by(page.form, ignored=MENU)
    return replace(page, forms=forms, fields=fields, asks=asks, required=required)


def form_to_answer(forms: Sequence[Form], run: ActionRun) -> Form | None:
    """The form of the action itself: the header of a page has forms, too, and so have skins."""
    posts = [
        one
        for one in forms
        if one.method == "post"
        and any(control.name not in ("", "csrfmiddlewaretoken") for control in one.controls)
    ]
    marks = MENU - {"csrfmiddlewaretoken"}
    marked = [one for one in posts if any(control.name in marks for control in one.controls)]
    within = [
        one
        for one in posts
        if (match := page_match(target_of(one, run))) is not None
        and match.namespace == run.model_admin.admin_site.name
        and match.url_name not in ("logout", "login")
    ]
    return max(marked or within, key=lambda one: len(one.controls), default=None)


def target_of(form: Form, run: ActionRun) -> str:
    """The path that a form is sent to; of another host, all of its address."""
    target = urlsplit(urljoin(run.home, form.action or ""))
    return target.geturl() if target.netloc else target.path


def forms_in(value: Any, *, depth: int = 0) -> Iterator[BaseForm]:
    """The forms in a template's context: as they are, in formsets, lists and what the admin has
    round them.
    """
    if isinstance(value, BaseForm):
        yield value
    elif isinstance(value, BaseFormSet):
        yield from value.forms
    elif isinstance(getattr(value, "form", None), BaseForm):
        yield value.form
    elif depth < DEPTH and isinstance(value, Mapping | list | tuple):
        for one in value.values() if isinstance(value, Mapping) else value[:WIDTH]:
            yield from forms_in(one, depth=depth + 1)
