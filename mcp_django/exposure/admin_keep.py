"""What was not sent stays as it is, bit for bit, although the form checks and saves it all.

A browser sends every field, and what it shows has lost something already: outer spaces, line
breaks, microseconds, a choice that is none any more. So in the form of one call each field that
was not sent is disabled, and cleans to what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from django.core.exceptions import ObjectDoesNotExist
from django.forms import BaseForm
from django.http import HttpRequest

Place: TypeAlias = tuple[str, int]


@dataclass(kw_only=True, eq=False)
class Posted:
    """What one POST sends: names of fields of the form, and of the rows in formsets."""

    names: frozenset[str] = frozenset()
    #: By prefix of the formset and place in it. New rows are there, too.
    rows: Mapping[Place, frozenset[str]] = field(default_factory=dict)


@dataclass(kw_only=True, eq=False)
class Made:
    """The forms that a view made of what a copy of its ModelAdmin gave to it."""

    forms: list[BaseForm] = field(default_factory=list)
    formsets: list[Any] = field(default_factory=list)

    def has(self, form: BaseForm) -> bool:
        """False for a form of somewhere else: the view handed over to another ModelAdmin, so
        that nothing done to the copy counts.
        """
        return any(one is form for one in self.forms)

    def has_formset(self, formset: Any) -> bool:
        return any(one is formset for one in self.formsets)


def watch_forms(one_call: Any, posted: Posted | None = None) -> Made:
    """Remember the forms made through a copy of a ModelAdmin, and keep what is not posted."""
    made = Made()
    get_form = one_call.get_form
    get_formsets = one_call.get_formsets_with_inlines

    def form_class(request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        found = get_form(request, obj, **kwargs)
        is_kept = posted is not None and kwargs.get("change")
        return watched_form(found, made, posted.names if posted and is_kept else None)

    def formset_classes(request: HttpRequest, obj: Any = None) -> Any:
        for kind, inline in get_formsets(request, obj):
            yield watched_formset(kind, made, None if posted is None else posted.rows), inline

    one_call.get_form = form_class
    one_call.get_formsets_with_inlines = formset_classes
    return made


def watched_form(base: Any, made: Made, names: Collection[str] | None) -> Any:
    """A class that makes what calling `base` makes.

    Some sites return a class whose __new__ makes a form of another one, to pass the request on.
    """

    def make(cls: Any, *args: Any, **kwargs: Any) -> Any:
        form = base(*args, **kwargs)
        made.forms.append(form)
        if names is not None:
            keep(form, names)
        return form

    # Not through the metaclass: it would make the fields anew, without what `get_form` of the
    # site did to them afterwards.
    return type.__new__(type(base), base.__name__, (base,), {"__new__": make})


def watched_formset(
    base: Any, made: Made, rows: Mapping[Place, frozenset[str]] | None
) -> type[Any]:
    class Watched(base):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            made.formsets.append(self)

        def add_fields(self, form: Any, index: int | None) -> None:
            super().add_fields(form, index)
            if rows is None or index is None:
                return
            if index < self.initial_form_count():
                keep(form, rows.get((self.prefix, index), frozenset()) | own_fields(self))
            else:
                # A new row of nothing but defaults would be dropped without a word.
                form.empty_permitted = False

    Watched.__name__ = base.__name__
    return Watched


def own_fields(formset: Any) -> frozenset[str]:
    """What a formset puts into the form of each row: nobody sets these."""
    parent = getattr(formset, "fk", None)
    names = {formset._pk_field.name, "DELETE", "ORDER"}
    return frozenset(names if parent is None else {*names, parent.name})


def is_stored(form: Any, name: str) -> bool:
    """Whether a field of the form shows a field of the record, and not something of its own."""
    opts = form.instance._meta
    known = {one.name for one in (*opts.fields, *opts.many_to_many)}
    return name in known and name in form.initial


def keep(form: Any, sent: Collection[str]) -> None:
    """Take all fields but these as they are stored. Rules over the whole record still hold."""
    kept = set()
    for name, one in list(form.fields.items()):
        if name in sent:
            # Else what is stored would be compared without them, and count as changed.
            one.widget.supports_microseconds = True
            continue
        if one.disabled or not is_stored(form, name):
            continue
        try:
            value = stored(form.instance, name)
        except ObjectDoesNotExist:
            # A key that leads nowhere can be kept only by leaving it alone.
            del form.fields[name]
            continue
        one.disabled = True
        one.clean = returning(value)
        kept.add(name)
    form.full_clean = without_checks(form, form.full_clean, kept)


def stored(instance: Any, name: str) -> Any:
    """No storage is asked about files, no text is stripped, no choice is looked up."""
    one = instance._meta.get_field(name)
    if one.many_to_many:
        return list(getattr(instance, name).all())
    return getattr(instance, name) if one.is_relation else one.value_from_object(instance)


def returning(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


def without_checks(form: Any, full_clean: Any, kept: set[str]) -> Callable[[], None]:
    """The same, without checks of kept values: `limit_choices_to` may have changed since."""

    def clean() -> None:
        instance = form.instance
        clean_fields = instance.clean_fields
        instance.clean_fields = lambda exclude=None: clean_fields(
            exclude={*(exclude or ()), *kept}
        )
        try:
            full_clean()
        finally:
            del instance.clean_fields

    return clean
