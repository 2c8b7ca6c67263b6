"""One form of the admin as a call submits it: what is sent, what stays, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from itertools import chain
from typing import Any

from django.contrib.admin.utils import flatten_fieldsets
from django.core.exceptions import ValidationError
from django.forms import BaseForm, BoundField
from django.forms.models import ModelMultipleChoiceField
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject
from django.utils.text import slugify

from mcp_django.exceptions import FormRefused
from mcp_django.exposure.admin_bridge.relations import (
    AdminDescriber,
    find_members,
    find_related,
    join_members,
    names_as_text,
    posted_key,
    takes_names,
)
from mcp_django.exposure.fields import quoted
from mcp_django.exposure.forms.schemas import InvalidValue, errors_of
from mcp_django.exposure.forms.values import (
    Pair,
    check_understood,
    data_of,
    data_of_initial,
    meaning,
    pairs_of,
    takes_json,
)
from mcp_django.exposure.permissions import Rights

#: Sentences in one answer, and those of them about names that nobody knows.
MOST_SENTENCES, MOST_UNKNOWN = 20, 5
#: What Django says there has the `str()` of records in it.
OURS = {"deleting_protected": "This row cannot be deleted: other records refer to it."}
#: Names that a sentence offers.
MOST_NAMES = 60
#: Names of a short form, which an error of a field out of sight may depend on.
MOST_HINTED = 10


class SubmittedForm:
    """The form of a record with its formsets, as one call fills it in.

    An error is found by its path: the name of a field, `parts-0.qty` in a row, `parts` for all
    rows, "" for the record.
    """

    def __init__(self, rights: Rights, *, names: Collection[str]) -> None:
        self.rights = rights
        #: What is posted: the formsets about themselves, and for code of the site that looks into
        #: `form.data` what the call sends. Django's forms do not read that.
        self.pairs: list[Pair] = []
        #: The fields that this caller can set, by the prefix of the formset, with "" for the
        #: record. No other field is named.
        self.names: dict[str, Collection[str]] = {"": names}
        #: The fields that the call sends, by the prefix of the form, with "" for the record.
        self.sent: dict[str, frozenset[str]] = {}
        #: By the prefix of the form, with "" for the record, and by the field: fills in the field
        #: of a form that is posted.
        self.values: dict[tuple[str, str], Callable[[BaseForm], None]] = {}
        #: The forms that are shown, by their prefix, with "" for the record. What they begin with
        #: is not always in those that are posted.
        self.shown: dict[str, BaseForm] = {}
        #: By the prefix of its form: a row as the caller knows it, whose list has other places.
        self.rows: dict[str, str] = {}
        #: Each sentence once, in the order in which they were said.
        self.errors: dict[str, dict[str, None]] = {}

    def refuse(self, path: str, sentence: str) -> None:
        self.errors.setdefault(path, {})[sentence] = None

    def refuse_unknown(
        self,
        given: Iterable[str],
        allowed: Collection[str],
        *,
        what: str = "a field",
        path: str = "",
    ) -> None:
        """The same sentence for a field that is hidden, read-only, or was never there."""
        names = list(allowed)
        unknown = [name for name in given if name not in names]
        can = ", ".join(names[:MOST_NAMES]) or "nothing"
        for name in unknown[:MOST_UNKNOWN]:
            close = get_close_matches(name[:60], names, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            self.refuse(
                path, f"{quoted(name)} is not {what} that you can set.{hint} You can set: {can}."
            )
        if unknown[MOST_UNKNOWN:]:
            self.refuse(path, f"Nor are {len(unknown) - MOST_UNKNOWN} more.")

    def add_form(
        self,
        form: Any,
        values: Mapping[str, Any],
        *,
        sources: Mapping[str, Sequence[str]],
        path: str = "",
    ) -> None:
        """Have the form that is posted take these values. `form` is the one that is shown.
        `sources` are the fields that the page makes of others.
        """
        names = self.names[path.rpartition("-")[0]]
        self.shown[path], self.sent[path] = form, frozenset(values)
        self.refuse_unknown(values, names, path=path)
        given = {name: values[name] for name in names if name in values}
        given |= prepopulated(form, sources, given)
        for name, value in given.items():
            bound = form[name]
            try:
                data, clean = self._read(bound, value)
            except InvalidValue as error:
                self.refuse(f"{path}.{name}" if path else name, str(error))
                data, clean = INVALID_DATA, partial(refuse_value, str(error))
            else:
                with suppress(Exception):  # widgets were written for what their own pages send
                    self.pairs += pairs_of(bound.field.widget, bound.html_name, data)
            self.values[path, name] = partial(send, name=name, data=data, clean=clean)

    def _read(self, bound: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
        """Return the data of a field, and what cleans them in place of `field.clean`. Raises
        InvalidValue.
        """
        field = bound.field
        if isinstance(field, ModelMultipleChoiceField):
            keys, left, hidden = find_members(self.rights, bound, value)
            data = [*keys, *(posted_key(field, one) for one in (*left, *hidden))]
            return [*dict.fromkeys(data)], partial(
                join_members, keys=keys, left=left, hidden=hidden
            )
        if isinstance(value, dict | list) and takes_names(bound):
            value = names_as_text(bound, value)
        meant = meaning(field, value, find=partial(find_related, self.rights))
        return data_of(field, meant), partial(check_understood, meant=meant)

    def collect_errors(self, context: Mapping[str, Any]) -> None:
        """Take the errors of a form that the admin shows again."""
        if "adminform" not in context:
            return
        formsets = [
            formset
            for one in context.get("inline_admin_formsets", ())
            for formset in (one.formset, *all_nested(one.formset))
        ]
        describer = AdminDescriber(self.rights)
        for path, error in errors_of(context["adminform"].form, formsets, describer=describer):
            if not self._can_set(path):
                names = self.names[""]
                few = len(names) <= MOST_HINTED
                hint = f" It may depend on these: {', '.join(names)}." if few else ""
                self.refuse(
                    "",
                    f"The form of the admin refuses this for a field that you cannot set.{hint}",
                )
                continue
            sentence = OURS.get(error["code"]) or str(error["message"])
            if "allowed" in error:
                sentence += f" Use one of: {', '.join(map(str, error['allowed']))}."
            if path in self.names[""] and path not in self.sent[""]:
                sentence += " (You did not send this field.)"
            self.refuse(path, sentence)

    def _can_set(self, path: str) -> bool:
        if path in self.names or path in self.names[""]:
            return True
        row, _, name = path.partition(".")
        prefix = row.rpartition("-")[0]
        return prefix != "" and prefix in self.names and (not name or name in self.names[prefix])

    def raise_errors(self) -> None:
        """Raise FormRefused with all of them, if there are any."""
        sentences = []
        for path, own in self.errors.items():
            row, _, name = path.partition(".")
            place = ": ".join(part for part in (self.rows.get(row, row), name) if part)
            sentences += [f"{place}: {sentence}" if place else sentence for sentence in own]
        if more := sentences[MOST_SENTENCES:]:
            sentences[MOST_SENTENCES:] = [f"There are {len(more)} more errors."]
        if sentences:
            raise FormRefused("\n".join(["Nothing was saved.", *sentences]))


# A value goes into the field of a form as it is, and what was not sent stays, bit for bit, though
# the form checks and saves it all.
#
# A browser sends each field as a text, and what it shows has lost something already: outer spaces,
# line breaks, microseconds, a choice that is no longer offered.

#: The data of a field whose value was refused.
INVALID_DATA: Any = object()


class SentField(BoundField):
    """A field of a bound form whose data are a value of the call, not a text of its widget."""

    data: Any = None

    def _has_changed(self) -> bool:
        if self.field.disabled or self.data is INVALID_DATA:
            return not self.field.disabled
        return bool(self.field.has_changed(self.initial, self.data))


def send(form: Any, *, name: str, data: Any, clean: Callable[..., Any] | None = None) -> None:
    """Fill in a field of a form that is posted. `clean` is called in place of its own, with that
    and with what it is called with.
    """
    field = form.fields[name]
    # Else what is stored would be compared without them, and count as changed.
    field.widget.supports_microseconds = True
    if clean is not None:
        field.clean = partial(clean, field.clean)
    form._bound_fields_cache[name] = bound = SentField(form, field, name)
    bound.data = data


def refuse_value(sentence: str, *args: Any) -> None:
    raise ValidationError(sentence)


def watch_forms(one_call: Any, see: Callable[[Any], None]) -> None:
    """Have a copy of a ModelAdmin pass each form of a record that it makes to `see`.

    A form that is not seen was made by another ModelAdmin, to which the view handed over: nothing
    done to the copy counts.
    """
    get_form = one_call.get_form

    def form_class(request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        base = get_form(request, obj, **kwargs)

        # Some sites return a class whose __new__ makes another form, to pass the request on.
        def make(cls: Any, *args: Any, **kwargs: Any) -> Any:
            form = base(*args, **kwargs)
            see(form)
            return form

        # Not through the metaclass: it would make the fields anew, without what `get_form` of the
        # site did to them afterwards.
        return type.__new__(type(base), base.__name__, (base,), {"__new__": make})

    one_call.get_form = form_class


def fill_in_forms(one_call: Any, submitted: SubmittedForm) -> None:
    """Have the forms of a copy of a ModelAdmin take what is submitted, and keep the rest."""
    create_formsets = one_call._create_formsets

    def fill_in(form: Any) -> None:
        apply_values(submitted, form)
        if submitted.errors:
            # Nothing is saved, and all that is wrong is told at once.
            form.is_valid = lambda: False

    def filled_formsets(*args: Any, **kwargs: Any) -> Any:
        created = create_formsets(*args, **kwargs)
        # Packages make the formsets within rows in here, and may return them as well.
        nested = chain.from_iterable(map(all_nested, created[0]))
        for formset in dict.fromkeys([*created[0], *nested]):
            for at, form in enumerate(formset.forms):
                apply_values(submitted, form, path=form.prefix, own=own_fields(formset))
                if at >= formset.initial_form_count():
                    # A new row of nothing but defaults would be dropped without a word.
                    form.empty_permitted = False
        return created

    watch_forms(one_call, fill_in)
    one_call._create_formsets = filled_formsets


def nested_formsets(form: Any) -> list[Any]:
    """The formsets within the form of a row: those of django-nested-admin, and those of
    django-unfold, which wraps them.
    """
    return [getattr(one, "formset", one) for one in getattr(form, "nested_formsets", None) or ()]


def all_nested(formset: Any) -> Iterator[Any]:
    """The formsets within the rows of a formset, on every level."""
    for form in formset.forms:
        for nested in nested_formsets(form):
            yield nested
            yield from all_nested(nested)


def own_fields(formset: Any) -> frozenset[str]:
    """What a formset puts into the form of each row: nobody sets these."""
    parent = getattr(formset, "fk", None)
    names = {formset._pk_field.name, "DELETE", "ORDER"}
    return frozenset(names if parent is None else {*names, parent.name})


def disable_unshown(form: Any, fieldsets: Any) -> None:
    """Disable the fields that the page does not show: the form declares them, and no fieldset
    names them. A form that is posted then leaves them out, as a browser does. None: it is unknown
    what the page shows.
    """
    on_page = form.fields if fieldsets is None else flatten_fieldsets(fieldsets)
    for name in form.fields.keys() - set(on_page):
        form.fields[name].disabled = True


def apply_values(
    submitted: SubmittedForm, form: Any, *, path: str = "", own: Collection[str] = ()
) -> None:
    """Give a form the values that the call sends. Its other fields stay as they are stored, or as
    the form begins with them, but for the formset's own. Rules over the whole record still hold.
    """
    kept = set()
    opts, is_new = form.instance._meta, form.instance._state.adding
    columns = {field.name for field in opts.fields}
    # What the form shows of the record, and not something of its own.
    stored_names = form.initial.keys() & {*columns, *(field.name for field in opts.many_to_many)}
    for name, field in list(form.fields.items()):
        beginning = submitted.shown.get(path, form)
        begun = beginning.fields.get(name, field)
        is_kept = not is_new and name in stored_names
        if name in own or (begun.disabled and not field.disabled and not is_kept):
            continue
        # Django asks whether a browser would have sent the field at all.
        field.widget.value_omitted_from_data = lambda *args: False
        initial = beginning.get_initial_for_field(begun, name)
        if field.show_hidden_initial:
            # A default that is a function may give another value each time.
            form.initial[name] = initial
        if (path, name) in submitted.values:
            submitted.values[path, name](form)
        elif field.disabled:
            continue
        elif not is_kept and takes_json(field):
            send(form, name=name, data=data_of_initial(field, initial))
        else:
            kept.add(name)
            if is_kept or (initial is None and name in columns):
                value = stored(form.instance, name)
            else:
                value = clean_nothing(field) if initial is None else initial
            # It counts as unchanged, whatever was posted. Its widget is not asked: some need more
            # than their own name.
            field.disabled = True
            send(form, name=name, data=None, clean=lambda *args, value=value: value)
            # Else Django would leave a field that only the model needs out of its checks.
            field.required |= type(value) is SimpleLazyObject
    leave_unchecked(form, kept)


def clean_nothing(field: Any) -> Any:
    """Return what a field makes of nothing: an empty list of tags, for example."""
    with suppress(ValidationError):
        return field.clean(None)
    return None


def stored(instance: Any, name: str) -> Any:
    """No storage is asked about files, no text is stripped, no choice is looked up, and no related
    record is read before code of the site looks at it.
    """
    field = instance._meta.get_field(name)
    if field.many_to_many:
        return list(getattr(instance, name).all())
    if field.is_relation:
        related = SimpleLazyObject(partial(getattr, instance, name))
        return None if getattr(instance, field.attname) is None else related
    value = field.value_from_object(instance)
    # Some fields read NULL as an empty text, which would count as the same in another row.
    is_null = field.null and value == "" and field.get_prep_value(value) is None
    return None if is_null else value


def leave_unchecked(form: Any, kept: set[str]) -> None:
    """Let the model check no kept values: `limit_choices_to` may have changed since. Related
    records are not set anew, which would read them, and fails where a key leads nowhere.
    """
    post_clean = form._post_clean

    def clean_model() -> None:
        instance, cleaned = form.instance, form.cleaned_data
        clean_fields = instance.clean_fields
        instance.clean_fields = lambda exclude=None: clean_fields(
            exclude={*(exclude or ()), *kept}
        )
        lazy = [name for name in kept if type(cleaned.get(name)) is SimpleLazyObject]
        related = {name: cleaned.pop(name) for name in lazy}
        try:
            post_clean()
        finally:
            del instance.clean_fields
        form.cleaned_data |= related

    form._post_clean = clean_model


def prepopulated(
    form: Any, fields: Mapping[str, Sequence[str]], given: Mapping[str, Any]
) -> dict[str, Any]:
    """What the page fills in by JavaScript while a person types."""
    found = {}
    for name, sources in fields.items():
        field = form.fields.get(name)
        words = [str(given[source]) for source in sources if given.get(source) is not None]
        # What a form has from the start is left alone there.
        if field is None or name in given or not words or form[name].value():
            continue
        text = slugify(" ".join(words), allow_unicode=getattr(field, "allow_unicode", False))
        found[name] = text[: getattr(field, "max_length", None) or None]
    return found
