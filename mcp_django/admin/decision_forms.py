"""What the forms about models and about tools have in common."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.forms import BooleanField, CharField, HiddenInput, ModelForm

AS_IN_CODE = "as in code"

if TYPE_CHECKING:
    AnyModelForm = ModelForm[Any]
else:
    AnyModelForm = ModelForm  # it takes no subscript when it runs


class DecisionForm(AnyModelForm):
    """A form about one thing, with or without a row. It knows what was decided before."""

    #: What a row with these groups decides, in words for the log.
    told: Callable[[Any, Iterable[Group]], dict[str, str]]

    reset = BooleanField(
        required=False,
        label="Forget all of this",
        help_text="Saves that nothing is decided here: everything is as in code again.",
    )
    based_on = CharField(required=False, widget=HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.told_before = self.told(self.instance, groups_of(self.instance))
        self.fields["based_on"].initial = fingerprint(self.told_before)

    def is_known(self) -> bool:
        """Whether code has the thing still. What it has not can only be forgotten."""
        return True

    def told_after(self) -> dict[str, str]:
        if self.cleaned_data["reset"]:
            return self.told(type(self.instance)(), [])
        return self.told(self.instance, self.cleaned_data.get("groups", []))

    def decides_something(self) -> bool:
        return self.told_after() != self.told(type(self.instance)(), [])

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("based_on") != fingerprint(self.told_before):
            now = "; ".join(f"{name}: {text[:100]}" for name, text in self.told_before.items())
            raise ValidationError(
                "Somebody else changed this after you opened it, so nothing was saved. "
                f"It is now: {now}. Open the page again and make your changes there.",
                code="outdated",
            )
        if not (self.is_known() or cleaned.get("reset")):
            raise ValidationError("Code does not have it any more. All you can do is forget it.")
        return cleaned


def groups_of(row: Any) -> list[Group]:
    """The groups of a row that has any, and that is stored."""
    return [] if row.pk is None or not hasattr(row, "groups") else list(row.groups.all())


def fingerprint(told: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def names_of_groups(groups: Iterable[Group]) -> str:
    return ", ".join(sorted(group.name for group in groups)) or "everybody"
