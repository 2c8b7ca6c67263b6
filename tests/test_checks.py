from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy

from mcp_django import checks
from mcp_django.asgi import get_mcp_application
from mcp_django.auth import DRF, DevUser, JWTBearer
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import Registry
from mcp_django.levels import Level
from tests.exposure.function_tools import tool_of

GOOD = {"PUBLIC_URL": "https://shop.example.com"}


def ours():
    return run_checks(tags=["mcp_django"], databases=[])


def ids():
    return [message.id.removeprefix("mcp_django.") for message in ours()]


@pytest.fixture(autouse=True)
def registry(monkeypatch, configure):
    """What the checks look at: nothing is exposed on a site with good settings."""
    configure(**GOOD)
    registry = Registry()
    monkeypatch.setattr(registry, "_candidates", {})
    monkeypatch.setattr(checks, "registry", registry)
    return registry


@pytest.fixture
def expose(registry, monkeypatch):
    """This exposure and nothing else."""

    def apply(bases=(ModelExposure,), **attributes):
        exposure = type("GroupExposure", bases, attributes)
        registry.register(Group, exposure)
        monkeypatch.setattr(registry, "_candidates", {Group: exposure(Group)})

    return apply


# Settings

TOKENS = "mcp_django.auth.PersonalTokens"
PLAIN = "tests.auth.plain_throttles"
OAUTH_OF_DRF = "oauth2_provider.contrib.rest_framework.OAuth2Authentication"


@pytest.mark.parametrize(
    ("given", "identifier", "words"),
    [
        ({}, "", ""),
        *(
            ({"AUTHENTICATORS": [TOKENS, entry]}, "E002", words)
            for entry, words in (
                ("nowhere.Nothing", "cannot be imported"),
                (".Nothing", "cannot be imported"),
                ("mcp_django.auth.Nothing", "cannot be imported"),
                ("mcp_django.auth.DevUser", "needs arguments"),
                ("collections.OrderedDict", "is no authenticator"),
                (object(), "is no authenticator"),
                (DRF(OAUTH_OF_DRF), ""),
            )
        ),
        ({"AUTHENTICATORS": [DevUser("alice")]}, "W001", ""),
        ({"AUTHENTICATORS": [DevUser("alice")], "DEBUG": True}, "", ""),
        ({"AUTHENTICATORS": ["mcp_django.auth.Anonymous"]}, "I002", ""),
        ({"THROTTLES": ["tests.nothing.There"]}, "E010", "There' cannot be imported"),
        ({"THROTTLES": ["nonsense"]}, "E010", "'nonsense' cannot be imported"),
        ({"THROTTLES": [f"{PLAIN}.NoThrottle"]}, "E010", "NoThrottle' is no throttle"),
        *(
            ({name: value}, "", "")
            for name, value in (
                *(("THROTTLES", [f"{PLAIN}.OnlyReading"]), ("TOOL_TIMEOUT", 1)),
                *(("QUERY_THREADS", 2), ("QUERY_THREADS", None), ("ADMIN_SITES", ())),
                *(("DRY_RUNS_PER_MINUTE", 0), ("DRY_RUN_SECONDS_PER_MINUTE", 0.5)),
                *(("RUN_MIDDLEWARE", []), ("RUN_MIDDLEWARE", "none")),
                ("STAFF_MAY_OPEN", ["shop", "auth.User"]),
                *(("PUBLIC_URL", url) for url in ("http://127.0.0.1:8000", "https://[::1]:8443")),
            )
        ),
        *(
            ({"PUBLIC_URL": url}, "E004", url)
            for url in (
                *("shop.example.com", "https://", "https://[::1", "ftp://shop.example.com"),
                *(f"https://shop.example.com{more}" for more in ("/", "/mcp", "?x", ":port")),
                "https://user@shop.example.com",
            )
        ),
        ({"PUBLIC_URL": "https://shop.example.com/", "DEBUG": True}, "E004", ""),
        ({"AUTHENTICATORS": []}, "E001", f'"AUTHENTICATORS": ["{TOKENS}"]'),
        ({"NAMES": "x"}, "E003", "Write 'NAME'."),
        *(({key: 1}, "E003", "The keys are: ADMIN_SITES") for key in ("XQZ", 5)),
        ({"NAME": 3}, "E003", "a string"),
        *(
            ({"MAX_BODY": size}, "E003", "a positive whole number")
            for size in ("4 MB", 0, True, 1.5)
        ),
        ({"TOOL_TIMEOUT": "1"}, "E003", "a positive number"),
        ({"READ_ONLY": 1}, "E003", "True or False"),
        *(({"ADMIN_SITES": names}, "E003", "a list of strings") for names in ("admin", [1])),
        ({"AUTHENTICATORS": "mcp_django.auth.Anonymous"}, "E003", "a list"),
        ({"RUN_MIDDLEWARE": 1}, "E003", "a string or a list"),
        ({"KEEP_CHANGES": None}, "E003", "a list of apps and models"),
        *(
            ({"STAFF_MAY_OPEN": names}, "E003", "a list of apps and models")
            for names in ("shop", ["shop.ordr"])
        ),
        ({"QUERY_THREADS": 0}, "E003", "None or a positive number"),
    ],
)
def test_a_mistake_in_the_settings_has_the_message_of_its_check_and_a_hint(
    settings, given, identifier, words
):
    settings.DEBUG = given.get("DEBUG", False)
    settings.MCP_DJANGO = {**GOOD, **given}
    settings.MCP_DJANGO.pop("DEBUG", None)

    messages = ours()

    assert ids() == [identifier] * bool(identifier)
    for message in messages:
        assert message.hint
        assert words in f"{message.msg} {message.hint}"


@pytest.mark.parametrize("given", [None, ["NAME"]], ids=str)
def test_settings_that_cannot_be_read_are_one_error_and_no_crash(settings, given):
    settings.MCP_DJANGO = given

    assert ids() == ["E003"]


@pytest.mark.parametrize(("deploy", "expected"), [(False, []), (True, ["mcp_django.E004"])])
def test_an_address_is_required_for_deployment_only(configure, deploy, expected):
    configure(PUBLIC_URL="")

    found = run_checks(tags=["mcp_django"], include_deployment_checks=deploy, databases=[])

    assert [one.id for one in found if one.id == "mcp_django.E004"] == expected


# Exposures


@admin.display(description="Shout")
def shout_of(group):
    return group.name.upper()


NO_ADMIN, NO_ALL = "django.contrib.admin", 'There is no "all": name each.'
#: Attributes, what is not installed, and the words of the error and its hint.
EXPOSURES = [
    ({"fields": ["name", "nme"]}, "", "nme"),
    ({"actions": ["shout"]}, "", 'no ModelAdmin of auth.group has "shout"'),
    ({"actions": ["shout"]}, NO_ADMIN, "django.contrib.admin is not installed"),
    ({"computed": ["natural_key"]}, NO_ADMIN, "computed: there is no ModelAdmin of the model."),
    # A text in place of a list
    *(
        ({name: text}, "", f"{name} is the text {text!r}, and must be a list of names. {hint}")
        for name, text, hint in (
            ("fields", "__all__", f'{NO_ALL} fields = ["id"]'),
            ("search_fields", "name", 'search_fields = ["name"]'),
            ("actions", "delete_selected", 'actions = ["delete_selected"]'),
            ("computed", "shout", 'computed = ["shout"]'),
            ("mcp_fields", "__all__", f'{NO_ALL} mcp_fields = ["id"]'),
        )
    ),
    # Computed columns
    *(({"computed": [column]}, "", None) for column in ("natural_key", shout_of, "__str__")),
    *(
        ({"computed": [column]}, "", f"auth.group: computed: {problem}")
        for column, problem in (
            ("shout", "'shout' is neither an attribute of the ModelAdmin or the model, nor an"),
            *(
                (name, f"{name!r} is a field; list it in fields.")
                for name in ("name", "permissions", "permissions__codename")
            ),
            *(
                (name, f"{name!r} is Django's own and no column.")
                for name in ("delete", "action_checkbox")
            ),
            ("no name", "'no name' has no name that a call could use."),
            (lambda group: 1, "'<lambda>' has no name that a call could use."),
            (5, "5 is neither a name nor a callable."),
        )
    ),
]


@pytest.mark.parametrize(("attributes", "missing", "words"), EXPOSURES, ids=range(len(EXPOSURES)))
def test_a_name_that_leads_nowhere_is_an_error_that_says_what_to_write(
    expose, monkeypatch, attributes, missing, words
):
    installed = apps.is_installed
    monkeypatch.setattr(apps, "is_installed", lambda name: name != missing and installed(name))
    attributes = {"fields": ["name"], **attributes}
    if "mcp_fields" in attributes:
        text = attributes.pop("mcp_fields")
        monkeypatch.setattr(admin.site._registry[Group], "mcp_fields", text, raising=False)
    expose(**attributes)

    messages = ours()

    assert [message.id for message in messages] == ["mcp_django.E005"] * (words is not None)
    for message in messages:
        assert words in f"{message.msg} {message.hint}"


@pytest.mark.parametrize(("name", "count"), [("say_hello", 0), ("Say Hello!", 1), ("pay", 0)])
def test_a_name_that_no_tool_can_have_is_an_error(expose, monkeypatch, name, count):
    def shout(modeladmin, request, queryset):
        """Shout."""

    shout.mcp_name = name
    expose(fields=["name"], actions=["shout"])
    monkeypatch.setattr(admin.site._registry[Group], "actions", [shout])

    messages = ours()

    assert [message.id for message in messages] == ["mcp_django.E005"] * count
    for message in messages:
        assert "the tool of auth.group.shout cannot be called 'Say Hello!'" in message.msg
        assert "It is called 'auth_group_shout' meanwhile." in message.msg


class Moody(admin.ModelAdmin):  # type: ignore[type-arg]  # no subscript at run time
    """What it has depends on the request."""

    def get_actions(self, request):
        return {}

    def get_queryset(self, request):
        return super().get_queryset(request)


@pytest.mark.parametrize("attributes", [{"actions": ["shout"]}, {"computed": ["member_count"]}])
def test_what_depends_on_the_request_is_not_judged(expose, monkeypatch, attributes):
    expose(fields=["name"], **attributes)
    monkeypatch.setitem(admin.site._registry, Group, Moody(Group, admin.site))

    assert ids() == []


def test_an_application_without_the_app_says_what_is_missing(settings):
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if "mcp" not in app]

    with pytest.raises(ImproperlyConfigured, match='"mcp_django" is missing in INSTALLED_APPS'):
        get_mcp_application()


@pytest.mark.parametrize(
    ("permission", "hint"),
    [
        ("auth.veiw_user", "auth.view_user"),
        ("shop.view_ordr", "shop.view_order"),
        *(
            (name, "")
            for name in ("auth.view_user", "auth.audit_user", "elsewhere.close_books", bool)
        ),
    ],
)
def test_a_permission_that_no_model_has_is_told_with_the_one_that_was_meant(
    registry, permission, hint
):
    def close_books() -> str:
        """Close the books."""
        return ""

    registry.add_tool(tool_of(close_books, read_only=True, permission=permission))

    assert [message.hint for message in ours()] == ([f'permission="{hint}"'] if hint else [])


def a_method(self, request, obj=None): ...


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("search_feilds", ["name"], "search_fields"),
        ("serch_fields", "name", "search_fields"),
        ("fileds", ("name",), "fields"),
        ("exlude", ["name"], "exclude"),
        ("agregates_only", True, "aggregates_only"),
        ("smalest_group", 5, "smallest_group"),
        ("desciption", gettext_lazy("Groups"), "description"),
        ("levl", Level.READ, "level"),
        ("get_querset", lambda self, request: None, "get_queryset"),
        ("has_veiw_permission", a_method, "has_view_permission"),
        ("list_filter", ["name"], "filter_fields"),
        ("list_display", ["name"], "fields"),
        ("readonly_fields", ["name"], "write_fields"),
        ("queryset", Group.objects.all(), "get_queryset"),
        ("has_change_permission", a_method, "ModelAdmin"),
        ("mcp_actions", ["shout"], "actions"),
    ],
)
def test_an_attribute_that_was_meant_for_an_exposure_is_named_with_what_to_write(
    expose, name, value, meant
):
    expose(fields=["name"], **{name: value})

    [message] = ours()

    assert message.id == "mcp_django.W010"
    assert message.msg.startswith(f"GroupExposure has the attribute {name}, ")
    assert meant in message.hint


class Both:
    """A mixin that serves an admin as well."""

    list_filter = ("name",)
    has_change_permission = a_method


OWN = {
    "_search_feilds": ["name"],
    "get_field": lambda self, name: None,
    "get_queryset_of": lambda self, request, tenant: None,
    "search": lambda self, text: None,
    "fieldset": lambda self, request: None,
    "table_fields": ["name"],
    "levels": {"a": 1},
    "labels": {"name": "Name"},
    "describe": staticmethod(str),
    "descriptions": property(str),
    "orders": [1, 2],
    "exclude_test_rows": True,
    "tenant_field": "tenant",
    "model": Group,
    "Meta": type("Meta", (), {}),
}


def test_what_a_site_adds_to_an_exposure_for_itself_is_its_own_business(expose):
    expose((Both, ModelExposure), fields=["name"], **OWN)

    assert ours() == []


def test_a_misspelt_attribute_of_a_base_class_is_one_warning(registry, monkeypatch):
    class Base(ModelExposure):
        fields = ("id",)
        serach_fields = ("name",)

    classes = {model: type(f"{model.__name__}Exposure", (Base,), {}) for model in (Group, User)}
    exposures = {model: exposure(model) for model, exposure in classes.items()}
    monkeypatch.setattr(registry, "_candidates", exposures)

    [message] = ours()

    assert message.obj is Base
    assert message.hint.startswith("Write search_fields.")


def test_declarations_that_cannot_be_resolved_are_one_error_whatever_the_backends(
    settings, monkeypatch
):
    settings.AUTHENTICATION_BACKENDS = ["tests.sites.restricted.ObjectPermissionBackend"]

    class Broken(Registry):
        def _resolve(self):
            raise ImproperlyConfigured("GroupExposure lists no fields.")

    monkeypatch.setattr(checks, "registry", Broken())

    assert [(one.id, one.msg) for one in ours()] == [
        ("mcp_django.E005", "GroupExposure lists no fields.")
    ]


@pytest.mark.needs("jwt")
@pytest.mark.parametrize(
    ("changes", "urls", "said"),
    [
        ({}, "tests.urls", []),
        ({}, "tests.workshop.urls", ["mcp_django.W011"]),
        ({"PUBLIC_URL": ""}, "tests.urls", ["mcp_django.W011"]),
        ({"AUTHENTICATORS": []}, "tests.workshop.urls", ["mcp_django.E001"]),
    ],
)
def test_tokens_whose_issuer_clients_do_not_find_are_warned_of(settings, changes, urls, said):
    issuer = "https://login.example.com"
    found = JWTBearer(issuer, jwks_url=f"{issuer}/keys", user=len, audience="shop")
    settings.DEBUG, settings.ROOT_URLCONF = True, urls
    usual = {"PUBLIC_URL": "https://shop.example.com", "AUTHENTICATORS": [found]}
    settings.MCP_DJANGO = {**usual, **changes}

    about_tokens = [one for one in ours() if one.id in {"mcp_django.W011", "mcp_django.E001"}]

    assert [one.id for one in about_tokens] == said
