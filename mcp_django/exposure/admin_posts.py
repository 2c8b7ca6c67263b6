"""What is posted of one form, as it grows, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.core.exceptions import ValidationError
from django.forms import FileField
from django.forms.models import ModelMultipleChoiceField
from django.utils.text import slugify

from mcp_django.exposure.admin_errors import Faults
from mcp_django.exposure.admin_keep import is_stored
from mcp_django.exposure.admin_parsing import Unfit, shown_value
from mcp_django.exposure.admin_relations import related_key, related_keys
from mcp_django.exposure.admin_values import Pair, as_shown, encode
from mcp_django.exposure.permissions import Rights


@dataclass(kw_only=True, eq=False)
class Post:
    rights: Rights
    faults: Faults
    pairs: list[Pair] = field(default_factory=list)
    files: dict[str, Any] = field(default_factory=dict)

    def fill_in(
        self,
        form: Any,
        values: Mapping[str, Any],
        *,
        repeat: bool,
        skip: Collection[str] = (),
        place: str = "",
    ) -> None:
        """Add one form. With `repeat`, what nobody sends is sent as it is shown."""
        for name, one in form.fields.items():
            if name in skip:
                continue
            if name in values:
                self._send(form[name], values[name], path=f"{place}.{name}" if place else name)
            elif (repeat or not is_stored(form, name)) and not isinstance(one, FileField):
                self.pairs += as_shown(form[name])

    def _send(self, bound: Any, value: Any, *, path: str) -> None:
        try:
            encoded = encode(bound, value, find=partial(find_related, self.rights))
        except Unfit as error:
            self.faults.add(path, str(error))
            return
        self.pairs += encoded.pairs
        if encoded.file is not None:
            self.files[bound.html_name] = encoded.file


def find_related(rights: Rights, one: Any, value: Any) -> Any:
    """The key, or the keys, that a value means to a field of related records. Raises Unfit."""
    try:
        if not isinstance(one, ModelMultipleChoiceField):
            return None if value in (None, "") else related_key(rights, one, value)
        if not isinstance(value, list):
            raise Unfit(f"{shown_value(value)} is not a list of keys.")
        return related_keys(rights, one, value)
    except ValidationError as error:
        raise Unfit(" ".join(error.messages)) from None


def prepopulated(
    form: Any, fields: Mapping[str, Sequence[str]], given: Mapping[str, Any]
) -> dict[str, Any]:
    """What the page fills in by JavaScript while a person types, as it does in new forms only."""
    found = {}
    for name, sources in fields.items():
        one = form.fields.get(name)
        words = [str(given[source]) for source in sources if given.get(source) is not None]
        # What a form has from the start is left alone there.
        if one is None or name in given or not words or form[name].value():
            continue
        text = slugify(" ".join(words), allow_unicode=getattr(one, "allow_unicode", False))
        found[name] = text[: getattr(one, "max_length", None) or None]
    return found


def open_names(form: Any) -> list[str]:
    """The fields that somebody who sees the form could fill in."""
    return [
        name for name, one in form.fields.items() if not one.disabled and not one.widget.is_hidden
    ]
