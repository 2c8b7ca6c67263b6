"""A call from a form, and its questions, until it has an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest

from mcp_django.admin.callers import looker_of
from mcp_django.admin.try_calls import try_call
from mcp_django.admin.try_questions import ACTIONS, FIELD, Asked, QuestionForm, asked_in, opened
from mcp_django.admin.try_results import shown
from mcp_django.protocol.param_headers import ParamHeaders


@dataclass(frozen=True, kw_only=True)
class Call:
    """What a form calls."""

    method: str
    name: str
    form_of: Callable[[Any], Any]
    params_of: Callable[[Any], Mapping[str, Any]]
    param_headers: ParamHeaders = field(default_factory=dict)


def posted(request: HttpRequest, call: Call) -> dict[str, Any]:
    """What the template needs: the form, and the result, the questions, or what is wrong."""
    looker = looker_of(request)
    bound_to = f"{looker.identity}:{call.method}:{call.name}"
    sealed = request.POST.get(FIELD)
    if sealed is None:
        form, asked, answers = call.form_of(request.POST), None, []
    else:
        asked = opened(sealed, bound_to=bound_to)
        if asked is None:
            return {"form": call.form_of(None), "is_stale": True}
        form, answers = call.form_of(asked.data), asked.forms(request.POST)
    context: dict[str, Any] = {"form": form}
    if not form.is_valid():
        return context
    if asked is not None and not all(one.is_valid() for one in answers):
        return {**context, "asking": asking(sealed, answers)}
    tried = try_call(
        request,
        call.method,
        {**call.params_of(form), **going_on(asked, answers)},
        param_headers=call.param_headers,
    )
    context["result"] = shown(tried, looker)
    following = asked_in(tried.message, form)
    if following is not None:
        before = {one.key: one.answer for one in answers}
        forms = following.forms(before=before)
        context["asking"] = asking(following.seal(bound_to=bound_to), forms)
    return context


def going_on(asked: Asked | None, answers: list[QuestionForm]) -> dict[str, Any]:
    if asked is None:
        return {}
    given = {one.key: one.answer for one in answers}
    return {"inputResponses": given, "requestState": asked.state}


def asking(sealed: str | None, forms: list[QuestionForm]) -> dict[str, Any]:
    return {
        "field": FIELD,
        "sealed": sealed,
        "forms": forms,
        "actions": ACTIONS,
        "is_wrong": any(one.errors for one in forms),
    }
