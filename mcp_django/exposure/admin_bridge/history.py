"""Who changed a record, when and how: the log of the admin, and what packages keep besides.

The rule is that of the admin's own history page: whoever may view the record there. What an entry
says of fields and of related records is cut to what this caller reads anyway.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.admin.options import get_content_type_for_model
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import Model
from django.utils import translation
from django.utils.text import capfirst, get_text_list

from mcp_django.exposure.admin_bridge.requests import NOTE
from mcp_django.exposure.limits import limited, raise_lost_database
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.exposure.query.guard import is_plain
from mcp_django.exposure.query.related import shows_records
from mcp_django.exposure.query.serializers import as_text, utc

logger = logging.getLogger("mcp_django")

#: The newest entries that are read: those about hidden fields alone are left out.
MOST_READ = 200

LOGGED_ACTIONS = {ADDITION: "added", CHANGE: "changed", DELETION: "deleted"}


@dataclass(frozen=True, kw_only=True)
class HistoryEntry:
    at: datetime
    user: str | None
    action: str
    change: str
    #: The package that kept it. Empty: the log of the admin.
    source: str = ""

    def as_json(self) -> dict[str, Any]:
        found = {
            "at": utc(self.at),
            "user": self.user,
            "action": self.action,
            "change": self.change,
            "source": self.source,
        }
        return {name: value for name, value in found.items() if name != "source" or value}


class ReadableNames:
    """The fields of a model that this caller reads, by the words that logs have for them."""

    def __init__(self, rights: Rights, exposure: ModelExposure, labels: Mapping[str, str]) -> None:
        access = allowed_paths(rights, exposure)
        own = {names[0] for names in access.shown if len(names) == 1}
        self.fields = frozenset({*own, *access.many})
        self._by_word: dict[str, set[str]] = defaultdict(set)
        for name, word in labels.items():
            self._by_word[word].add(name)
        # Logs are written without a translation.
        with translation.override(None):
            for field in exposure.model._meta.get_fields():
                word = as_text(getattr(field, "verbose_name", field.name))
                for one in (field.name, word, capfirst(word)):
                    self._by_word[one].add(field.name)

    def shows(self, word: object) -> bool:
        """Whether a word means fields that this caller reads, and no other."""
        names = self._by_word.get(word, set()) if isinstance(word, str) else set()
        return bool(names) and names <= self.fields


class RecordLog:
    """What this caller may read of the log of one record."""

    def __init__(
        self, rights: Rights, exposure: ModelExposure, model_admin: Any, obj: Model
    ) -> None:
        self.rights = rights
        self.exposure = exposure
        self.admin = model_admin
        self.obj = obj

    @cached_property
    def names(self) -> ReadableNames:
        labels = {}
        try:
            form = self.admin.get_form(self.rights.request, self.obj)
            with translation.override(None):
                for name, field in form.base_fields.items():
                    labels[name] = as_text(field.label or name)
        except Exception as error:
            raise_lost_database(error)
            # Code of the site. What the form calls its fields is not understood then.
            logger.exception("The form of %s cannot be made.", self.exposure.label)
        return ReadableNames(self.rights, self.exposure, labels)

    @cached_property
    def inlines(self) -> list[type[Model]]:
        return [one.model for one in self.admin.get_inlines(self.rights.request, self.obj)]

    @cached_property
    def shows_page(self) -> bool:
        """Whether this caller reads every field and every row of the page in the admin. Texts that
        the site wrote into the log may speak of any of them.
        """
        asked = self.rights.request, self.obj
        try:
            names = {
                *flatten_fieldsets(self.admin.get_fieldsets(*asked)),
                *self.admin.get_readonly_fields(*asked),
            }
        except Exception as error:
            raise_lost_database(error)
            logger.exception("What %s shows cannot be told.", self.exposure.label)
            return False
        return names <= self.names.fields and all(map(self.shows_rows, self.inlines))

    def shows_rows(self, model: type[Model]) -> bool:
        """Whether this caller reads all rows of a model, so that none is hinted at."""
        return (
            shows_records(self.rights, model)
            and is_plain(self.rights.rows(model).query)
            and not self.rights.checks_rows_one_by_one(model)
        )

    def entries(self) -> list[HistoryEntry]:
        """Those of the admin's log, newest first."""
        content_type: Any = get_content_type_for_model(self.exposure.model)
        rows = LogEntry.objects.filter(content_type=content_type, object_id=str(self.obj.pk))
        rows = rows.select_related("user").order_by("-action_time", "-pk")
        with limited(rows.db):
            found = list(rows[:MOST_READ])
        texts = [(row, self.text_of(row.change_message)) for row in found]
        return [
            HistoryEntry(
                at=row.action_time,
                user=row.user.get_username(),
                action=LOGGED_ACTIONS.get(row.action_flag, "changed"),
                change=text,
            )
            for row, text in texts
            if text is not None
        ]

    def text_of(self, message: str) -> str | None:
        """What this caller may read of a message, or None where it is about other things alone."""
        parts = parts_of_message(message)
        if parts is None:
            return message if self.shows_page else ""
        notes = [capfirst(f"{what['object']}.") for _, what in parts if is_note(what)]
        others = [part for part in parts if not is_note(part[1])]
        texts = [text for verb, what in others if (text := self.text_of_part(verb, what))]
        return " ".join([*texts, *notes]) if texts or not others else None

    def text_of_part(self, verb: str, what: Mapping[str, Any]) -> str:
        name, fields = what.get("name"), what.get("fields")
        if name is not None:
            return self.text_of_related(verb, str(name), what)
        if verb == "changed" and isinstance(fields, list):
            shown = [word for word in fields if self.names.shows(word)]
            return words_of_change(shown) if shown else ""
        return message_of({"added": {}}) if verb == "added" else ""

    def text_of_related(self, verb: str, name: str, what: Mapping[str, Any]) -> str:
        """A row of the form, by the name of its model: its `str()` may tell more than it shows."""
        with translation.override(None):
            models = [one for one in self.inlines if as_text(one._meta.verbose_name) == name]
        if not models or not all(map(self.shows_rows, models)):
            return ""
        if verb != "changed":
            return f"{capfirst(verb)} {name}."
        exposures = self.rights.exposed.exposures
        readable = [ReadableNames(self.rights, exposures[model], {}) for model in models]
        fields = what.get("fields")
        words = fields if isinstance(fields, list) else []
        shown = [word for word in words if all(one.shows(word) for one in readable)]
        return f"Changed {get_text_list(shown, 'and')} of {name}." if shown else ""


def is_note(what: Mapping[str, Any]) -> bool:
    """Whether we wrote it: which client acted."""
    return what.get("name") == "note" and str(what.get("object")).startswith(NOTE)


def parts_of_message(message: str) -> list[tuple[str, Mapping[str, Any]]] | None:
    """What the admin itself wrote into the log, part by part. None: a text of the site."""
    if not message:
        return []
    try:
        parts = json.loads(message)
    except (ValueError, RecursionError):
        return None
    found: list[tuple[str, Mapping[str, Any]]] = []
    for part in parts if isinstance(parts, list) else [None]:
        if not isinstance(part, dict) or len(part) != 1:
            return None
        ((verb, what),) = part.items()
        if verb not in LOGGED_ACTIONS.values() or not isinstance(what, dict):
            return None
        found.append((verb, what))
    return found


def message_of(part: Mapping[str, Any]) -> str:
    """In the words, and in the language, of the admin."""
    return LogEntry(change_message=json.dumps([part])).get_change_message()


def words_of_change(names: Iterable[str]) -> str:
    """What the admin says of a change of these fields."""
    return message_of({"changed": {"fields": list(names)}})
