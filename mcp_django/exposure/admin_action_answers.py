"""What the admin answered to an action: read as a person would, who sees a page or gets a file."""

from __future__ import annotations

import enum
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from email.message import Message
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urljoin, urlsplit

from mcp_django.conf import get_config
from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_requests import AdminRequest, Said
from mcp_django.protocol.content import EmbeddedResource, ResourceContents
from mcp_django.protocol.uri_templates import encode

logger = logging.getLogger("mcp_django")

#: What a browser shows as a page.
PAGES = frozenset({"text/html", "application/xhtml+xml"})
#: What travels as text beside text/*.
TEXTS = frozenset({"application/json", "application/xml", "application/yaml"})
LONGEST_FILE_NAME = 100


class Kind(enum.Enum):
    #: The admin ran the action and went back to where the person came from.
    DONE = "done"
    #: The admin did not run it, and the messages say why.
    NOT_DONE = "not_done"
    #: It ran, and sends the person to another address.
    LINK = "link"
    FILE = "file"
    #: A page with a question, or one to be read.
    PAGE = "page"


@dataclass(frozen=True, kw_only=True)
class File:
    name: str
    mime_type: str
    content: bytes
    charset: str

    def embedded(self, uri: str) -> EmbeddedResource:
        """Text where it is text, so that models can read it."""
        uri = f"{uri}/{encode(self.name)}"
        if self.mime_type.startswith("text/") or self.mime_type in TEXTS:
            try:
                text = self.content.decode(self.charset)
            except (UnicodeDecodeError, LookupError):
                pass  # it says that it is text and is in another encoding
            else:
                kind = self.mime_type
                return EmbeddedResource(
                    contents=ResourceContents(uri=uri, mime_type=kind, text=text)
                )
        # base64 is a third longer than what it carries.
        check_size(self.content, get_config().max_response * 3 // 4)
        return EmbeddedResource(
            contents=ResourceContents(uri=uri, mime_type=self.mime_type, blob=self.content)
        )


@dataclass(frozen=True, kw_only=True)
class AdminAnswer:
    kind: Kind
    said: Sequence[Said] = ()
    link: str = ""
    file: File | None = None
    #: The HTML of a page, and what it was made from where that is known.
    html: str = ""
    context: dict[str, Any] = field(default_factory=dict)

    @property
    def is_error(self) -> bool:
        return self.kind is Kind.NOT_DONE or any(one.is_error for one in self.said)


def read_answer(
    response: Any, request: AdminRequest, said: Sequence[Said], *, ran: bool, home: str
) -> AdminAnswer:
    """Understand a response. `ran` says whether the action was reached, `home` is where the admin
    goes when it is done. Raises ToolError for a file that is too long to be sent.
    """
    # Never `response.close()`: it sends request_finished, on which Django closes the connections
    # of this thread in the middle of the call.
    with ExitStack() as stack:
        for close in getattr(response, "_resource_closers", ()):
            stack.callback(closed_quietly, close)
        return understood(response, request, said, ran=ran, home=home)


def closed_quietly(close: Any) -> None:
    try:
        close()
    except Exception:
        logger.exception("What an action answered could not be closed.")


def understood(
    response: Any, request: AdminRequest, said: Sequence[Said], *, ran: bool, home: str
) -> AdminAnswer:
    if 300 <= response.status_code < 400 and response.get("Location"):
        if not ran:
            return AdminAnswer(kind=Kind.NOT_DONE, said=said)
        target = urljoin(request.path, response["Location"])
        if is_at_home(target, request, home):
            return AdminAnswer(kind=Kind.DONE, said=said)
        return AdminAnswer(kind=Kind.LINK, said=said, link=absolute(target))
    if response.status_code >= 400:
        raise ToolError(
            f"The admin answered with the status {response.status_code} and did not finish this."
        )
    kind = response.get("Content-Type", "").partition(";")[0].strip().lower()
    is_attached = response.get("Content-Disposition", "").startswith("attachment")
    if response.streaming or is_attached or kind not in PAGES:
        return AdminAnswer(kind=Kind.FILE, said=said, file=read_file(response, request, kind))
    # Rendering is lazy, and takes messages out of the queue when the template shows them.
    if hasattr(response, "render"):
        response.render()
    html = response.content.decode(response.charset, "replace")
    context = dict(getattr(response, "context_data", None) or {})
    return AdminAnswer(kind=Kind.PAGE, said=said, html=html, context=context)


def is_at_home(target: str, request: AdminRequest, home: str) -> bool:
    parts = urlsplit(target)
    # Not `get_host`: the request of a local program may come from nowhere.
    is_here = parts.netloc in ("", request.META.get("HTTP_HOST", ""))
    return is_here and parts.path.rstrip("/") in (request.path.rstrip("/"), home.rstrip("/"))


def absolute(target: str) -> str:
    return urljoin(get_config().public_url or "", target)


def read_file(response: Any, request: AdminRequest, kind: str) -> File:
    """The content as far as it may be sent; a stream that goes on beyond that ends there."""
    if getattr(response, "is_async", False):
        raise ToolError("The action answers with an asynchronous stream. Run it in the admin.")
    longest = get_config().max_response
    content = bytearray()
    for chunk in response:
        request.mcp.check()
        content += chunk
        check_size(content, longest)
    return File(
        name=file_name(response),
        mime_type=kind or "application/octet-stream",
        content=bytes(content),
        charset=response.charset,
    )


def check_size(content: bytes | bytearray, longest: int) -> None:
    if len(content) > longest:
        raise ToolError(
            f"The action made a file of more than {longest} bytes, which is too long to be sent. "
            "Choose fewer records."
        )


def file_name(response: Any) -> str:
    parsed = Message()
    parsed["Content-Disposition"] = response.get("Content-Disposition", "")
    given = (parsed.get_filename() or "").replace("\\", "/")
    name = "".join(one for one in PurePosixPath(given).name if one.isprintable())
    return name[-LONGEST_FILE_NAME:] or "answer"
