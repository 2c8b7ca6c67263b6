"""Calls of the tools that write, and rules that hide rows of a model from everybody."""

from __future__ import annotations

from mcp_django.exposure.registry import registry
from tests.workshop.admin import site
from tests.workshop.models import Tag


def update(client, record, *, inlines=None, dry_run=False, **values):
    return client.call_tool(
        "update_record",
        model=record._meta.label_lower,
        pk=record.pk,
        values=values,
        inlines=inlines or {},
        dry_run=dry_run,
    )


def create(client, **values):
    return client.call_tool("create_record", model="workshop.thing", values=values)


def changed(answer):
    """The changes that a call tells of, which must have succeeded."""
    assert not answer.is_error, answer.text
    return answer.data["changed"]


def refusal(answer):
    """Return the text of a call, which must have been refused."""
    assert answer.is_error, answer.text
    return answer.text


def differing(before, after):
    return {name for name in before if before[name] != after[name]}


def asked(client):
    """What its person was asked to agree to."""
    return client.questions["confirmation"]["params"]["message"]


def tag_names():
    return sorted(Tag.objects.values_list("name", flat=True))


def names(record, field="tags"):
    return sorted(getattr(record, field).values_list("name", flat=True))


def hide_by_admin(monkeypatch, model, **conditions):
    monkeypatch.setattr(
        type(site._registry[model]),
        "get_queryset",
        lambda self, request: model.objects.exclude(**conditions),
    )


def hide_by_exposure(monkeypatch, model, **conditions):
    monkeypatch.setattr(
        registry._classes[model],
        "get_queryset",
        lambda self, request: model.objects.exclude(**conditions),
    )
    registry.forget_resolved()


def hide_by_object(monkeypatch, model, **conditions):
    hidden = model.objects.filter(**conditions)
    monkeypatch.setattr(
        type(site._registry[model]),
        "has_view_permission",
        lambda self, request, obj=None: obj is None or not hidden.filter(pk=obj.pk).exists(),
    )


HIDINGS = [hide_by_admin, hide_by_exposure, hide_by_object]
