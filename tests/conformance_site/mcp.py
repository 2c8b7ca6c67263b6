"""Fixtures with the names that the official conformance suite asks for."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import msgspec
from django import forms

import mcp_django as mcp
from mcp_django.exposure import registry as names
from mcp_django.exposure.registry import registry

#: The suite calls its tools longer names than a site may give, for the sake of clients.
names.TOOL_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
#: A picture of one red pixel.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
#: A sound of no samples.
WAV = base64.b64decode("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=")


def everybody(request: object) -> bool:
    return True


def text(uri: str, content: str, *, mime_type: str = "text/plain") -> mcp.EmbeddedResource:
    return mcp.EmbeddedResource(
        contents=mcp.ResourceContents(uri=uri, mime_type=mime_type, text=content)
    )


reading = partial(mcp.tool, read_only=True, permission=everybody)
asking = partial(reading, asks=True)
IMAGE = mcp.Image(data=PNG, mime_type="image/png")
#: By the name of a tool: what it answers with.
ANSWERS = {
    "test_simple_text": mcp.Text("This is a simple text response for testing."),
    "test_image_content": IMAGE,
    "test_audio_content": mcp.Audio(data=WAV, mime_type="audio/wav"),
    "test_embedded_resource": text(
        "test://embedded-resource", "This is an embedded resource content."
    ),
    "test_multiple_content_types": [
        mcp.Text("Multiple content types test:"),
        IMAGE,
        text("test://mixed-content-resource", "{}", mime_type="application/json"),
    ],
    "test_logging_tool": mcp.Text("Logged nothing."),
}


def answering(name: str) -> Callable[[], mcp.ToolResult]:
    answer = ANSWERS[name]
    return lambda: mcp.ToolResult(content=answer if isinstance(answer, list) else [answer])


for name in ANSWERS:
    reading(name=name, description="Answer with the same each time.")(answering(name))


@reading()
def test_error_handling() -> str:
    """Fail."""
    raise mcp.ToolError("This tool intentionally returns an error for testing")


@reading()
def test_tool_with_progress(ctx: mcp.Context) -> str:
    """Say three times how far it is."""
    for value in (0, 50, 100):
        # The suite counts three events. What comes faster than a busy machine sends is merged.
        time.sleep(0.2)
        ctx.progress(value, total=100, message=f"Completed step {value} of 100")
    return "Done."


@reading(
    name="json_schema_2020_12_tool",
    description="Take what a schema of 2020-12 describes.",
    input_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)
def schema_of_2020_12(arguments: dict[str, Any]) -> str:
    return f"Took {len(arguments)} arguments."


@reading()
def test_x_mcp_header(
    region: Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})],
) -> str:
    """Take an argument that a header repeats."""
    return f"Region {region}."


@mcp.resource(
    "test://static-text", permission=everybody, mime_type="text/plain", name="static-text"
)
def static_text() -> str:
    """A text that never changes."""
    return "This is the content of the static text resource."


@mcp.resource(
    "test://static-binary", permission=everybody, mime_type="image/png", name="static-binary"
)
def static_binary() -> bytes:
    """A picture that never changes."""
    return PNG


@mcp.resource(
    "test://template/{id}/data",
    permission=everybody,
    mime_type="application/json",
    name="template",
)
def template_data(id: str) -> dict[str, Any]:
    """Data by its number."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@mcp.resource("test://watched-resource", permission=everybody, name="watched-resource")
def watched_resource() -> str:
    """A text that somebody might watch."""
    return "Watched."


@mcp.prompt(permission=everybody)
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@mcp.prompt(permission=everybody)
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments.

    Args:
        arg1: The first.
        arg2: The second.
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@mcp.prompt(permission=everybody)
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:
    """A prompt with the contents of a resource.

    Args:
        resourceUri: Where the resource is.
    """
    return [
        text(resourceUri, "Embedded resource content for testing."),
        "Please process the embedded resource above.",
    ]


@mcp.prompt(permission=everybody)
def test_prompt_with_image() -> list[Any]:
    """A prompt with a picture."""
    return [IMAGE, "Please look at the picture above."]


@reading()
def test_tool_with_logging(ctx: mcp.Context) -> str:
    """Say three things to the log of the client."""
    for step in ("execution started", "processing data", "execution completed"):
        ctx.log("info", f"Tool {step}")
        time.sleep(0.05)
    return "Logged."


@reading()
def test_reconnection(ctx: mcp.Context) -> str:
    """Close the stream, and answer when the client is back."""
    ctx.close_stream(retry=50)
    time.sleep(0.2)
    return "Reconnected."


def passing() -> str:
    """Here for a moment."""
    return "Here."


@reading()
def test_trigger_tool_change() -> str:
    """Add a tool and take it back."""
    reading(name="test_passing_tool")(passing)
    registry.remove("tool", "test_passing_tool")
    return "Changed."


@reading()
def test_trigger_prompt_change() -> str:
    """Add a prompt and take it back."""
    mcp.prompt(permission=everybody, name="test_passing_prompt")(passing)
    registry.remove("prompt", "test_passing_prompt")
    return "Changed."


# Questions


def form_of(name: str, field: forms.Field | None = None) -> type[forms.Form]:
    return type("AskedForm", (forms.Form,), {name: field or forms.CharField()})


NameForm, ColorForm, ContextForm = map(form_of, ("name", "color", "context"))
OkForm = form_of("ok", forms.BooleanField())


class AccountForm(forms.Form):
    username = forms.CharField(help_text="User's response")
    email = forms.EmailField(help_text="User's email address")


class DefaultsForm(forms.Form):
    name = forms.CharField(initial="John Doe")
    age = forms.IntegerField(initial=30)
    score = forms.FloatField(initial=95.5)
    status = forms.ChoiceField(
        choices=[(one, one) for one in ("active", "inactive", "pending")], initial="active"
    )
    verified = forms.BooleanField(initial=True, required=False)


PLAIN = [(f"option{n}", f"option{n}") for n in (1, 2, 3)]
TITLED = [(f"value{n}", title) for n, title in enumerate(("First", "Second", "Third"), 1)]


class LegacyChoice(forms.ChoiceField):
    """Titles as they were before 2025-11-25, which that revision still takes."""

    mcp_schema = {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    }


class EnumsForm(forms.Form):
    untitledSingle = forms.ChoiceField(choices=PLAIN)
    titledSingle = forms.ChoiceField(choices=TITLED)
    legacyEnum = LegacyChoice(choices=[(f"opt{n}", f"Option {n}") for n in (1, 2, 3)])
    untitledMulti = forms.MultipleChoiceField(choices=PLAIN)
    titledMulti = forms.MultipleChoiceField(choices=TITLED)


@asking()
def test_sampling(ctx: mcp.Context, prompt: str) -> str:
    """Have the client's model write something."""
    return f"LLM response: {ctx.sample('prompt', prompt, max_tokens=100).text}"


@asking()
def test_elicitation(ctx: mcp.Context, message: str) -> str:
    """Ask for an account."""
    return f"User response: {ctx.ask('account', AccountForm, message)}"


@asking()
def test_elicitation_sep1034_defaults(ctx: mcp.Context) -> str:
    """Ask with a form that is filled in already."""
    return f"Elicitation completed: {ctx.ask('defaults', DefaultsForm, 'Please check.')}"


@asking()
def test_elicitation_sep1330_enums(ctx: mcp.Context) -> str:
    """Ask with every kind of choice."""
    return f"Elicitation completed: {ctx.ask('enums', EnumsForm, 'Please choose.')}"


@asking(name="test_streaming_elicitation")
@asking()
def test_input_required_result_elicitation(ctx: mcp.Context) -> str:
    """Ask for a name."""
    return f"Hello, {ctx.ask('user_name', NameForm, 'What is your name?')['name']}!"


@asking(name="test_missing_capability")
@asking()
def test_input_required_result_sampling(ctx: mcp.Context) -> str:
    """Ask the client's model."""
    return ctx.sample("capital_question", "What is the capital of France?", max_tokens=100).text


@asking()
def test_input_required_result_list_roots(ctx: mcp.Context) -> str:
    """Ask which folders there are."""
    return ", ".join(root.uri for root in ctx.roots("client_roots"))


@asking()
def test_input_required_result_request_state(ctx: mcp.Context) -> str:
    """Ask for a tick."""
    ctx.ask("confirm", OkForm, "Please confirm")
    return "state-ok"


@asking()
def test_input_required_result_multiple_inputs(ctx: mcp.Context) -> str:
    """Ask for a name, a greeting and folders at once."""
    with ctx.together():
        asked = ctx.ask("user_name", NameForm, "What is your name?")
        greeting = ctx.sample("greeting", "Generate a greeting", max_tokens=50)
        roots = ctx.roots("client_roots")
    return f"{greeting.text} {asked['name']} in {len(roots)} folders."


@asking()
def test_input_required_result_multi_round(ctx: mcp.Context) -> str:
    """Ask for a name, and then for a color."""
    name = ctx.ask("step1", NameForm, "Step 1: What is your name?")["name"]
    color = ctx.ask("step2", ColorForm, "Step 2: What is your favorite color?")["color"]
    return f"{name} likes {color}."


@asking()
def test_input_required_result_tampered_state(ctx: mcp.Context) -> str:
    """Go on after a tick only."""
    ctx.confirm("Please confirm")
    return "Confirmed."


@asking()
def test_input_required_result_capabilities(ctx: mcp.Context) -> str:
    """Ask in the ways that the client knows."""
    answers = []
    with ctx.together():
        if ctx.can_ask:
            answers.append(ctx.ask("user_name", NameForm, "What is your name?"))
        if ctx.can_sample:
            answers.append(ctx.sample("greeting", "Generate a greeting", max_tokens=50))
    return f"{len(answers)} answers."


@mcp.prompt(permission=everybody, asks=True)
def test_input_required_result_prompt(ctx: mcp.Context) -> str:
    """A prompt that asks for its context."""
    asked = ctx.ask("user_context", ContextForm, "What context should the prompt use?")
    return f"Answer in the context: {asked['context']}"
