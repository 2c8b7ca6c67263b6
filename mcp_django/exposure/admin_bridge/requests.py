"""A request that looks to the views of the admin like that of a browser, and their messages."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urljoin, urlsplit

from django.conf import settings
from django.contrib.admin import ModelAdmin
from django.contrib.admin.utils import quote
from django.contrib.messages import constants
from django.contrib.messages.storage.base import BaseStorage
from django.http import HttpRequest
from django.urls import (
    NoReverseMatch,
    Resolver404,
    ResolverMatch,
    get_script_prefix,
    get_urlconf,
    resolve,
    reverse,
)
from django.utils.datastructures import MultiValueDict
from django.utils.translation import get_language

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import Cancelled, NotFound, ToolError
from mcp_django.exposure.forms.values import Pair, query_dict
from mcp_django.exposure.functions.results import refusals_in_words
from mcp_django.exposure.limits import raise_lost_database
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.serializers import plain_text
from mcp_django.exposure.request_attributes import EmptySession

logger = logging.getLogger("mcp_django")

# The admin's log says that an assistant did it, and which.

LONGEST_NAME = 60
#: What the name of the client follows.
NOTE = "through an assistant: "


def signed_copy(model_admin: Any, context: CallContext) -> Any:
    """A copy of a ModelAdmin for one call, whose log entries name the client.

    What the admin writes stays as it is, and a note follows, which packages hear as well that
    override these methods. Entries of deletions get theirs from `sign_entry` alone: the admin
    gives them no text. The registered ModelAdmin is shared by all threads, so methods are only
    ever replaced on a copy.
    """
    one_call = copy(model_admin)
    note = f"{NOTE}{client_name(context)}"

    def signed(log: Any) -> Any:
        def logged(request: HttpRequest, obj: Any, message: Any) -> Any:
            if isinstance(message, list):
                # The admin's own words, which it translates when somebody reads them.
                message = [*message, {"added": {"name": "note", "object": note}}]
            else:
                message = f"{message} ({note})"
            one_call.mcp_entry = log(request, obj, message)
            return one_call.mcp_entry

        return logged

    one_call.log_addition = signed(one_call.log_addition)
    one_call.log_change = signed(one_call.log_change)
    return one_call


def client_name(context: CallContext) -> str:
    """The connected program, as it calls itself, or as its credential is called."""
    return one_line(context.client.get("name") or context.principal.client or "unknown")


def one_line(given: object, *, most: int = LONGEST_NAME) -> str:
    """A text on one line, without characters that are invisible or change how it is read."""
    printable = "".join(one if one.isprintable() else " " for one in str(given)[:most])
    return " ".join(printable.split())


def site_failure(what: str, outcome: str) -> ToolError:
    """Return an error for what code of the site raised just now, which only the log tells, under
    the same number.
    """
    correlation_id = secrets.token_hex(8)
    logger.exception("%s failed [%s]", what, correlation_id)
    return ToolError(f"{what} failed (id {correlation_id}). {outcome}")


@contextmanager
def site_code(model_admin: ModelAdmin[Any]) -> Iterator[None]:
    """Turn what pages of the admin raise into ToolErrors. Errors of the database pass, but for a
    missing table, which is a mistake of the code that asks.
    """
    try:
        with refusals_in_words():
            yield
    except (ToolError, Cancelled):
        raise
    except Exception as error:
        raise_lost_database(error)
        what = f"The admin of {model_admin.opts.label_lower}"
        raise site_failure(what, "Nothing was changed.") from error


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


class NotRouted(ToolError):
    """The URLs of the project lead to no page of this admin."""


class AdminRequest(HttpRequest):
    """Made inside a call. `mcp` is the context of that call, which no browser's request has."""

    mcp: CallContext
    _dont_enforce_csrf_checks = True
    #: The parts of a body are in POST and FILES; there are no bytes to read.
    _body = b""

    def _get_scheme(self) -> str | None:
        return self.mcp.request.scheme


@dataclass(frozen=True, kw_only=True)
class CapturedMessage:
    """One message of the messages framework as plain text."""

    level: int
    text: str

    @property
    def level_name(self) -> str:
        return constants.DEFAULT_TAGS.get(self.level, str(self.level))

    @property
    def is_error(self) -> bool:
        return self.level >= constants.ERROR


def messages_as_json(rights: Rights, messages: Iterable[CapturedMessage]) -> list[dict[str, str]]:
    return [{"level": one.level_name, "text": rights.fence(one.text)} for one in messages]


class Recorder(BaseStorage):
    """Has the messages of one request: iterating leaves out none that a page has shown."""

    @property
    def messages(self) -> list[CapturedMessage]:
        return [CapturedMessage(level=one.level, text=plain_text(one.message)) for one in self]

    def _get(self, *args: Any, **kwargs: Any) -> tuple[list[Any], bool]:
        return [], True

    def _store(self, messages: Any, response: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return []


def without_reports(messages: Sequence[CapturedMessage], shown: str) -> list[CapturedMessage]:
    """Without the admin's own reports of success: they hold the `str()` of the record, which may
    tell more than this caller can read.
    """
    return [one for one in messages if one.level_name != "success" or shown not in one.text]


def admin_request(
    context: CallContext,
    rights: Rights,
    model_admin: ModelAdmin[Any],
    *,
    path: str,
    data: Iterable[Pair] | None = None,
    files: Mapping[str, Any] | None = None,
) -> tuple[AdminRequest, Recorder]:
    """A GET, or with `data` or `files` a POST, to `path` of the site that has `model_admin`.

    What middleware and authentication put on the request of the call is there, too: the user, a
    tenant, a language. The session is new and empty; give a later request the session of an
    earlier one if a page needs it. Raises NotFound where the admin site does not let the user in:
    its views do not ask.
    """
    request, outer = AdminRequest(), rights.request
    own = {*vars(request), *NOT_CARRIED}
    for name, value in vars(outer).items():
        if name not in own and not name.startswith("_"):
            setattr(request, name, value)
    request.mcp = context
    request.method = "GET" if data is None and files is None else "POST"
    request.path = path
    request.path_info = path_info(path)
    request.META = {
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        **{name: value for name, value in outer.META.items() if name not in OUTER},
        "REQUEST_METHOD": request.method,
        # `each_context` needs it, and a lesser request may lack it.
        "SCRIPT_NAME": get_script_prefix().rstrip("/"),
        "PATH_INFO": request.path_info,
        "QUERY_STRING": "",
    }
    request.POST = query_dict(data or ())
    request.FILES = MultiValueDict({name: [file] for name, file in (files or {}).items()})
    request.session = EmptySession()
    recorder = request._messages = Recorder(request)  # type: ignore[attr-defined]
    # Inlines and formfield_for_foreignkey read the pk from here.
    request.resolver_match = page_match(path)
    if not model_admin.admin_site.has_permission(request):
        raise NotFound("There is no such page for you.")
    return request, recorder


def path_info(path: str) -> str:
    return "/" + path.removeprefix(get_script_prefix())


def page_match(path: str) -> ResolverMatch | None:
    """The view that the URLs of the project have at a path, if there is one."""
    with suppress(Resolver404):
        return resolve(path_info(path))
    return None


def open_list(context: CallContext, rights: Rights, model_admin: ModelAdmin[Any]) -> None:
    """Open the list of a model, and the pages of the model that it sends a person on to. Some
    make the only record of the model. Raises ToolError where they fail.
    """
    path = path_of(model_admin, "changelist")
    opts, site = model_admin.opts, model_admin.admin_site.name
    own = f"{site}:{opts.app_label}_{opts.model_name}_"
    for _ in range(3):  # until a site that goes round in circles
        request, _ = admin_request(context, rights, model_admin, path=path)
        match = request.resolver_match
        if match is None or not match.view_name.startswith(own):
            return
        with site_code(model_admin):
            response = match.func(request, *match.args, **match.kwargs)
        if not response.has_header("Location"):
            return
        path = urlsplit(urljoin(path, response["Location"])).path


def page_address(model_admin: ModelAdmin[Any], page: str, key: Any = None) -> str | None:
    """The address of a page, for people, by its name as `path_of` takes it. Without PUBLIC_URL it
    is a path. None where the project's URLs do not have the site.
    """
    text = str(key)
    with suppress(NotRouted):
        if page != "change" or not PLAIN_KEY.fullmatch(text):
            return public_address(path_of(model_admin, page, key))
        urls = get_urlconf() or settings.ROOT_URLCONF
        before, after = change_path(model_admin, urls, get_script_prefix(), get_language())
        return public_address(before + text + after)
    return None


#: A key that stands in a path as it is.
PLAIN_KEY = re.compile("[0-9]+")
#: Stands for any of those while a path is made.
ANY_KEY = "7316025948"


@lru_cache(maxsize=1000)
def change_path(
    model_admin: ModelAdmin[Any], urls: Any, prefix: str, language: str | None
) -> tuple[str, str]:
    """Return what stands before and after such a key in the path of its page. Each answer of
    get_record has the path, and took 41 of 504 microseconds for it with `reverse` and `urljoin`.

    The last three are what `reverse` depends on. Raises NotRouted.
    """
    before, _, after = path_of(model_admin, "change", ANY_KEY).rpartition(ANY_KEY)
    return before, after


def public_address(path: str) -> str:
    """For people: with the host of PUBLIC_URL, if that is set."""
    # `urljoin` takes ten times as long.
    scheme, host, *_ = urlsplit(get_config().public_url)
    return f"{scheme}://{host}{path}" if host else path


def path_of(model_admin: ModelAdmin[Any], page: str, key: Any = None) -> str:
    """The path of a page of one model: "add" and "changelist", or with a key "change", "delete".

    Raises NotRouted where the project's URLs do not have the site.
    """
    opts, site = model_admin.opts, model_admin.admin_site
    # A bare integer would break `unquote` in the view.
    args = () if key is None else (quote(str(key)),)
    name = f"admin:{opts.app_label}_{opts.model_name}_{page}"
    try:
        return reverse(name, args=args, current_app=site.name)
    except NoReverseMatch as error:
        raise NotRouted(
            "Nothing was done: the admin is not among the URLs of this site. Tell the person."
        ) from error
