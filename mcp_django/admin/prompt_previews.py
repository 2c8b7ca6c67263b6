"""A prompt as somebody would get it, before anybody does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.forms import CharField, ChoiceField, DateInput, Field, Form, TextInput
from django.http import HttpRequest, HttpResponse

from mcp_django.admin.as_user import call_as, find_person, people, reader
from mcp_django.admin.pages import found_object, page
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.prompt_contents import ArgumentContent, Body, BrokenContents
from mcp_django.exposure.prompt_objects import labelled_keys
from mcp_django.exposure.prompt_versions import newest_version
from mcp_django.exposure.stored_prompts import StoredPrompt, body_of
from mcp_django.models import PromptTemplate
from mcp_django.protocol.content import Content, EmbeddedResource, TextContent
from mcp_django.protocol.results import PromptMessage, PromptResult

if TYPE_CHECKING:
    from mcp_django.admin.prompts import PromptTemplateAdmin

PREVIEW_AS = "mcp_django.preview_as_user"
PERSON = "preview_person"
PREFIX = "argument_"
#: Names to choose from as somebody types.
MOST_OFFERED = 50
ROLES = {"user": "The user", "assistant": "The assistant"}


class PreviewForm(Form):
    """The arguments of a prompt as a client would ask for them."""

    def __init__(self, body: Body, data: Any, *, person: bool) -> None:
        super().__init__(data)
        if person:
            self.fields[PERSON] = CharField(
                required=False,
                label="As",
                help_text="The name of a user. Empty: yourself. Looking as somebody else is "
                "written to the log.",
                widget=TextInput(
                    attrs={
                        "class": "vTextField",
                        "list": f"{PERSON}_offers",
                        "autocomplete": "off",
                    }
                ),
            )
        for one in body.contents.arguments:
            self.fields[PREFIX + one.name] = field_of(one)

    def given(self) -> dict[str, str]:
        """The arguments that were filled in."""
        return {
            name.removeprefix(PREFIX): value
            for name, value in self.cleaned_data.items()
            if name.startswith(PREFIX) and value != ""
        }


def field_of(one: ArgumentContent) -> Field:
    label = (one.title or one.name) + (" *" if one.required else "")
    common: dict[str, Any] = {
        "required": False,
        "label": label,
        "help_text": one.description,
        "strip": False,
    }
    if one.type == "choice":
        del common["strip"]
        return ChoiceField(choices=[("", "(none)"), *((c, c) for c in one.choices)], **common)
    if one.type == "date":
        return CharField(widget=DateInput(attrs={"type": "date", "class": "vDateField"}), **common)
    attrs: dict[str, Any] = {"class": "vTextField"}
    if one.type == "object":
        common["help_text"] = f"{one.description} Its key, or what stands for it.".strip()
        attrs |= {"list": f"{PREFIX}{one.name}_offers", "autocomplete": "off"}
    return CharField(widget=TextInput(attrs=attrs), **common)


def preview(
    model_admin: PromptTemplateAdmin, request: HttpRequest, object_id: str
) -> HttpResponse:
    template = found_object(model_admin, request, object_id)
    version = newest_version(template)
    context: dict[str, Any] = {"original": template, "version": version}
    try:
        body = body_of(version) if version else Body.empty()
    except BrokenContents as error:
        context["error"] = str(error)
        body = Body.empty()
    may_choose = request.user.has_perm(PREVIEW_AS)
    data = request.POST if request.method == "POST" else None
    may_choose = request.user.has_perm(PREVIEW_AS)
    person: Any = request.user
    if data is not None and may_choose:
        try:
            person = find_person(model_admin, request, data.get(PERSON, "").strip())
        except ToolError as error:
            context["error"] = str(error)
    if person.pk != request.user.pk:
        # Before anything is read: what fails was looked at as well.
        sentence = f"Previewed as {person.get_username()}. Nothing was changed."
        model_admin.log_change(request, template, sentence)
    offers: dict[str, Sequence[tuple[str, str]]] = {}
    try:
        offers = call_as(reader(person), request, lambda _, rights: offers_of(body, rights))
    except ToolError as error:
        context["error"] = str(error)
    if may_choose:
        names = people(model_admin, request).values_list(
            get_user_model().USERNAME_FIELD, flat=True
        )
        offers[PERSON] = [(name, name) for name in names[:MOST_OFFERED]]
    form = PreviewForm(body, data, person=may_choose)
    if data is not None and "error" not in context and form.is_valid():
        context |= shown(request, template, body, person, form.given())
    return page(
        model_admin,
        request,
        "preview.html",
        title=f"Preview of {template}",
        form=form,
        person=person,
        rows=[(one, offers.get(one.name.removeprefix(PREFIX), ())) for one in form],
        **context,
    )


def offers_of(body: Body, rights: Rights) -> dict[str, Sequence[tuple[str, str]]]:
    """For arguments that are objects, some keys with what stands for each."""
    return {
        name: labelled_keys(rights, label)[:MOST_OFFERED]
        for name, label in body.contents.models.items()
    }


def shown(
    request: HttpRequest,
    template: PromptTemplate,
    body: Body,
    person: Any,
    given: Mapping[str, str],
) -> dict[str, Any]:
    groups = frozenset(template.groups.values_list("pk", flat=True))
    prompt = StoredPrompt(template, body, groups=groups)

    def work(context: CallContext, rights: Rights) -> tuple[bool, PromptResult | str]:
        try:
            return prompt.exists_for(rights), prompt.get(context, rights, given)
        except ToolError as error:
            return prompt.exists_for(rights), str(error)

    is_member, found = call_as(reader(person), request, work)
    if isinstance(found, str):
        return {"error": found, "is_member": is_member}
    blocks = [block_of(message) for message in found.messages]
    return {"blocks": blocks, "is_member": is_member}


def block_of(message: PromptMessage) -> dict[str, Any]:
    content: Content = message.content
    found: dict[str, Any] = {"role": ROLES[message.role]}
    if isinstance(content, TextContent):
        return {**found, "text": content.text}
    # Templates and addresses make nothing else.
    assert isinstance(content, EmbeddedResource)  # noqa: S101
    contents = content.contents
    size = None if contents.blob is None else len(contents.blob)
    return {
        **found,
        "uri": contents.uri,
        "mime_type": contents.mime_type,
        "text": contents.text,
        "size": size,
    }
