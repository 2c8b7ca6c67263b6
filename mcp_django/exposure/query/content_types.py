"""Keys of content types by the name of their model, such as "shop.order": generic foreign keys
and the tables of many packages hold these.
"""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.db.models import ForeignKey

from mcp_django.exceptions import QueryError
from mcp_django.exposure.fields import bounded_text, quoted
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.serializers import Values
from mcp_django.exposure.query.tables import Labels
from mcp_django.levels import Level


def holds_content_type(field: Any) -> bool:
    return isinstance(field, ForeignKey) and is_content_type_model(field.related_model)


def is_content_type_model(model: Any) -> bool:
    return bool(model._meta.label_lower == "contenttypes.contenttype")


def names_of_types(rights: Rights, types: Any) -> dict[Any, str]:
    """Return the models of content types by key, of those whose records this caller sees. They
    are read each time: Django remembers them for a database, which tenants may share.
    """
    return {
        pk: f"{app}.{name}"
        for pk, app, name in types.values_list("pk", "app_label", "model")
        if may_name_model(rights, f"{app}.{name}")
    }


def may_name_model(rights: Rights, label: str) -> bool:
    try:
        model = apps.get_model(label)
    except LookupError:  # of an app that is gone
        return False
    return model in rights.exposed.exposures and rights.level(model) >= Level.READ


def labels_of_types(rights: Rights, field: Any, values: Values, *, using: str) -> Labels:
    """Return what stands for the values of a foreign key to content types."""
    used = {value for value in values if value is not None}
    types = field.related_model._base_manager.using(using).filter(pk__in=used)
    texts = {str(key): name for key, name in names_of_types(rights, types).items()}
    return Labels(texts=texts, of=field.related_model._meta.label_lower)


def key_of_type(rights: Rights, types: Any, label: str) -> Any:
    """Return the key of a model among content types. Raises QueryError for a model of which the
    caller sees no records.
    """
    app, _, name = bounded_text(label).strip().lower().partition(".")
    keys = list(names_of_types(rights, types.filter(app_label=app, model=name)))
    if not keys:
        raise QueryError(
            f"no model is called {quoted(label)}. Call list_models to see which there are."
        )
    return keys[0]
