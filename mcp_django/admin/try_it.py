"""Try it: any tool or resource as oneself, from a form, through the same dispatch as a call."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.forms import CharField, Form, TextInput
from django.http import HttpRequest, HttpResponse

from mcp_django.admin.as_user import call_as
from mcp_django.admin.callers import principal_of_page
from mcp_django.admin.looking import TRY_IT, response
from mcp_django.admin.try_forms import ArgumentsForm
from mcp_django.admin.try_talks import Call, posted
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.resources import list_resources
from mcp_django.handlers.costs import every_page
from mcp_django.protocol.results import ToolDefinition

#: URIs to choose from as somebody types.
MOST_URIS = 200


class ResourceForm(Form):
    uri = CharField(
        label="URI",
        max_length=2000,
        widget=TextInput(
            attrs={"list": "mcp-uris", "autocomplete": "off", "class": "vLargeTextField"}
        ),
    )


def try_it_view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """What there is to try on GET, or the form of one tool. The call itself on POST."""
    try:
        tools, uris = call_as(principal_of_page(request), request, what_there_is)
    except ToolError as error:
        return response(TRY_IT, model_admin, request, refused=str(error))
    context: dict[str, Any] = {"tools": tools, "uris": uris, "resource_form": ResourceForm()}
    name = request.GET.get("tool")
    if name is not None:
        tool = next((one for one in tools if one.name == name), None)
        # As in a call: there is no such tool, or none for this person.
        context |= {"unknown": name} if tool is None else tool_context(request, tool)
    elif request.method == "POST":
        context |= resource_context(request)
    return response(TRY_IT, model_admin, request, **context)


def what_there_is(context: CallContext, rights: Rights) -> tuple[list[ToolDefinition], list[str]]:
    """The tools of `tools/list`, and URIs of `resources/list`, for the person at the page."""
    tools = [
        one
        for result in every_page(context)
        for one in result.definitions
        if isinstance(one, ToolDefinition)
    ]
    uris = [one.uri for one in list_resources(rights)[:MOST_URIS]]
    return tools, uris


def tool_context(request: HttpRequest, tool: ToolDefinition) -> dict[str, Any]:
    form_of = partial(ArgumentsForm, tool.input_schema)
    if request.method != "POST":
        return {"tool": tool, "form": form_of()}

    def params_of(form: ArgumentsForm) -> dict[str, Any]:
        return {"name": tool.name, "arguments": form.arguments}

    call = Call(
        method="tools/call",
        name=tool.name,
        form_of=form_of,
        params_of=params_of,
        param_headers=tool.param_headers,
    )
    return {"tool": tool, **posted(request, call)}


def resource_context(request: HttpRequest) -> dict[str, Any]:
    call = Call(
        method="resources/read",
        name="",
        form_of=ResourceForm,
        params_of=lambda form: {"uri": form.cleaned_data["uri"]},
    )
    context = posted(request, call)
    return {**context, "resource_form": context["form"]}
