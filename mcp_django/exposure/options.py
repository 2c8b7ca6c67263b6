"""What a site declares about a model: the ceiling of what any caller can get."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.db.models import Manager, Model, QuerySet
from django.http import HttpRequest

from mcp_django.exposure.limits import raise_lost_database
from mcp_django.levels import Level

#: Names of columns that are hidden unless code names them. Whole words between underscores, so
#: that "keyboard" and "monkey" stay.
CERTAIN = (
    "password|passwd|passphrase|passcode|pwd|secret|token|apikey|otp|totp|jwt|bearer|dsn|"
    "(recovery|backup)_?codes?|credentials?|cvv|ssn|(access|api|license|private|signing|ssh)_key"
)
#: Words for other things, too: these hide no column that the list of the admin has.
AMBIGUOUS = "key|private|hash|salt|auth|pin"
CERTAIN_WORDS = re.compile(rf"(^|_)({CERTAIN})\d*(_|$)", re.IGNORECASE)
SECRET_WORDS = re.compile(rf"(^|_)({CERTAIN}|{AMBIGUOUS})\d*(_|$)", re.IGNORECASE)
#: What other packages keep in tables that hold nothing else. Those that are made of one of these
#: are secret, too, so abstract ones are named as well.
SECRET_MODELS = frozenset(
    {
        "authtoken.token",
        "authtoken.tokenproxy",
        "knox.abstractauthtoken",
        "mfa.user_keys",
        "otp_static.statictoken",
        "rest_framework_api_key.abstractapikey",
        "sessions.session",
        "silk.request",
        "silk.response",
        "social_django.association",
        "social_django.code",
        "social_django.nonce",
        "social_django.partial",
        "socialaccount.socialtoken",
        "token_blacklist.outstandingtoken",
    }
)
SECRET_APPS = frozenset({"oauth2_provider", "mcp_django", "mcp_django_oauth"})
#: What no name betrays: seeds of second factors, answers of providers, settings that staff keep
#: in the database, addresses with a password in them, and copies of whole records.
SECRET_FIELDS: dict[str, frozenset[str]] = {
    "account.emailconfirmation": frozenset({"key"}),
    "configuration.setting": frozenset({"value"}),
    "constance.constance": frozenset({"value"}),
    "django_rest_passwordreset.resetpasswordtoken": frozenset({"key"}),
    "dynamic_preferences.basepreferencemodel": frozenset({"raw_value"}),
    "mfa.authenticator": frozenset({"data"}),
    "otp_webauthn.abstractwebauthncredential": frozenset({"credential_id", "public_key"}),
    "reversion.version": frozenset({"serialized_data"}),
    "social_django.abstractusersocialauth": frozenset({"extra_data"}),
    "socialaccount.socialaccount": frozenset({"extra_data"}),
    "socialaccount.socialapp": frozenset({"settings"}),
    "trans.component": frozenset({"push", "repo"}),
    "trans.project": frozenset({"machinery_settings"}),
}


def looks_secret(model: type[Model], name: str, *, listed: Container[str] = ()) -> bool:
    """Return whether a column must be named in code before anybody can see it. `listed` are those
    that the list or the search of the admin has.
    """
    field = model._meta.get_field(name)
    # Sites swap the models of packages for their own, which are made of an abstract one.
    for opts in (base._meta for base in model.__mro__ if hasattr(base, "_meta")):
        if opts.label_lower in SECRET_MODELS or opts.app_label in SECRET_APPS:
            return True
        if field.name in SECRET_FIELDS.get(opts.label_lower, ()):
            return True
    if isinstance(field, models.ForeignKey):
        return looks_secret(field.related_model, field.target_field.name)
    if field.is_relation or isinstance(field, models.BooleanField | models.DateField):
        return False
    words = CERTAIN_WORDS if name in listed else SECRET_WORDS
    return bool(words.search(name)) or isinstance(field, models.BinaryField)


#: In Django's form for a new user: not a password, but whether there is to be any.
NOT_SECRET = frozenset({"usable_password"})


def is_secret(model: type[Model], name: str) -> bool:
    """Like `looks_secret`, for fields of a form, which the model may not have."""
    try:
        return looks_secret(model, name)
    except FieldDoesNotExist:
        return bool(SECRET_WORDS.search(name)) and name not in NOT_SECRET


def is_named_in(names: Iterable[str], model: type[Model]) -> bool:
    """Return whether a setting names the model or its app."""
    own = {model._meta.app_label, model._meta.label_lower}
    return not own.isdisjoint(name.lower() for name in names)


def may_view(user: Any, model: type[Model]) -> bool:
    """Django's own rule: who may change a thing may see it, too."""
    return any(user.has_perm(name) for name in view_permissions(model))


def view_permissions(model: type[Model]) -> tuple[str, ...]:
    opts = model._meta
    return tuple(f"{opts.app_label}.{verb}_{opts.model_name}" for verb in ("view", "change"))


class ModelExposure:
    """How a model appears to assistants. Subclass it and register it, as with ModelAdmin.

    Nothing is exposed that is not listed here, and the rights of the caller come on top: see
    `mcp_django.exposure.permissions`. Paths go through relations with `__`, as in a queryset.
    """

    #: Paths that records show. There is no "all".
    fields: Sequence[str] = ()
    #: Columns that code computes: names that `list_display` of the ModelAdmin could have and that
    #: are no fields, and callables. None: those of `get_list_display(request)`. They are only for
    #: callers whom the ModelAdmin shows its list, and who see all of `fields`.
    computed: Sequence[str | Callable[[Any], Any]] | None = ()
    #: Paths taken away again from every use; for exposures that inherit.
    exclude: Sequence[str] = ()
    #: Whether callers may follow relations from and to this model without a listing: to show,
    #: filter, order and group by whatever the models on the way show them. At most three.
    follow_relations: bool = True
    #: Columns of the model among `fields` whose values callers get masked, with the kind of mask:
    #: "text" is a pseudonym, "email" one in the form of an address, "last4" the last characters.
    #: For these callers such a column is only shown, in records of this model, and of models and
    #: proxies that inherit from it. For every other use it does not exist.
    mask: Mapping[str, str] = MappingProxyType({})
    #: Names of the groups whose members get the masks. None: everybody.
    mask_groups: Sequence[str] | None = None
    #: Text columns of the model whose values strangers wrote. In answers these stand in fences,
    #: `<data-1f3a9c21>...</data-1f3a9c21>`, also in records of other models and as labels.
    untrusted_fields: Sequence[str] = ()
    #: Paths that filters may use. None: those of `fields`.
    filter_fields: Sequence[str] | None = None
    #: Paths that filters may use besides, whether records show them or not.
    more_filter_fields: Sequence[str] = ()
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
    #: Say that records are never shown, only numbers about groups of them. So it is as well where
    #: `level` is below READ.
    aggregates_only: bool = False
    #: Groups of fewer records are left out of aggregates. With `aggregates_only` at least 5.
    smallest_group: int = 0
    #: The order of records when the caller names none. Empty: by primary key.
    ordering: Sequence[str] = ()
    #: The path among `fields` that tells when a record was last changed.
    modified_field: str = ""
    #: What a model should know before it asks: units, conventions, pitfalls.
    description: str = ""
    #: Say that whoever may view the model may see every row of `get_queryset`: that it leaves out
    #: each object that `has_view_permission(request, obj)`, or an authentication backend with
    #: rules about objects, would refuse. Without it, a method of that name that looks at the
    #: object means that rows are judged one by one, so that they can be neither counted nor
    #: reached through relations.
    queryset_enforces_view_permission: bool = False
    #: Admin actions that assistants may run. Checked at start.
    actions: Sequence[str] = ()
    #: How much there is, and the most that staff can open. None: records and `actions`, and staff
    #: decide in the admin about more.
    level: Level | None = None
    #: Fields of the admin's form that may be set. None: all of it, but none that looks secret.
    write_fields: Sequence[str] | None = None

    # No annotation: these are no options.
    #: Whether code opened the model. Without that it waits for staff to do so.
    is_offered = True
    #: Fields of the admin whose names may mean a secret, such as "key": a superuser may open them.
    doubtful_fields = ()

    def __init__(self, model: type[Model]) -> None:
        self.model = model
        #: Its paths, once `paths.declaration_of` has resolved them.
        self.declaration: Any = None
        #: Whether a row narrowed it, so that some of what it declares may have lost its ground.
        self.is_restricted = False
        if self.level is not None and self.level < Level.READ:
            self.aggregates_only = True

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

    def is_masked(self, request: HttpRequest) -> bool:
        """Whether this request gets masks in place of the values of `mask`: members of
        `mask_groups`, and whoever is in no group because nobody is logged in.
        """
        if self.mask_groups is None:
            return True
        names = group_names(request.user)
        return names is None or not names.isdisjoint(self.mask_groups)

    def get_ordering(self, request: HttpRequest) -> Sequence[Any]:
        """The order of records for this request, as in `ordering`. It is used if the caller may
        order by every part of it.
        """
        return self.ordering

    @property
    def standard_level(self) -> Level:
        """The level while staff have decided nothing."""
        usual = Level.ACT if self.actions else Level.READ
        if not self.is_offered and not self.is_restricted:
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

    is_offered = False


def group_names(user: Any) -> frozenset[str] | None:
    """Return the names of the groups of a user, read once and kept on the object, as Django keeps
    permissions. None for somebody who cannot be in one.
    """
    groups = getattr(user, "groups", None)
    # A site's own user may have groups of another kind.
    if user.pk is None or groups is None or groups.model._meta.label != "auth.Group":
        return None
    if not hasattr(user, "_mcp_group_names"):
        user._mcp_group_names = frozenset(groups.values_list("name", flat=True))
    names: frozenset[str] = user._mcp_group_names
    return names


def has_plain_manager(model: type[Model]) -> bool:
    """Whether the default manager is Django's own, which gives every request the same rows."""
    # A subclass of Manager could answer differently, and so could a manager made from_queryset().
    return type(model._default_manager) is Manager


# Whether a rule of the site looks at the object that it is asked about.
#
# Rows that are judged one by one can be neither counted nor joined, so a rule is only asked about
# each row where its answer may differ from row to row. The methods of a ModelAdmin take an object
# whether they need it or not. To find out, a rule is asked about objects that tell nothing about
# themselves: where it answers without a look, it gives that answer for every object in this call.

#: Every way to learn something of an object, as Python names it.
SPECIAL = (
    "bytes", "call", "complex", "contains", "delattr", "delitem", "dir", "enter", "eq", "exit",
    "float", "format", "fspath", "ge", "getattribute", "getitem", "gt", "hash", "index", "int",
    "iter", "le", "lt", "ne", "next", "reduce_ex", "repr", "reversed", "setattr", "setitem", "str",
)  # fmt: skip


def read(self: Any, *arguments: Any) -> Any:
    """Note that somebody looked, whatever becomes of the error."""
    object.__setattr__(self, "is_read", True)
    raise RuntimeError("This object says nothing of itself.")


traps: dict[str, Any] = dict.fromkeys((f"__{name}__" for name in SPECIAL), read)
UnknownObject = type("UnknownObject", (), traps)
#: For models that say themselves whether an object is true. All others are.
UnknownTruth = type("UnknownTruth", (UnknownObject,), {"__bool__": read, "__len__": read})
#: What Django's fields, and others, ask of the `__dict__` of an object.
LOOKUPS = ("contains", "eq", "getitem", "iter", "len", "repr", "reversed")
METHODS = ("copy", "get", "items", "keys", "pop", "setdefault", "values")
looks: dict[str, Any] = dict.fromkeys((*(f"__{name}__" for name in LOOKUPS), *METHODS), read)
UnknownValues: Any = type("UnknownValues", (dict,), looks)


def looks_at_object(rule: Callable[[Any], Any], model: type[Model]) -> bool:
    """Whether the rule needs the object for its answer, or refuses any object of the model."""
    is_plain = not any(hasattr(model, name) for name in ("__bool__", "__len__"))
    unknown: Any = UnknownObject() if is_plain else UnknownTruth()
    if not permits_unread(rule, unknown, unknown):
        return True
    # It may have asked for the class, which nobody notices. So once more, with an object of the
    # model whose values are unknown.
    state, values = UnknownObject(), UnknownValues()
    dict.__setitem__(values, "_state", state)
    blank = object.__new__(model)
    object.__setattr__(blank, "__dict__", values)
    return not permits_unread(rule, blank, state, values)


def permits_unread(rule: Callable[[Any], Any], obj: Any, *parts: Any) -> bool:
    """Whether the rule says yes to an object and reads none of the parts that tell."""
    for one in parts:
        object.__setattr__(one, "is_read", False)
    try:
        answer = rule(obj)
    except Exception as error:
        raise_lost_database(error)
        return False
    return bool(answer) and not any(object.__getattribute__(one, "is_read") for one in parts)
