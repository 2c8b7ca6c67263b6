"""The way from a 401 to a call, through Django's test client."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.test import RequestFactory
from django.test.utils import override_script_prefix
from django.utils import timezone

from mcp_django.auth.authenticate import cache
from mcp_django.models import ExposureGeneration
from tests.oauth.flow import CALLBACK, RESOURCE, Flow, query_of
from tests.services import is_there
from tests.workshop.exposed import exposed

if is_there("oauth"):
    from mcp_django.oauth.bearer import OAuthBearer
    from mcp_django.oauth.models import Authorization
    from mcp_django.oauth.toolkit import get_access_token_model

pytestmark = pytest.mark.needs("oauth")
METADATA = "http://testserver/.well-known/oauth-protected-resource/mcp"


def test_a_client_gets_from_the_401_to_the_page_where_people_sign_in(flow):
    challenge = flow.call(None).headers["WWW-Authenticate"]
    resource = flow.program.get("/.well-known/oauth-protected-resource/mcp").json()
    server = flow.program.get("/.well-known/oauth-authorization-server").json()

    assert f'resource_metadata="{METADATA}"' in challenge
    assert 'scope="mcp:read"' in challenge
    assert resource["resource"] == RESOURCE
    assert resource["authorization_servers"] == [server["issuer"]] == ["http://testserver"]
    assert server["token_endpoint_auth_methods_supported"][0] == "none"
    assert (
        server.items()
        >= {
            "authorization_endpoint": "http://testserver/oauth/authorize",
            "token_endpoint": "http://testserver/oauth/token",
            "revocation_endpoint": "http://testserver/oauth/revoke",
            "code_challenge_methods_supported": ["S256"],
            "client_id_metadata_document_supported": True,
            "authorization_response_iss_parameter_supported": True,
            "response_types_supported": ["code"],
        }.items()
    )
    assert server.keys().isdisjoint({"registration_endpoint", "introspection_endpoint"})


def test_consent_buys_a_token_for_the_endpoint_with_the_rights_of_the_person(flow, alice):
    login = Flow(flow.application).ask()
    page = flow.ask(scope="mcp:read mcp:write")
    answer = flow.answer(page)
    tokens = flow.exchange(query_of(answer.headers["Location"])["code"]).json()
    offered = flow.tools(tokens["access_token"])

    assert login.headers["Location"].startswith("/admin/login/?next=/oauth/authorize")
    assert "Allow Claude to use Test shop as you?" in page.content.decode()
    assert answer.headers["Location"].startswith(CALLBACK)
    assert (
        query_of(answer.headers["Location"]).items()
        >= {"state": "s1", "iss": "http://testserver"}.items()
    )
    assert tokens["scope"] == "mcp:read mcp:write"
    assert tokens["expires_in"] == 3600
    assert "find_records" in offered
    authorization = Authorization.objects.get()
    assert authorization.user == alice
    assert authorization.resource == RESOURCE
    assert authorization.last_used_at is not None


@pytest.mark.parametrize("choice", [{"granted": []}, {"allow": False}])
def test_a_client_that_is_denied_learns_who_denies(flow, choice):
    answer = flow.answer(flow.ask(), **choice)

    denied = {"error": "access_denied", "state": "s1", "iss": "http://testserver"}
    assert query_of(answer.headers["Location"]).items() >= denied.items()


@pytest.mark.parametrize("resource", [None, "HTTP://TESTSERVER:80/mcp/"])
def test_a_token_is_for_the_endpoint_however_the_client_names_it(flow, resource):
    code = flow.code(resource=resource)
    tokens = flow.exchange(code, resource=resource).json()

    assert get_access_token_model().objects.get().resource == [RESOURCE]
    assert flow.call(tokens["access_token"]).status_code == 200


@pytest.fixture
def workshop(configure):
    configure(ADMIN_SITES=["workshop"])
    with exposed():
        yield


def test_a_client_takes_one_more_consent_to_call_what_needs_more(flow, workshop):
    tokens = flow.tokens()
    arguments = {"model": "shop.customer", "values": {"name": "Ann"}}

    described = flow.tool(tokens["access_token"], "describe_model", model="workshop.tag")
    refused = flow.tool(tokens["access_token"], "create_record", **arguments)

    assert "create_record" in described.json()["result"]["content"][0]["text"]
    assert refused.status_code == 403, refused.content
    challenge = refused.headers["WWW-Authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert 'scope="mcp:read mcp:write"' in challenge
    more = flow.tokens(scope="mcp:read mcp:write")
    assert flow.tool(more["access_token"], "create_record", **arguments).status_code == 200


def revoke(flow, tokens):
    assert flow.post("/oauth/revoke", token=tokens["access_token"]).status_code == 200


def end(flow, tokens):
    Authorization.objects.get().end()


def end_in_the_admin(flow, tokens):
    chosen = {"action": "end", "_selected_action": [Authorization.objects.get().pk]}
    response = flow.browser.post("/admin/mcp_django_oauth/authorization/", chosen)
    assert response.status_code == 302


def deactivate(flow, tokens):
    user = Authorization.objects.get().user
    user.is_active = False
    user.save()


def use_the_code_again(flow, tokens):
    assert flow.exchange(tokens["code"]).status_code == 400


def use_the_refresh_token_twice(flow, tokens):
    renewed = flow.refresh(tokens["refresh_token"]).json()
    assert flow.refresh(tokens["refresh_token"]).status_code == 400
    tokens |= renewed


def expire(flow, tokens):
    get_access_token_model().objects.update(expires=timezone.now() - timedelta(days=15))


def change_password_and_sign_in(flow, tokens):
    user = Authorization.objects.get().user
    user.set_password("another horse")
    user.save()
    flow.browser.force_login(user)


def let_consent_expire(flow, tokens):
    Authorization.objects.update(expires_at=timezone.now())


def delete_consent(flow, tokens):
    Authorization.objects.all().delete()


OF_TOKENS = [revoke, deactivate, use_the_code_again, use_the_refresh_token_twice, expire]
OF_CONSENT = [end, end_in_the_admin, change_password_and_sign_in]
OF_CONSENT += [let_consent_expire, delete_consent]


@pytest.mark.parametrize("how", [*OF_TOKENS, *OF_CONSENT])
def test_access_ends_and_what_is_dead_stays_dead_after_the_next_consent(flow, how):
    unused, code = flow.code(), flow.code()
    tokens = flow.exchange(code).json() | {"code": code}
    assert flow.call(tokens["access_token"]).status_code == 200

    how(flow, tokens)
    cache.clear()

    response = flow.call(tokens["access_token"])
    assert response.status_code == 401
    assert 'error="invalid_token"' in response.headers["WWW-Authenticate"]
    assert flow.refresh(tokens["refresh_token"]).status_code == 400
    if how in OF_TOKENS:
        return
    assert flow.exchange(unused).status_code == 400
    alive, again = flow.tokens(), flow.tokens()
    renewed = flow.refresh(again["refresh_token"]).json()
    cache.clear()
    assert flow.call(tokens["access_token"]).status_code == 401
    assert flow.refresh(tokens["refresh_token"]).status_code == 400
    assert flow.exchange(unused).status_code == 400
    # Another consent leaves tokens of one that is in force, and a renewal ends those before it.
    assert flow.call(alive["access_token"]).status_code == 200
    assert flow.call(renewed["access_token"]).status_code == 200
    assert flow.call(again["access_token"]).status_code == 401


def change_limits(flow, tokens):
    Authorization.objects.get().save(update_fields=["read_only"])


@pytest.mark.parametrize("how", [revoke, end, change_limits])
def test_every_process_is_told_of_a_change_to_what_a_client_may(
    flow, how, django_capture_on_commit_callbacks
):
    tokens = flow.tokens()
    before = dict(ExposureGeneration.objects.values_list("server", "number"))

    with django_capture_on_commit_callbacks(execute=True):
        how(flow, tokens)

    after = dict(ExposureGeneration.objects.values_list("server", "number"))
    assert after["default"] > before.get("default", 0)


def test_a_call_takes_one_query_and_access_ends_for_good_with_the_consent_and_not_with_the_token(
    flow, django_assert_num_queries
):
    token, end = flow.tokens()["access_token"], timezone.now() + timedelta(days=1)
    flow.call(token)
    cache.clear()
    request = RequestFactory().post("/mcp", headers={"Authorization": f"Bearer {token}"})

    # For token, user, client and consent.
    with django_assert_num_queries(1) as queries:
        endless = OAuthBearer().authenticate(request)
    Authorization.objects.update(expires_at=end)
    limited = OAuthBearer().authenticate(request)

    assert "oauth2_provider_accesstoken" in queries[0]["sql"]
    assert endless.expires_at is not None
    assert (endless.ends_at, limited.ends_at) == (None, end)


def test_cleaning_up_leaves_what_is_in_use(flow, new_client):
    tokens = flow.tokens()
    long_ago = timezone.now() - timedelta(days=30)
    idle = new_client(client_id="https://idle.example/c.json", cimd_expires_at=long_ago)
    type(idle).objects.update(cimd_expires_at=long_ago)

    call_command("cleartokens")
    call_command("clearcimdapplications")
    cache.clear()

    assert list(type(idle).objects.all()) == [flow.application]
    assert flow.call(tokens["access_token"]).status_code == 200


def test_metadata_of_a_site_under_a_prefix_are_where_its_issuer_says(flow, settings):
    settings.FORCE_SCRIPT_NAME = "/shop"

    with override_script_prefix("/shop/"):
        answers = [
            flow.program.get(f"/.well-known/oauth-authorization-server{path}")
            for path in ("", "/shop", "/other")
        ]
        resource = flow.program.get("/.well-known/oauth-protected-resource/shop/mcp").json()

    assert [answer.status_code for answer in answers] == [200, 200, 404]
    metadata = answers[1].json()
    assert metadata["issuer"] == "http://testserver/shop"
    assert metadata["token_endpoint"] == "http://testserver/shop/oauth/token"
    assert resource["authorization_servers"] == ["http://testserver/shop"]


# Programs that act by themselves.


@pytest.fixture
def service(new_client, django_user_model, db):
    """Return a client with a secret, as staff enter it, that acts for a user."""
    user = django_user_model.objects.create_user("robot", is_staff=True)
    client = new_client(
        source="manual",
        client_id="robot",
        client_secret="secret",
        client_type="confidential",
        authorization_grant_type="client-credentials",
        redirect_uris="",
        user=user,
    )
    return Flow(client)


def ask_as_service(service, **changes):
    fields = {
        "client_secret": "secret",
        "grant_type": "client_credentials",
        "scope": "mcp:read",
        "resource": RESOURCE,
    }
    return service.post("/oauth/token", **fields | changes)


@pytest.mark.parametrize("changes", [{"is_superuser": True}, {"is_active": False}, None])
def test_a_program_that_staff_entered_acts_for_its_user_unless_that_is_a_superuser_or_may_not_act(
    service, changes
):
    token = ask_as_service(service).json()["access_token"]
    assert service.call(token).status_code == 200
    user = service.application.user
    if changes is None:
        service.application.user = None
        service.application.save()
    else:
        for name, value in changes.items():
            setattr(user, name, value)
        user.save()
    cache.clear()

    refused = ask_as_service(service)

    assert refused.status_code == 400, refused.content
    assert refused.json()["error"] == "unauthorized_client"
    assert service.call(token).status_code == 401
