"""A prompt as somebody would get it, before anybody does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.forms import CharField, ChoiceField, DateInput, Field, TextInput
from django.http import HttpRequest, HttpResponse

from mcp_django.admin.inspect.impersonation import (
    ChoosingForm,
    call_as,
    chosen_caller,
    may_more_than,
    reader,
    viewer_of,
)
from mcp_django.admin.pages import found_object, render_page
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.inspection import OwnRights, SharedRights
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.primitives import code_uri
from mcp_django.exposure.prompts.contents import ArgumentContent, Body, BrokenContents, embedded
from mcp_django.exposure.prompts.stored import StoredPrompt, body_of, labelled_keys, newest_version
from mcp_django.models import PromptTemplate
from mcp_django.protocol.content import EmbeddedResource
from mcp_django.protocol.results import PromptMessage

if TYPE_CHECKING:
    from mcp_django.admin.prompts.templates import PromptTemplateAdmin

PREVIEW_AS = "mcp_django.preview_as_user"
PREFIX = "argument_"
#: Objects to choose from as somebody types.
MOST_OFFERED = 50


class PreviewForm(ChoosingForm):
    """Who looks, and the arguments of a prompt as a client would ask for them."""

    token = None  # type: ignore[assignment]  # takes the field away, as Django documents

    def __init__(self, model_admin: Any, request: HttpRequest, body: Body, data: Any) -> None:
        super().__init__(model_admin, request, data)
        username = self.fields["username"]
        username.label = "As"
        username.help_text += " Looking as somebody else is written to the log."
        username.widget.attrs["class"] = "vTextField"
        if not request.user.has_perm(PREVIEW_AS):
            del self.fields["username"]
        for argument in body.contents.arguments:
            self.fields[PREFIX + argument.name] = field_of(argument)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if self.person is not None and self.person.pk != self.request.user.pk:
            problem = chosen_caller(reader(self.person), "").problem
            if may_more_than(self.person, self.request.user):
                problem = "This user has permissions that you do not have."
            if problem:
                self.add_error("username", problem)
                self.person = None
        return cleaned

    def given(self) -> dict[str, str]:
        """The arguments that were filled in."""
        return {
            name.removeprefix(PREFIX): value
            for name, value in self.cleaned_data.items()
            if name.startswith(PREFIX) and value != ""
        }


def field_of(argument: ArgumentContent) -> Field:
    common: dict[str, Any] = {
        "required": False,
        "label": (argument.title or argument.name) + (" *" if argument.required else ""),
        "help_text": argument.description,
    }
    if argument.type == "choice":
        choices = [("", "(none)"), *((choice, choice) for choice in argument.choices)]
        return ChoiceField(choices=choices, **common)
    widget: TextInput | DateInput = TextInput(attrs={"class": "vTextField"})
    if argument.type == "date":
        widget = DateInput(attrs={"type": "date", "class": "vDateField"})
    elif argument.type == "object":
        common["help_text"] = f"{argument.description} Its key, or what stands for it.".strip()
        widget.attrs |= {"list": f"{PREFIX}{argument.name}_offers", "autocomplete": "off"}
    return CharField(widget=widget, strip=False, **common)


def preview(
    model_admin: PromptTemplateAdmin, request: HttpRequest, object_id: str
) -> HttpResponse:
    template = found_object(model_admin, request, object_id)
    version = newest_version(template)
    context: dict[str, Any] = {"original": template, "version": version}
    try:
        body = body_of(version) if version else Body()
    except BrokenContents as error:
        context["error"] = str(error)
        body = Body()
    data = request.POST if request.method == "POST" else None
    form = PreviewForm(model_admin, request, body, data)
    is_valid = form.is_valid()
    person = form.person or request.user
    viewer = None
    if person.pk != request.user.pk:
        # Before anything is read: what fails was looked at as well.
        sentence = f"Previewed as {person.get_username()}. Nothing was changed."
        model_admin.log_change(request, template, sentence)
        viewer = viewer_of(request)
    offers: dict[str, Sequence[tuple[str, str]]] = {}

    def offer_keys(context: CallContext, rights: Rights) -> None:
        seen = rights_of_both(rights, viewer)
        for name, label in body.contents.models.items():
            offers[name] = labelled_keys(seen, label)[:MOST_OFFERED]

    try:
        call_as(reader(person), request, offer_keys)
    except ToolError as error:
        context["error"] = str(error)
    if is_valid and "error" not in context:
        context |= preview_context(request, template, body, person, form.given(), viewer=viewer)
    return render_page(
        model_admin,
        request,
        "preview.html",
        title=f"Preview of {template}",
        page_name="Preview",
        form=form,
        person=person,
        rows=[(one, offers.get(one.name.removeprefix(PREFIX), ())) for one in form],
        **context,
    )


def rights_of_both(rights: Rights, viewer: OwnRights | None) -> Rights:
    """What the person and the viewer have. None: the person looks."""
    return rights if viewer is None else SharedRights(rights, viewer)


def preview_context(
    request: HttpRequest,
    template: PromptTemplate,
    body: Body,
    person: Any,
    given: Mapping[str, str],
    *,
    viewer: OwnRights | None,
) -> dict[str, Any]:
    groups = frozenset(template.groups.values_list("pk", flat=True))
    prompt = StoredPrompt(template, body, groups=groups)

    def work(context: CallContext, rights: Rights) -> tuple[bool, list[PromptMessage] | str]:
        is_member, seen = prompt.exists_for(rights), rights_of_both(rights, viewer)
        try:
            messages = list(prompt.get(context, seen, given).messages)
        except ToolError as error:
            return is_member, str(error)
        if viewer is not None:
            messages = [own_message(context, seen, one, code=False) for one in messages]
        return is_member, messages

    is_member, found = call_as(reader(person), request, work)
    if isinstance(found, str):
        return {"error": found, "is_member": is_member}
    messages = found

    def check(context: CallContext, rights: Rights) -> list[PromptMessage]:
        return [own_message(context, rights, one, code=True) for one in messages]

    if viewer is not None:
        messages = call_as(reader(request.user), request, check)
    # The text, or the contents of the resource: templates and addresses make nothing else.
    blocks = [(one.role, getattr(one.content, "contents", one.content)) for one in messages]
    return {"blocks": blocks, "is_member": is_member}


def own_message(
    context: CallContext, rights: Rights, message: PromptMessage, *, code: bool
) -> PromptMessage:
    """The message, without a resource that says something else to these rights.

    Resources of code, or the others: nobody but the code knows which rows it reads.
    """
    content = message.content
    if not isinstance(content, EmbeddedResource) or code_uri(content.contents.uri) != code:
        return message
    with suppress(ToolError):
        if content in embedded(context, rights, content.contents.uri):
            return message
    # Contents of neither kind: the template says why.
    nothing = replace(content.contents, text=None, blob=None)
    return replace(message, content=replace(content, contents=nothing))
