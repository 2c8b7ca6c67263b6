"""Callers of the library, and what is exposed to them."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.test import RequestFactory

from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.registry import Registry
from mcp_django.principal import SCOPES, Principal
from tests.library.models import Author, Book, Copy, Genre

EXPOSED = {
    Author: {"fields": ["id", "name", "country"], "label_fields": ["name"]},
    Genre: {"fields": ["id", "code"], "label_fields": ["code"]},
    Book: {"fields": ["id", "title", "author", "price"], "label_fields": ["title"]},
    Copy: {"fields": ["id", "number"]},
}


def library(**changes):
    """A registry of the library's models; `changes` by the names of models, None for not there."""
    registry = Registry()
    for model, attributes in EXPOSED.items():
        change = changes.get(model.__name__, {})
        if change is not None:
            kind = type(f"{model.__name__}Exposure", (ModelExposure,), {**attributes, **change})
            registry.register(model, kind)
    return registry


LIBRARY = library()


def rights_of(user=None, *, registry=None, scopes=SCOPES):
    request = RequestFactory().get("/mcp")
    request.user = AnonymousUser() if user is None else user
    principal = Principal(user=request.user, scopes=frozenset(scopes), method="test")
    return Rights(request, principal, registry=LIBRARY if registry is None else registry)
