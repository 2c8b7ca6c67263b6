"""Actions of the admin run as the admin runs them: through its views, for the user of a call.

The views work on a copy of the ModelAdmin that is made for the call, since the registered one is
shared by all threads.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from email.message import Message
from functools import partial
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urljoin, urlsplit

from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.db import connections, router, transaction
from django.forms import BooleanField
from django.http import Http404
from django.urls import reverse

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import Cancelled, NotFound, ToolError
from mcp_django.exposure.admin_bridge.compat import AdminAction, Place, shown_buttons
from mcp_django.exposure.admin_bridge.requests import (
    AdminRequest,
    CapturedMessage,
    Recorder,
    admin_request,
    page_match,
    path_of,
    signed_copy,
    site_failure,
)
from mcp_django.exposure.admin_bridge.rights import tolerant
from mcp_django.exposure.forms.values import Pair
from mcp_django.exposure.permissions import Rights
from mcp_django.protocol.content import EmbeddedResource, ResourceContents
from mcp_django.protocol.uri_templates import encode

# What the admin answered to an action: read as a person would, who sees a page or gets a file.

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
        made = partial(ResourceContents, uri=uri, mime_type=self.mime_type)
        if self.mime_type.startswith("text/") or self.mime_type in TEXTS:
            # It may say that it is text and be in another encoding.
            with suppress(UnicodeDecodeError, LookupError):
                return EmbeddedResource(contents=made(text=self.content.decode(self.charset)))
        # base64 is a third longer than what it carries.
        check_size(self.content, get_config().max_response * 3 // 4)
        return EmbeddedResource(contents=made(blob=self.content))


@dataclass(frozen=True, kw_only=True)
class AdminAnswer:
    kind: Kind
    messages: Sequence[CapturedMessage] = ()
    link: str = ""
    file: File | None = None
    #: The HTML of a page, and what it was made from where that is known.
    html: str = ""
    context: dict[str, Any] = field(default_factory=dict)

    @property
    def is_error(self) -> bool:
        return self.kind is Kind.NOT_DONE or any(one.is_error for one in self.messages)


def read_answer(response: Any, request: AdminRequest, *, ran: bool, home: str) -> AdminAnswer:
    """Understand a response. `ran` says whether the action was reached, `home` is where the admin
    goes when it is done. Raises ToolError for a file that is too long to be sent.
    """
    if 300 <= response.status_code < 400 and response.get("Location"):
        if not ran:
            return AdminAnswer(kind=Kind.NOT_DONE)
        target = urljoin(request.path, response["Location"])
        parts = urlsplit(target)
        # Not `get_host`: the request of a local program may come from nowhere.
        is_here = parts.netloc in ("", request.META.get("HTTP_HOST", ""))
        if is_here and parts.path.rstrip("/") in (request.path.rstrip("/"), home.rstrip("/")):
            return AdminAnswer(kind=Kind.DONE)
        return AdminAnswer(kind=Kind.LINK, link=urljoin(get_config().public_url, target))
    if response.status_code >= 400:
        raise ToolError(
            f"The admin answered with the status {response.status_code} and did not finish this."
        )
    kind = response.get("Content-Type", "").partition(";")[0].strip().lower()
    is_attached = response.get("Content-Disposition", "").startswith("attachment")
    if response.streaming or is_attached or kind not in PAGES:
        return AdminAnswer(kind=Kind.FILE, file=read_file(response, request, kind))
    # Rendering is lazy, and takes messages out of the queue when the template shows them.
    if hasattr(response, "render"):
        response.render()
    html = response.content.decode(response.charset, "replace")
    context = dict(getattr(response, "context_data", None) or {})
    return AdminAnswer(kind=Kind.PAGE, html=html, context=context)


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


#: Names of keys in a sentence.
MOST_KEYS = 20
#: The form of a menu, which only the admin fills in.
MENU = frozenset({"action", "index", "select_across", ACTION_CHECKBOX_NAME, "csrfmiddlewaretoken"})
#: Reads a text as `select_across` of that form is read.
is_ticked = BooleanField(required=False).to_python


@dataclass(eq=False)
class ActionRun:
    """One action on some records, from choosing it in the menu to sending its page.

    Nothing is done unless every record is one that the admin would give to the action.
    """

    context: CallContext
    rights: Rights
    model_admin: ModelAdmin[Any]
    action: AdminAction
    given: Sequence[Any]
    missing: Sequence[str] = ()
    ran: bool = False
    _session: Any = None

    @property
    def keys(self) -> list[str]:
        return [str(key) for key in self.given]

    def start(self, extra: Sequence[Pair] = ()) -> AdminAnswer:
        """Choose the action. `extra` are more fields of the menu's form.

        Raises ToolError where the admin refuses, or fails.
        """
        if self.action.place in (Place.RECORD_BUTTON, Place.MODEL_BUTTON):
            opts, site = self.model_admin.opts, self.model_admin.admin_site
            name = f"admin:{opts.app_label}_{opts.model_name}_actions"
            args = [*map(quote, self.keys), self.action.name]
            path = reverse(name, args=args, current_app=site.name)
            return self._post(path, [], self._press, ran=True)
        menu = [("select_across", "0"), ("action", self.action.name), ("index", "0")]
        if self.action.place is Place.CHANGE_FORM:
            menu = [(f"CHANGE_FORM-{name}", value) for name, value in menu[:2]]
        chosen = [(ACTION_CHECKBOX_NAME, key) for key in self.keys]
        return self._post(self.home, [*menu, *chosen, *extra], self._view)

    def send(self, path: str, data: Sequence[Pair], files: Mapping[str, Any]) -> AdminAnswer:
        """Send a page that the action showed, with the session that it was made in.

        Raises ToolError for a page that acts on more records than were named, or that leads out
        of this admin.
        """
        if path == self.home:
            # What the form of the menu reads as true: a template may write "True" or "on".
            if any(name == "select_across" and is_ticked(value) for name, value in data):
                raise ToolError("The page would act on more records than you named.")
            chosen = [value for name, value in data if name == ACTION_CHECKBOX_NAME]
            if not set(chosen) <= set(self.keys):
                raise ToolError("The page would act on other records than you named.")
            return self._post(path, data, self._view, files=files)
        match = page_match(path)
        if match is None or match.namespace != self.model_admin.admin_site.name:
            raise ToolError("The page leads out of this admin. Run the action in a browser.")
        return self._post(path, data, self._routed, files=files, ran=True)

    @property
    def home(self) -> str:
        """The page that the action is chosen on."""
        if self.action.place in (Place.CHANGE_FORM, Place.RECORD_BUTTON):
            return path_of(self.model_admin, "change", self.keys[0])
        return path_of(self.model_admin, "changelist")

    def _view(self, request: AdminRequest) -> Any:
        one_call = signed_copy(self.model_admin, self.context)
        respond = one_call.response_action

        def response_action(request: AdminRequest, queryset: Any, **options: Any) -> Any:
            # The admin drops what its filters hide without a word, and reports that all is done.
            chosen = request.POST.getlist(ACTION_CHECKBOX_NAME)
            found = queryset.filter(pk__in=chosen).values_list("pk", flat=True)
            known = {str(key) for key in found}
            self.missing = [key for key in chosen if key not in known]
            if self.missing:
                raise not_found(self.missing)
            response = respond(request, queryset, **options)
            self.ran = response is not None
            return response

        one_call.response_action = response_action
        if self.action.place is Place.CHANGE_FORM:
            return one_call.change_view(request, quote(self.keys[0]))
        return one_call.changelist_view(request)

    def _press(self, request: AdminRequest) -> Any:
        """A button with a URL of its own. Its view asks for no more than to be staff."""
        for key in self.keys:
            if not self.model_admin.get_queryset(request).filter(pk=key).exists():
                self.missing = [key]
                raise not_found(self.missing)
            shown = shown_buttons(self.model_admin, request, self.action.place, key)
            if self.action.name not in shown:
                raise ToolError(f"The admin does not offer this for {key}. Nothing was done.")
        if "POST" not in getattr(self.action.function, "methods", ("POST",)):
            request.method = "GET"
        return self._routed(request)

    def _routed(self, request: AdminRequest) -> Any:
        """What the view answers that the URLs of the project have at the path."""
        match: Any = request.resolver_match
        return match.func(request, *match.args, **match.kwargs)

    def _post(
        self,
        path: str,
        data: Sequence[Pair],
        view: Callable[[AdminRequest], Any],
        *,
        files: Mapping[str, Any] | None = None,
        ran: bool = False,
    ) -> AdminAnswer:
        self.ran = ran
        request, recorder = admin_request(
            self.context, self.rights, self.model_admin, path=path, data=data, files=files
        )
        if self._session is not None:
            request.session = self._session
        self._session = request.session
        try:
            with ExitStack() as stack:
                for alias in self.transactions():
                    stack.enter_context(transaction.atomic(using=alias))
                return self._answer(request, recorder, view)
        except (ToolError, Cancelled):
            raise
        except (PermissionDenied, Http404):
            raise NotFound("The admin does not let you do this.") from None
        except Exception as error:
            if self.missing:
                raise not_found(self.missing) from None
            # The view of the change form has a transaction of its own.
            is_undone = (
                self.action.place is Place.CHANGE_FORM
                or router.db_for_write(self.model_admin.model) in self.transactions()
            )
            raise site_failure(
                f"The action {self.action.name} of {self.model_admin.opts.label_lower}",
                "What it did in the database was taken back."
                if is_undone
                else "It may have been done in part: check before you repeat it.",
            ) from error

    def _answer(
        self, request: AdminRequest, recorder: Recorder, view: Callable[[AdminRequest], Any]
    ) -> AdminAnswer:
        response = view(request)
        if self.missing:  # and code of the site has taken our exception for its own
            raise not_found(self.missing)
        try:
            answer = read_answer(response, request, ran=self.ran, home=self.home)
        finally:
            # Not `response.close()`: it sends request_finished, on which Django closes the
            # connections of this thread in the middle of the call.
            for close in getattr(response, "_resource_closers", ()):
                with tolerant("What an action answered could not be closed."):
                    close()
        if answer.kind is Kind.PAGE and not self.ran:
            raise ToolError("The admin did not run the action, and does not say why.")
        return replace(answer, messages=recorder.messages)

    def transactions(self) -> list[str]:
        """The databases that one transaction spans: as Django chooses them for views, and the
        one of the model where the action has `mcp_atomic`.
        """
        is_atomic = bool(getattr(self.action.function, "mcp_atomic", False))
        own = router.db_for_write(self.model_admin.model)
        return [
            alias
            for alias in connections
            if connections.settings[alias]["ATOMIC_REQUESTS"] or (is_atomic and alias == own)
        ]


def not_found(keys: Sequence[str]) -> NotFound:
    """The same for records that are absent, left out by the admin, or somebody else's."""
    named = ", ".join(ascii(key)[1:-1][:60] for key in keys[:MOST_KEYS])
    more = f" and {len(keys) - MOST_KEYS} more" if len(keys) > MOST_KEYS else ""
    return NotFound(
        f"Not found: {named}{more}. Nothing was done. Leave them out, or look with find_records "
        "which records there are."
    )
