"""What a site declares about a model: the ceiling of what any caller can get."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from django.db.models import BinaryField, Model, QuerySet
from django.http import HttpRequest

from mcp_django.levels import Level

#: Names of columns that are hidden unless code names them. Whole words between underscores, so
#: that "keyboard" and "monkey" stay.
SECRET_WORDS = re.compile(
    r"(^|_)(password|passwd|passphrase|secret|token|key|apikey|private|hash|otp|salt|auth|"
    r"credentials?|pin|cvv|ssn)\d*(_|$)",
    re.IGNORECASE,
)
SECRET_MODELS = frozenset({"sessions.session", "authtoken.token", "authtoken.tokenproxy"})
SECRET_APPS = frozenset({"oauth2_provider", "mcp_django"})


def looks_secret(model: type[Model], name: str) -> bool:
    """Whether a column must be named in code before anybody can see it."""
    opts = model._meta
    if opts.label_lower in SECRET_MODELS or opts.app_label in SECRET_APPS:
        return True
    field = opts.get_field(name)
    return bool(SECRET_WORDS.search(name)) or isinstance(field, BinaryField)


def may_view(user: Any, model: type[Model]) -> bool:
    """Django's own rule: who may change a thing may see it, too."""
    opts = model._meta
    return bool(
        user.has_perm(f"{opts.app_label}.view_{opts.model_name}")
        or user.has_perm(f"{opts.app_label}.change_{opts.model_name}")
    )


class ModelExposure:
    """How a model appears to assistants. Subclass it and register it, as with ModelAdmin.

    Nothing is exposed that is not listed here, and the rights of the caller come on top: see
    `mcp_django.exposure.permissions`. Paths go through relations with `__`, as in a queryset.
    """

    #: Paths that records show. There is no "all".
    fields: Sequence[str] = ()
    #: Paths taken away again from every use; for exposures that inherit.
    exclude: Sequence[str] = ()
    #: Paths that filters may use. None: those of `fields`.
    filter_fields: Sequence[str] | None = None
    #: Paths that records may be ordered by. None: those of `fields` that do not multiply rows.
    order_fields: Sequence[str] | None = None
    #: Paths that `search` looks into, with the prefixes of ModelAdmin.search_fields: ^ begins
    #: with, = equals, @ full text (PostgreSQL with django.contrib.postgres; else contains).
    search_fields: Sequence[str] = ()
    #: Columns that stand for a record of this model where another one refers to it.
    label_fields: Sequence[str] = ()
    #: Paths that aggregates may group by, which shows their values. None: those of `fields` that
    #: are neither unique nor long texts.
    group_fields: Sequence[str] | None = None
    #: Paths that aggregates may measure. None: numbers, durations, dates and times of `fields`.
    #: One that is not in `fields` has a sum and an average only, over groups that are not small.
    metric_fields: Sequence[str] | None = None
    #: Say that records are never shown, only numbers about groups of them.
    aggregates_only: bool = False
    #: Groups of fewer records are left out of aggregates. With `aggregates_only` at least 5.
    smallest_group: int = 0
    #: The order of records when the caller names none. Empty: by primary key.
    ordering: Sequence[str] = ()
    #: The path among `fields` that tells when a record was last changed.
    modified_field: str = ""
    #: What a model should know before it asks: units, conventions, pitfalls.
    description: str = ""
    #: Say that `get_queryset` leaves out every object that `has_view_permission(request, obj)`
    #: would refuse. Without it, overriding that method means that rows are judged one by one,
    #: so that they can be neither counted nor reached through relations.
    rows_are_enough: bool = False
    #: Admin actions that assistants may run. Checked at start.
    actions: Sequence[str] = ()
    #: How much there is, and the most that staff can open. None: records and `actions`, and staff
    #: decide in the admin about more.
    level: Level | None = None
    #: Fields of the admin's form that may be set. None: all of it, but none that looks secret.
    write_fields: Sequence[str] | None = None

    def __init__(self, model: type[Model]) -> None:
        self.model = model
        #: Whether a row narrowed it, so that some of what it declares may have lost its ground.
        self.is_narrowed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.label}>"

    @property
    def label(self) -> str:
        """The model's name in URIs and tool arguments, such as "shop.order"."""
        return self.model._meta.label_lower

    # Override one of the next two, and the exposure decides by itself who sees what: the admin
    # is not asked any more, so people who are not staff can be served.

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The rows that this request may see."""
        return self.model._default_manager.get_queryset()

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whether this request may see the model, or one object of it."""
        return may_view(request.user, self.model)

    def get_fields(self, request: HttpRequest) -> Sequence[str] | None:
        """The first names of the paths that this request may use. None: all that are declared."""
        return None

    @property
    def is_offered(self) -> bool:
        """Whether code opened the model. Without that it waits for staff to do so."""
        return True

    @property
    def standard_level(self) -> Level:
        """The level while staff have decided nothing."""
        usual = Level.ACT if self.actions else Level.READ
        if not self.is_offered and not self.is_narrowed:
            usual = Level.HIDDEN
        return min(self.highest_level, usual if self.level is None else self.level)

    @property
    def is_definition_only(self) -> bool:
        """Whether there are neither records nor numbers, only the names of what there is."""
        return self.standard_level < Level.AGGREGATES

    @property
    def highest_level(self) -> Level:
        """The level that staff cannot go beyond."""
        most = Level.AGGREGATES if self.aggregates_only else Level.WRITE
        return most if self.level is None else min(most, self.level)

    def overrides(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(ModelExposure, name)

    @property
    def decides_itself(self) -> bool:
        return self.overrides("get_queryset") or self.overrides("has_view_permission")


class WaitingExposure(ModelExposure):
    """A model that the admin has and code did not open."""

    @property
    def is_offered(self) -> bool:
        return False
