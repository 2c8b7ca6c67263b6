"""A request that the views of the admin cannot tell from a browser's, and what they say to it."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.contrib.admin import ModelAdmin
from django.contrib.admin.utils import quote
from django.contrib.messages import constants
from django.contrib.messages.storage.base import BaseStorage
from django.http import HttpRequest, QueryDict
from django.urls import Resolver404, get_script_prefix, resolve, reverse
from django.utils.datastructures import MultiValueDict
from django.utils.html import strip_tags
from django.utils.safestring import SafeData

from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound
from mcp_django.exposure.memory_sessions import EmptySession
from mcp_django.exposure.permissions import Rights

Pairs: TypeAlias = Iterable[tuple[str, str]]

#: Facts of the HTTP request around the call that are none of the request inside it.
OUTER = (
    "CONTENT_TYPE",
    "CONTENT_LENGTH",
    "HTTP_CONTENT_TYPE",
    "HTTP_CONTENT_LENGTH",
    "HTTP_COOKIE",
    "HTTP_ORIGIN",
    "HTTP_REFERER",
    "HTTP_ACCEPT",
)
#: What belongs to the request around the call, among the attributes that middleware sets.
NOT_CARRIED = ("scope", "resolver_match", "urlconf_name", "session", "_messages", "headers")


class AdminRequest(HttpRequest):
    """Made inside a call. `mcp` is the context of that call, which no browser's request has."""

    mcp: CallContext
    _dont_enforce_csrf_checks = True
    #: The parts of a body are in POST and FILES; there are no bytes to read.
    _body = b""

    def _get_scheme(self) -> str | None:
        return self.mcp.request.scheme


@dataclass(frozen=True, kw_only=True)
class Said:
    """One message of the messages framework as plain text."""

    level: int
    text: str

    @property
    def level_name(self) -> str:
        return constants.DEFAULT_TAGS.get(self.level, str(self.level))

    @property
    def is_error(self) -> bool:
        return self.level >= constants.ERROR


class Recorder(BaseStorage):
    """Keeps what was said, even what a page has shown already: rendering empties the queue."""

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request)
        self.said: list[Said] = []

    def add(self, level: int, message: Any, extra_tags: str | None = "") -> None:
        if message and int(level) >= self.level:
            self.said.append(Said(level=int(level), text=plain_text(message)))
        super().add(level, message, extra_tags)

    def _get(self, *args: Any, **kwargs: Any) -> tuple[list[Any], bool]:
        return [], True

    def _store(self, messages: Any, response: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return []


def without_reports(said: Sequence[Said], shown: str) -> list[Said]:
    """Without the admin's own reports of success: they hold the `str()` of the record, which may
    tell more than this caller can read.
    """
    return [one for one in said if one.level_name != "success" or shown not in one.text]


def plain_text(value: Any) -> str:
    """What a person would read: HTML without its tags, anything else as it is."""
    written = str(value)
    if isinstance(value, SafeData) or isinstance(written, SafeData):
        written = html.unescape(strip_tags(written))
    return " ".join(written.split())


def admin_request(
    context: CallContext,
    rights: Rights,
    model_admin: ModelAdmin[Any],
    *,
    path: str,
    data: Pairs | None = None,
    files: Mapping[str, Any] | None = None,
    query: str = "",
) -> tuple[AdminRequest, Recorder]:
    """A GET, or with `data` or `files` a POST, to `path` of the site that has `model_admin`.

    What middleware put on the request of the call is there, too: a tenant, a language. The
    session is new and empty; give a later request the session of an earlier one if a page needs
    it. Raises NotFound where the admin site does not let the user in: its views do not ask.
    """
    request = AdminRequest()
    carry(rights.request, request)
    request.mcp = context
    request.method = "GET" if data is None and files is None else "POST"
    request.path = path
    request.path_info = "/" + path.removeprefix(get_script_prefix())
    request.META = environment(rights.request, request, query)
    request.GET = QueryDict(query)
    request.POST = posted(data or ())
    request.FILES = MultiValueDict({name: [file] for name, file in (files or {}).items()})
    request.session = EmptySession()
    recorder = request._messages = Recorder(request)  # type: ignore[attr-defined]
    try:
        # Inlines and formfield_for_foreignkey read the pk from here.
        request.resolver_match = resolve(request.path_info)
    except Resolver404:
        request.resolver_match = None
    if not model_admin.admin_site.has_permission(request):
        raise NotFound("There is no such page for you.")
    return request, recorder


def carry(outer: HttpRequest, inner: HttpRequest) -> None:
    """Take over what middleware and authentication set: user, tenant, language, site."""
    own = vars(inner).keys() | vars(HttpRequest()).keys()
    for name, value in vars(outer).items():
        if name not in own and name not in NOT_CARRIED and not name.startswith("_"):
            setattr(inner, name, value)


def environment(outer: HttpRequest, inner: HttpRequest, query: str) -> dict[str, Any]:
    known = {name: value for name, value in outer.META.items() if name not in OUTER}
    return {
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        **known,
        "REQUEST_METHOD": inner.method,
        # `each_context` needs it, and a lesser request may lack it.
        "SCRIPT_NAME": get_script_prefix().rstrip("/"),
        "PATH_INFO": inner.path_info,
        "QUERY_STRING": query,
    }


def posted(data: Pairs) -> Any:
    found = QueryDict(mutable=True)
    for name, value in data:
        found.appendlist(name, value)
    found._mutable = False
    return found


def own_copy(model_admin: ModelAdmin[Any]) -> Any:
    """A copy for one call, to replace methods on. The registered one is shared by all threads."""
    return copy(model_admin)


def path_of(model_admin: ModelAdmin[Any], page: str, key: Any = None) -> str:
    """The path of a page of one model: "add" and "changelist", or with a key "change", "delete".

    Raises NoReverseMatch where the project's URLs do not have the site.
    """
    opts, site = model_admin.opts, model_admin.admin_site
    # A bare integer would break `unquote` in the view.
    args = () if key is None else (quote(str(key)),)
    name = f"admin:{opts.app_label}_{opts.model_name}_{page}"
    return reverse(name, args=args, current_app=site.name)
