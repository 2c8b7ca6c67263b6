from __future__ import annotations

import base64
import json

from hypothesis import given
from hypothesis import strategies as st

from mcp_django.protocol.content import AudioContent, ImageContent
from mcp_django.protocol.jsonrpc import encode_result
from mcp_django.protocol.render import ServerInfo, render
from mcp_django.protocol.results import ToolResult
from mcp_django.protocol.revisions import Revision
from tests.oracle import assert_valid_result
from tests.spec import requirement

SERVER = ServerInfo(name="Shop", version="1")


def wire(result, revision):
    """The result as a peer reads it, which the revision knows."""
    found = json.loads(encode_result(1, render(result, revision, SERVER)))["result"]
    assert_valid_result(revision, "tools/call", found)
    return found


@requirement("tools:content", "render:content-blocks")
@given(st.binary())
def test_pictures_and_sound_are_base64_with_their_type_in_every_revision(data):
    image = ImageContent(data=data, mime_type="image/png")
    audio = AudioContent(data=data, mime_type="audio/wav")
    encoded = base64.b64encode(data).decode()

    for revision in Revision:
        first, second = wire(ToolResult(content=[image, audio]), revision)["content"]
        assert first == {"type": "image", "data": encoded, "mimeType": "image/png"}
        if revision.features.audio:
            assert second == {"type": "audio", "data": encoded, "mimeType": "audio/wav"}
        else:
            assert second["type"] == "resource"
            assert second["resource"]["blob"] == encoded
            assert second["resource"]["mimeType"] == "audio/wav"


@requirement("tools:content")
def test_a_result_without_any_content_has_an_empty_list_of_it(revision):
    assert wire(ToolResult(), revision)["content"] == []
