"""Live: who is connected now, and a button that ends it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias

from django.contrib import messages
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone

from mcp_django.admin.pages import LIVE, url_of
from mcp_django.exposure.admin_bridge.requests import one_line
from mcp_django.exposure.decisions import decisions
from mcp_django.models import Assistants, ServerSettings, UserRestriction
from mcp_django.principal import DEFAULT_SERVER
from mcp_django.stores.documents import is_of_one_process, make_cache
from mcp_django.stores.sessions import OpenStream, Session, get_store
from mcp_django.stores.transactions import after_transaction
from mcp_django.subscriptions.outbox import publish
from mcp_django.subscriptions.topics import CLOSE, LISTS, Change, control_topic
from mcp_django.transports.sessions import end_session

# Sessions and streams as staff read them: newest first, a page at a time.

ON_PAGE = 50
#: URIs of one line, and characters of each. A client may subscribe to many long ones.
MOST_URIS, LONGEST_URI = 20, 200
LONGEST_CLIENT = 100

#: What transports of sessions and kinds of streams are called.
KIND_NAMES = {
    "streamable_http": "Streamable HTTP",
    "http_sse": "HTTP+SSE",
    "stdio": "stdio",
    "listen": "Subscriptions",
    "standalone": "Notifications of a session",
    "call": "Answer to a call",
}

Connected: TypeAlias = Session | OpenStream
#: How long a session without a stream is listed after its client was heard of. The client may come
#: back until the session expires.
LISTED = timedelta(minutes=5)
#: In place of a key: every one.
END_ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Part:
    """One of the two lists: whose it is to see, and to end what is in it."""

    #: Also of the field that ends one of them, and of the parameter with the number of its page.
    name: str
    title: str
    noun: str
    #: How its permissions end.
    codename: str
    find: Callable[[], Sequence[Connected]]
    end: Callable[[str], object]

    def may_view(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"mcp_django.view_{self.codename}")

    def may_end(self, request: HttpRequest) -> bool:
        may_delete = request.user.has_perm(f"mcp_django.delete_{self.codename}")
        return self.may_view(request) and may_delete

    def of(self, user: str | None) -> list[Connected]:
        """Return those of this server that `asked_user` asks for. Raises what the store raises."""
        return [
            row for row in self.find() if row.server == DEFAULT_SERVER and user in ("", row.user)
        ]


def close_stream(key: str) -> None:
    """In whatever process it is."""
    publish({Change(topic=control_topic(CLOSE, key))})


SESSIONS = Part(
    name="sessions",
    title="Sessions",
    noun="session",
    codename="session",
    find=lambda: get_store().sessions(),
    end=end_session,
)
STREAMS = Part(
    name="streams",
    title="Streams",
    noun="stream",
    codename="livestream",
    find=lambda: get_store().streams(),
    end=close_stream,
)
PARTS = (SESSIONS, STREAMS)


def lines(rows: Sequence[Connected]) -> list[dict[str, Any]]:
    users = get_user_model()
    present = users._default_manager.filter(pk__in={row.user for row in rows if row.user})
    names = {str(pk): str(name) for pk, name in present.values_list("pk", users.USERNAME_FIELD)}
    return [line(row, names.get(row.user)) for row in rows]


def line(row: Connected, name: str | None) -> dict[str, Any]:
    """Return what the template shows. Without a name the user may have been deleted since."""
    if isinstance(row, Session):
        topics: Iterable[str] = sorted(get_store().subscriptions(row.key))
        client = f"{row.client.get('name', '')} {row.client.get('version', '')}"
        kind, began, seen, is_ready = row.transport, row.created, row.seen, row.is_initialized
    else:
        topics, client = row.topics, row.client
        kind, began, seen, is_ready = row.kind, row.opened, None, True
    uris = [topic for topic in topics if topic not in LISTS]
    who = name or ("anonymous" if not row.user else one_line(row.principal))
    client = one_line(client, most=LONGEST_CLIENT)
    return {
        "key": row.key,
        "who": who,
        "user": row.user if name else "",
        "client": client,
        "title": ", ".join(filter(None, (who, client))),
        "kind": KIND_NAMES.get(kind, kind),
        "revision": row.revision,
        "began": began,
        "seen": seen,
        "is_ready": is_ready,
        "lists": [topic for topic in topics if topic in LISTS],
        "uris": [
            one_line(uri, most=LONGEST_URI) + ("…" if len(uri) > LONGEST_URI else "")
            for uri in uris[:MOST_URIS]
        ],
        "more": max(0, len(uris) - MOST_URIS),
    }


def asked_user(request: HttpRequest) -> tuple[str, str | None]:
    """Return the name in the address, and the key as text of its user: empty where the page is
    about everybody, None where nobody has the name.
    """
    users: Any = get_user_model()
    username = request.GET.get("user", "")[:254]
    if not username:
        return "", ""
    named = users._default_manager.filter(**{users.USERNAME_FIELD: username.replace("\0", "")})
    key = named.values_list("pk", flat=True).first()
    return username, None if key is None else str(key)


logger = logging.getLogger("mcp_django")

GONE = "The store of sessions and streams cannot be reached. The log of the site says why."


def live_view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Ends what was named on POST, and nothing on GET."""
    if request.method == "POST":
        end_posted(request)
        return HttpResponseRedirect(request.get_full_path())
    username, user = asked_user(request)
    context: dict[str, Any] = {
        "username": username,
        "is_closed": decisions().closed,
        "is_alone": is_of_one_process(make_cache()),
        "switches": switches(model_admin, request),
    }
    if user is None:
        return LIVE.render(model_admin, request, **context, is_nobody=True)
    try:
        context["parts"] = [
            part_context(part, request, user=user) for part in PARTS if part.may_view(request)
        ]
    except Exception:
        logger.exception("Sessions and streams cannot be shown.")
        context["problem"] = GONE
    return LIVE.render(model_admin, request, **context)


def part_context(part: Part, request: HttpRequest, *, user: str) -> dict[str, Any]:
    """Return a page of lines, of one user or of all. Raises what the store raises."""
    everything = part.of(user)
    present = without_gone(everything) if part is SESSIONS else everything
    page: Any = Paginator(present, ON_PAGE).get_page(request.GET.get(part.name))
    page.object_list = lines(page.object_list)
    return {
        "part": part,
        "page": page,
        "total": len(everything),
        "gone": len(everything) - len(present),
        "may_end": part.may_end(request),
    }


def without_gone(sessions: Iterable[Any]) -> list[Any]:
    """Return the sessions whose clients were heard of lately, or that have an open stream."""
    streaming = {stream.session for stream in get_store().streams()}
    since = timezone.now() - LISTED
    return [row for row in sessions if row.seen >= since or row.key in streaming]


def switches(model_admin: Any, request: HttpRequest) -> list[dict[str, str]]:
    """The pages that keep clients out, of those that this person may open."""
    registered = model_admin.admin_site._registry
    return [
        {
            "title": str(model._meta.verbose_name_plural),
            "url": url_of(model_admin, "changelist", model=model),
        }
        for model in (ServerSettings, UserRestriction)
        if model in registered and registered[model].has_view_or_change_permission(request)
    ]


def end_posted(request: HttpRequest) -> None:
    """End what the button stands for. Raises PermissionDenied."""
    for part in PARTS:
        key = request.POST.get(part.name)
        if key is not None:
            if not part.may_end(request):
                raise PermissionDenied
            try:
                end(request, part, key)
            except Exception:
                logger.exception("A %s cannot be ended.", part.noun)
                messages.error(request, GONE)


def end(request: HttpRequest, part: Part, key: str) -> None:
    """End one by its key, or END_ALL: of the user whom the page is about, or of everybody."""
    username, user = asked_user(request)
    ended = part.of(user) if key == END_ALL else [row for row in part.of("") if row.key == key]
    if not ended:
        messages.warning(request, f"This {part.noun} is over already.")
        return
    if key == END_ALL:
        title = f"all {part.name} of {username or 'everybody'}: {len(ended)}"
    else:
        # Before the end: a session takes its subscriptions along.
        title = f"the {part.noun} of {lines(ended)[0]['title']}"
    for row in ended:
        after_transaction(partial(part.end, row.key))
    LogEntry.objects.create(
        user_id=request.user.pk,  # type: ignore[misc]  # nobody anonymous comes here
        content_type_id=ContentType.objects.get_for_model(Assistants, for_concrete_model=False).pk,
        object_id=key,
        object_repr=title[:200],
        action_flag=DELETION,
        change_message=f"Ended {title}.",
    )
    messages.success(request, f"Ended {title}.")
