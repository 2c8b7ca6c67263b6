"""Fixtures with the names that the official conformance suite asks for."""

from __future__ import annotations

import base64
import time

import mcp_django as mcp

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


@mcp.tool(read_only=True, permission=everybody)
def test_simple_text() -> str:
    """Answer with a text."""
    return "This is a simple text response for testing."


@mcp.tool(read_only=True, permission=everybody)
def test_image_content() -> mcp.Image:
    """Answer with a picture."""
    return mcp.Image(data=PNG, mime_type="image/png")


@mcp.tool(read_only=True, permission=everybody)
def test_audio_content() -> mcp.Audio:
    """Answer with a sound."""
    return mcp.Audio(data=WAV, mime_type="audio/wav")


@mcp.tool(read_only=True, permission=everybody)
def test_embedded_resource() -> mcp.EmbeddedResource:
    """Answer with the contents of a resource."""
    return text("test://embedded-resource", "This is an embedded resource content.")


@mcp.tool(read_only=True, permission=everybody)
def test_multiple_content_types() -> mcp.ToolResult:
    """Answer with a text, a picture and a resource."""
    return mcp.ToolResult(
        content=[
            mcp.Text("Multiple content types test:"),
            mcp.Image(data=PNG, mime_type="image/png"),
            text("test://mixed-content-resource", "{}", mime_type="application/json"),
        ]
    )


@mcp.tool(read_only=True, permission=everybody)
def test_error_handling() -> str:
    """Fail."""
    raise mcp.ToolError("This tool intentionally returns an error for testing")


@mcp.tool(read_only=True, permission=everybody)
def test_tool_with_progress(ctx: mcp.Context) -> str:
    """Say three times how far it is."""
    for value in (0, 50, 100):
        # The suite counts three events. What comes faster than it can be sent is merged.
        time.sleep(0.05)
        ctx.progress(value, total=100, message=f"Completed step {value} of 100")
    return "Done."
