"""The answer to a call as a page shows it. What it holds is text, or a picture of few kinds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcp_django.admin.try_calls import Tried
from mcp_django.exposure import confirmations
from mcp_django.exposure.permissions import Rights

#: Kinds that browsers draw and run nothing of. No SVG: it is a document with scripts.
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
#: How a token is told, in data and in sentences.
TOKEN = re.compile(rf'"{confirmations.ARGUMENT}":\s*"([^"\s]{{20,2000}})"')
#: Characters of one text, and of one picture as base64.
LONGEST_TEXT, LONGEST_PICTURE = 100_000, 3_000_000


def shown(tried: Tried, rights: Rights) -> dict[str, Any]:
    """What the template needs: `error`, or blocks, structured content and a confirmation.

    `rights` are those of the person who called.
    """
    found: dict[str, Any] = {"tried": tried, "kib": f"{tried.bytes / 1024:.1f}"}
    error = tried.message.get("error")
    if error is not None:
        return {**found, "error": str(error.get("message")), "data": pretty(error.get("data"))}
    result: dict[str, Any] = tried.message["result"]
    structured = result.get("structuredContent")
    found["is_error"] = bool(result.get("isError"))
    found["blocks"] = list(blocks_of(result, structured))
    found["structured"] = pretty(structured)
    found["confirmation"] = confirmation_in(result, rights)
    return found


def confirmation_in(result: Mapping[str, Any], rights: Rights) -> str:
    """A token that would confirm the call, or "". Some tools have it in their data, others say it
    in words. What only looks like one, in somebody's record, is none.
    """
    texts = [str(block.get("text", "")) for block in result.get("content", ())]
    for text in (json.dumps(result.get("structuredContent")), *texts):
        for token in TOKEN.findall(text):
            if confirmations.shown_by(rights, token) is not None:
                return str(token)
    return ""


def blocks_of(result: Mapping[str, Any], structured: Any) -> Iterator[dict[str, Any]]:
    for block in result.get("content", ()):
        # Most tools say the same twice, for programs and for models.
        if block.get("type") != "text" or not is_json_of(block.get("text"), structured):
            yield block_of(block)
    for contents in result.get("contents", ()):
        yield contents_block(contents)


def block_of(block: Mapping[str, Any]) -> dict[str, Any]:
    match block.get("type"):
        case "text":
            return text_block("Text", str(block["text"]))
        case "image":
            return binary_block("Image", block.get("mimeType"), str(block["data"]))
        case "audio":
            return binary_block("Audio", block.get("mimeType"), str(block["data"]))
        case "resource":
            return contents_block(block["resource"])
    return text_block(str(block.get("type"))[:40], pretty(block))


def contents_block(contents: Mapping[str, Any]) -> dict[str, Any]:
    title = f"{contents.get('uri')} ({contents.get('mimeType')})"
    if "blob" in contents:
        return binary_block(title, contents.get("mimeType"), str(contents["blob"]))
    text = str(contents.get("text", ""))
    is_json = contents.get("mimeType") == "application/json"
    return text_block(title, reindented(text) if is_json else text)


def text_block(title: str, text: str) -> dict[str, Any]:
    return {"title": title, "text": cut(text)}


def binary_block(title: str, mime_type: Any, data: str) -> dict[str, Any]:
    size = len(data) * 3 // 4 - data.count("=", -2)
    found: dict[str, Any] = {"title": title, "note": f"{size} bytes of {mime_type}"}
    if mime_type in PICTURES and len(data) <= LONGEST_PICTURE:
        found["source"] = f"data:{mime_type};base64,{data}"
    return found


def is_json_of(text: Any, value: Any) -> bool:
    if value is None or not isinstance(text, str):
        return False
    try:
        return bool(json.loads(text) == value)
    except ValueError:
        return False


def reindented(text: str) -> str:
    try:
        return pretty(json.loads(text))
    except ValueError:
        return text


def pretty(value: Any) -> str:
    return "" if value is None else cut(json.dumps(value, indent=2, ensure_ascii=False))


def cut(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}\n… and {len(text) - LONGEST_TEXT} more characters."
