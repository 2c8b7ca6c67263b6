from __future__ import annotations

import itertools
import os
import re
import secrets
from contextlib import contextmanager
from pathlib import Path

import pytest
from asgiref.sync import SyncToAsync
from django.contrib.auth.models import Permission
from django.core.cache import caches
from django.db import connections
from django.test import TransactionTestCase
from django.urls import clear_script_prefix
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

import mcp_django as mcp
from mcp_django.auth import authenticate, resource, throttles
from mcp_django.conf import get_config
from mcp_django.exposure.decisions import decisions
from mcp_django.exposure.registry import registry
from mcp_django.models import ExposedModel, ExposedPrompt, ExposedTool, ServerSettings
from mcp_django.protocol.revisions import Revision
from mcp_django.stores.cache_version import generations
from mcp_django.stores.sessions import forget_store
from mcp_django.subscriptions.outbox import outbox
from mcp_django.transports.threads import lanes, make_lane
from tests import workers
from tests.changed import Heard
from tests.clients import CheckedClient
from tests.clock import Clock
from tests.demo.state import Demo
from tests.emptying import empty_databases
from tests.services import Services, needs_a_service
from tests.transports.wire import Gate
from tests.waiting import PATIENCE

TESTS = Path(__file__).parent
#: The address of an object, and the text of a set, whose order differs between processes.
UNSTEADY_ID = re.compile(r" at 0x|\{'[^']*'[,}]")
TOKEN = re.compile(r"mcp_[A-Za-z0-9]{40,}")


# How long examples take says how busy the machine is.
hypothesis_settings.register_profile(
    "thorough", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
# The gate asks the same of every change: see .ci/run.
hypothesis_settings.register_profile(
    "gate",
    hypothesis_settings.get_profile("thorough"),
    derandomize=True,
    database=None,
    max_examples=25,
)
hypothesis_settings.load_profile("gate")

#: Folders that look at whole sites from outside. They take long, and most start servers.
THOROUGH = ("browser", "demo", "fuzz", "leaks", "official", "sites", "smoke", "without_tables")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "client(**options): what the fixture `client` is made with, besides its user"
    )
    if hasattr(config, "workerinput") or not config.getoption("numprocesses"):
        # This process is measured and strict. What its tests start is neither.
        for name in ("COVERAGE_PROCESS_CONFIG", "PYTHONWARNINGS"):
            os.environ.pop(name, None)
    if "MCP_TEST_NOW" in os.environ:
        # See tests/thorough.py. Time goes on from there. Processes of tests have their own.
        from time_machine import travel

        travel(os.environ["MCP_TEST_NOW"]).start()
    TransactionTestCase._fixture_teardown = empty_databases
    config.pluginmanager.register(Services(), "mcp-services")
    config.pluginmanager.register(workers, "mcp-workers")


def pytest_make_parametrize_id(config, val, argname):
    """The same ids in each process: no token of this run."""
    if isinstance(val, str) and TOKEN.search(val):
        return TOKEN.sub("mcp_token", val).encode("unicode_escape").decode()
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark whole folders, and refuse ids that two workers would not agree on."""
    for item in items:
        if item.path.relative_to(TESTS).parts[0] in THOROUGH or needs_a_service(item):
            item.add_marker(pytest.mark.thorough)
    odd = [item.nodeid for item in items if UNSTEADY_ID.search(item.nodeid)]
    if odd:
        raise pytest.UsageError(f"The id of a test has an address or a set: {odd[0]}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    """What fixtures and earlier tests changed is news to nobody who connects in this test."""
    outbox.flush()


@pytest.fixture
def configure(settings):
    """Change some settings of ours."""

    def set_some(**changes):
        settings.MCP_DJANGO = {**settings.MCP_DJANGO, **changes}

    return set_some


@pytest.fixture
def only_tokens(configure):
    """Nobody signs in for a client, whatever is installed."""
    configure(AUTHENTICATORS=["mcp_django.auth.PersonalTokens"])


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """One for all that this process remembers for seconds or counts by the minute.

    What tests before have left there is forgotten, also what they have rolled back.
    """
    clock = Clock()
    for memory in (authenticate.cache, generations, *throttles.shared_counts.limits):
        monkeypatch.setattr(memory, "clock", clock)
    throttles.shared_counts.forget()
    generations.forget()
    return clock


@pytest.fixture(autouse=True)
def no_session_is_left():
    """Sessions and streams of other tests, which a cache does not roll back, are over. What a
    thread of theirs still writes goes to a cache of before.
    """
    caches["default"].clear()
    if "locmem" in caches.settings["default"]["BACKEND"]:
        caches.settings["default"]["LOCATION"] = secrets.token_hex(8)
    forget_store()


@pytest.fixture(autouse=True)
def no_application_says_where_the_endpoint_is(monkeypatch):
    """Forget the path of applications that other tests made in this process, and the prefix of
    the requests that they had: Django's test client has none of its own.
    """
    monkeypatch.setattr(resource, "_routed", [])
    clear_script_prefix()


@pytest.fixture(autouse=True)
def lanes_of_the_settings():
    """The next test finds no lane of another size and no thread that a tool still holds."""
    yield
    config = get_config()
    if any(
        lane.max_waiting != config.max_waiting
        or lane.lost_threads
        or lane.size != make_lane(name).size
        for name, lane in lanes._lanes.items()
    ):
        lanes.close()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):
    """Tests make rows themselves. Threads and their connections end before the database goes."""
    with django_db_blocker.unblock():
        for model in (ExposedModel, ExposedTool, ExposedPrompt, ServerSettings):
            model.objects.all()._raw_delete(model.objects.db)
    yield
    lanes.close()
    # Where asgiref runs the ORM of async tests.
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()


@pytest.fixture(scope="session")
def fresh_demo(tmp_path_factory):
    """For copies: the flight desk after its first run."""
    demo = Demo(tmp_path_factory.mktemp("demo") / "state")
    demo.first_run = demo.manage("demo", "--no-serve").stdout
    return demo


@pytest.fixture
def decisions_are_known(db, clock):
    """The query for what staff decided is not among those that a test counts."""
    decisions()


@pytest.fixture
def django_assert_num_queries(decisions_are_known, django_assert_num_queries):
    return django_assert_num_queries


@pytest.fixture(params=list(Revision), ids=lambda revision: revision.value)
def revision(request):
    return request.param


@pytest.fixture
def make_user(django_user_model):
    """Users by name, with the codenames of their permissions. "view_user" is about this site's."""
    of_users = {f"{verb}_user" for verb in ("view", "add", "change", "delete")}

    def named(codename):
        name = django_user_model._meta.model_name
        return f"{codename[:-4]}{name}" if codename in of_users else codename

    def make(name="ada", *codenames, **attributes):
        user = django_user_model.objects.create_user(name, **attributes)
        names = [named(one) for one in codenames]
        # A new user changes what is cached of rights. To send that signal again takes long.
        field = django_user_model._meta.get_field("user_permissions")
        through, key = field.remote_field.through, field.m2m_field_name()
        through.objects.bulk_create(
            through(permission=permission, **{key: user})
            for permission in Permission.objects.filter(codename__in=names)
        )
        return user

    return make


@pytest.fixture
def staff(make_user):
    """A member of the staff who may view what the shop sells."""
    return make_user("staff", "view_order", "view_customer", "view_memo", is_staff=True)


@pytest.fixture
def make_client(make_user):
    """Clients of new members of the staff, with the codenames of their permissions.

    What `CheckedClient` takes besides the user can be given: `revision`, `scopes`, `answers`.
    """
    numbers = itertools.count(1)

    def make(*codenames, name=None, is_staff=True, is_superuser=False, **options):
        name = name or f"staff {next(numbers)}"
        user = make_user(name, *codenames, is_staff=is_staff, is_superuser=is_superuser)
        return CheckedClient(user=user, **options)

    return make


@pytest.fixture
def superuser(make_user):
    return make_user("boss", is_staff=True, is_superuser=True)


@pytest.fixture
def client_user(staff):
    """Whose client the fixture `client` is. Folders and files may name another one."""
    return staff


@pytest.fixture
def client(request, client_user):
    """A client that speaks the revision of the test, if that has the fixture `revision`.

    The mark `client` of a test or a file says what else `CheckedClient` takes, and so does a
    parameter `client`, which is indirect. Another class is `kind`: see tests/clients.py.
    """
    options = {"kind": CheckedClient}
    if "revision" in request.fixturenames:
        options["revision"] = request.getfixturevalue("revision")
    for marker in request.node.iter_markers("client"):
        options |= marker.kwargs
    options |= getattr(request, "param", {})
    return options.pop("kind")(user=client_user, **options)


@pytest.fixture
def gate():
    """Where work waits until the test lets it go on."""
    gate = Gate()
    yield gate
    gate.open()


@pytest.fixture
def heard():
    """What is announced from now on."""
    # What an earlier test decided was rolled back without a word, and what it took off a list is
    # no news here.
    generations.forget()
    outbox.flush()
    found = Heard()
    outbox.add_sink(found)
    yield found
    outbox.flush(PATIENCE)
    outbox.remove_sink(found)


@pytest.fixture
def change_admin(monkeypatch):
    """Replace methods of the ModelAdmin of a model until the test ends."""
    # Not every site of the tests has the admin.
    from django.contrib.admin import site

    def change(model, *, of=site, **methods):
        kind = type("ChangedAdmin", (type(of._registry[model]),), methods)
        monkeypatch.setitem(of._registry, model, kind(model, of))

    return change


@pytest.fixture
def depot(configure):
    """Make the admin of the depot one that assistants may reach. See tests/depot."""
    configure(ADMIN_SITES=["admin", "depot"])


@pytest.fixture
def boss(depot, superuser):
    """May do everything in the depot."""
    return CheckedClient(user=superuser)


@pytest.fixture
def clerk(depot, make_user):
    """May change parcels and view vans, and nothing else."""
    return CheckedClient(
        user=make_user("clerk", "view_parcel", "change_parcel", "view_van", is_staff=True)
    )


@pytest.fixture
def asker(superuser):
    """Asks its person about everything, who may do it and agrees."""
    return CheckedClient(user=superuser, answers={"confirmation": {"confirm": True}})


@contextmanager
def offering(kind):
    """Declare functions, each by its name or that of its address, until the test ends."""
    added = []

    def add(declare, function, name=None):
        declare(function)
        added.append(name or function.__name__)
        outbox.flush()
        return function

    yield add
    for name in added:
        registry.remove(kind, name)


@pytest.fixture
def add_tool():
    """Offer a function as a tool until the test ends."""
    with offering("tool") as add:
        yield lambda function, **options: add(mcp.tool(**{"read_only": True, **options}), function)


@pytest.fixture
def add_prompt():
    """Offer a function as a prompt until the test ends."""
    with offering("prompt") as add:
        yield lambda function, **options: add(mcp.prompt(**options), function, options.get("name"))


@pytest.fixture
def add_resource():
    """Offer a function as a resource of this address until the test ends."""
    with offering("resource") as add:
        yield lambda uri, function, **options: add(mcp.resource(uri, **options), function, uri)


@pytest.fixture
def expose():
    """Register a model until the test ends: with an exposure, or with the attributes of one."""
    added = []

    def add(model, exposure=None, **attributes):
        made = exposure or type("Exposed", (mcp.ModelExposure,), attributes)
        registry.register(model, made)
        added.append(model)

    yield add
    for model in added:
        registry.unregister(model)
