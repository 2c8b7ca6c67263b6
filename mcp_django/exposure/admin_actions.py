"""Actions of the admin run as the admin runs them: through its views, for the user of a call.

The views work on a copy of the ModelAdmin that is made for the call, since the registered one is
shared by all threads.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.db import connections, router, transaction
from django.http import Http404
from django.urls import Resolver404, get_script_prefix, resolve, reverse

from mcp_django.context import CallContext
from mcp_django.exceptions import Cancelled, NotFound, ToolError
from mcp_django.exposure.admin_action_answers import AdminAnswer, Kind, read_answer
from mcp_django.exposure.admin_log import sign_log
from mcp_django.exposure.admin_requests import (
    AdminRequest,
    Recorder,
    admin_request,
    own_copy,
    path_of,
)
from mcp_django.exposure.budget import lift_deadlines
from mcp_django.exposure.compat import AdminAction, Place, shown_buttons
from mcp_django.exposure.permissions import Rights

logger = logging.getLogger("mcp_django")

#: Names of keys in a sentence.
MOST_KEYS = 20
#: The form of a menu, which only the admin fills in.
MENU = frozenset({"action", "index", "select_across", ACTION_CHECKBOX_NAME, "csrfmiddlewaretoken"})

Pairs = Sequence[tuple[str, str]]


class Unselected(Exception):
    """The changelist would leave out some of the records that were named."""


class ActionRun:
    """One action on some records, from choosing it in the menu to the last page.

    Nothing is done unless every record is one that the admin would give to the action.
    """

    def __init__(
        self,
        context: CallContext,
        rights: Rights,
        model_admin: ModelAdmin[Any],
        action: AdminAction,
        keys: Sequence[Any],
        *,
        is_tried: bool = False,
    ) -> None:
        self.context = context
        self.rights = rights
        self.model_admin = model_admin
        self.action = action
        self.given = keys
        self.keys = [str(key) for key in keys]
        #: Whether all of it will be taken back.
        self.is_tried = is_tried
        self.missing: list[str] = []
        self.ran = False
        self._session: Any = None

    def start(self, extra: Pairs = ()) -> AdminAnswer:
        """Choose the action. `extra` are more fields of the menu's form.

        Raises ToolError where the admin refuses, or fails.
        """
        if self.action.place in (Place.RECORD_BUTTON, Place.MODEL_BUTTON):
            return self._press()
        menu = [("select_across", "0"), ("action", self.action.name)]
        data = [*((ACTION_CHECKBOX_NAME, key) for key in self.keys), *extra]
        if self.action.place is Place.CHANGELIST:
            return self._post(self.home, [*menu, ("index", "0"), *data], self._view)
        prefixed = [(f"CHANGE_FORM-{name}", value) for name, value in menu]
        return self._post(self.home, [*prefixed, *data], self._view)

    def send(self, path: str, data: Pairs, files: Mapping[str, Any] | None = None) -> AdminAnswer:
        """Send a page that the action showed, with the session that it was made in.

        Raises ToolError for a page that acts on more records than were named, or that leads out
        of this admin.
        """
        if path == self.home:
            if any(name == "select_across" and value == "1" for name, value in data):
                raise ToolError("The page would act on more records than you named.")
            chosen = [value for name, value in data if name == ACTION_CHECKBOX_NAME]
            if not set(chosen) <= set(self.keys):
                raise ToolError("The page would act on other records than you named.")
            return self._post(path, data, self._view, files=files)
        try:
            match = resolve("/" + path.removeprefix(get_script_prefix()))
        except Resolver404:
            match = None
        if match is None or match.namespace != self.model_admin.admin_site.name:
            raise ToolError("The page leads out of this admin. Run the action in a browser.")
        view, args, kwargs = match.func, match.args, match.kwargs
        return self._post(
            path, data, lambda request: view(request, *args, **kwargs), files=files, ran=True
        )

    @property
    def home(self) -> str:
        """The page that the action is chosen on."""
        if self.action.place in (Place.CHANGE_FORM, Place.RECORD_BUTTON):
            return path_of(self.model_admin, "change", self.keys[0])
        return path_of(self.model_admin, "changelist")

    def _view(self, request: AdminRequest) -> Any:
        one_call = self._copy()
        if self.action.place is Place.CHANGE_FORM:
            return one_call.change_view(request, quote(self.keys[0]))
        return one_call.changelist_view(request)

    def _copy(self) -> Any:
        one_call = own_copy(self.model_admin)
        respond = one_call.response_action

        def response_action(request: AdminRequest, queryset: Any, **options: Any) -> Any:
            # It drops what its filters hide without a word, and says that all is done.
            chosen = request.POST.getlist(ACTION_CHECKBOX_NAME)
            found = queryset.filter(pk__in=chosen).values_list("pk", flat=True)
            known = {str(key) for key in found}
            self.missing = [key for key in chosen if key not in known]
            if self.missing:
                raise Unselected
            response = respond(request, queryset, **options)
            self.ran = response is not None
            return response

        one_call.response_action = response_action
        sign_log(one_call, self.context)
        return one_call

    def _press(self) -> AdminAnswer:
        """A button with a URL of its own. Its view asks for no more than to be staff."""
        opts, site = self.model_admin.opts, self.model_admin.admin_site
        name = f"admin:{opts.app_label}_{opts.model_name}_actions"
        args = [*map(quote, self.keys), self.action.name]
        path = reverse(name, args=args, current_app=site.name)
        match = resolve("/" + path.removeprefix(get_script_prefix()))

        def press(request: AdminRequest) -> Any:
            if self.keys:
                self._check_button(request)
            methods = getattr(self.action.function, "methods", ("POST",))
            if "POST" not in methods:
                request.method = "GET"
            return match.func(request, *match.args, **match.kwargs)

        return self._post(path, [], press, ran=True)

    def _check_button(self, request: AdminRequest) -> None:
        key = self.keys[0]
        rows = self.model_admin.get_queryset(request)
        if not rows.filter(pk=key).exists():
            self.missing = [key]
            raise Unselected
        shown = shown_buttons(self.model_admin, request, self.action.place, key)
        if self.action.name not in shown:
            raise ToolError(f"The admin does not offer this for {key}. Nothing was done.")

    def _post(
        self,
        path: str,
        data: Pairs,
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
                raise self._not_found() from None
            raise self._failed() from error

    def _answer(
        self, request: AdminRequest, recorder: Recorder, view: Callable[[AdminRequest], Any]
    ) -> AdminAnswer:
        # Code of the site follows, with its own idea of slow.
        lift_deadlines()
        response = view(request)
        if self.missing:  # and code of the site has taken our exception for its own
            raise self._not_found()
        answer = read_answer(response, request, recorder.said, ran=self.ran, home=self.home)
        if answer.kind is Kind.PAGE and not self.ran:
            raise ToolError("The admin did not run the action, and does not say why.")
        return answer

    def transactions(self) -> list[str]:
        """The databases that one transaction spans: as Django chooses them for views, and the
        one of the model where the action has `mcp_atomic`.
        """
        own = router.db_for_write(self.model_admin.model)
        is_atomic = getattr(self.action.function, "mcp_atomic", False)
        return [
            alias
            for alias in connections
            if connections.settings[alias]["ATOMIC_REQUESTS"] or (is_atomic and alias == own)
        ]

    def _not_found(self) -> NotFound:
        return not_found(self.missing)

    def _failed(self) -> ToolError:
        correlation_id = secrets.token_hex(8)
        label = self.model_admin.opts.label_lower
        logger.exception(
            "The action %s of %s failed [%s]", self.action.name, label, correlation_id
        )
        # The view of the change form has a transaction of its own.
        is_undone = (
            self.is_tried
            or self.action.place is Place.CHANGE_FORM
            or router.db_for_write(self.model_admin.model) in self.transactions()
        )
        return ToolError(
            f"The action failed (id {correlation_id}). "
            + (
                "What it did in the database was taken back."
                if is_undone
                else "It may have been done in part: check before you repeat it."
            )
        )


def not_found(keys: Sequence[str]) -> NotFound:
    """The same for records that are absent, left out by the admin, or somebody else's."""
    named = ", ".join(ascii(key)[1:-1][:60] for key in keys[:MOST_KEYS])
    more = f" and {len(keys) - MOST_KEYS} more" if len(keys) > MOST_KEYS else ""
    return NotFound(
        f"Not found: {named}{more}. Nothing was done. Leave them out, or look with find_records "
        "which records there are."
    )
