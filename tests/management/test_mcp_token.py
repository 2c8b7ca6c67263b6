from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.apps import apps
from django.core.management import CommandError
from django.test import RequestFactory
from django.utils import timezone

from mcp_django.auth.authenticate import authenticate
from mcp_django.exceptions import AuthenticationFailed
from mcp_django.models import PersonalToken

pytestmark = pytest.mark.django_db
COMMAND = "mcp_token"


def present(secret):
    headers = {"authorization": f"Bearer {secret}"}
    return authenticate(RequestFactory().post("/mcp", headers=headers))


def test_a_new_token_works_and_is_all_that_stdout_gets(run, alice):
    out, err = run("create", "alice")

    assert present(out.strip()).user == alice
    assert "shown once" in err
    assert out.strip() not in err


def test_a_token_that_shows_nothing_says_so(run, make_user):
    make_user("seer", "view_order", is_staff=True)
    make_user("outsider", "view_order")
    make_user("clerk", is_staff=True)

    told = {
        name: "no records yet" in run("create", name)[1] for name in ("seer", "outsider", "clerk")
    }

    # Only an admin keeps records for the staff.
    is_guarded = apps.is_installed("django.contrib.admin")
    assert told == {"seer": False, "outsider": is_guarded, "clerk": True}


def test_a_program_gets_one_json_object(run, alice):
    out, err = run("create", "alice", "--json", "--name", "ci")

    made = json.loads(out)
    principal = present(made["token"])
    assert (principal.client, principal.credential_id) == ("ci", str(made["id"]))
    assert made["user"] == "alice"
    assert made["scopes"] == ["mcp:read"]
    assert made["id"] == PersonalToken.objects.get().pk
    assert made["expires_at"] == PersonalToken.objects.get().expires_at.isoformat()
    assert err == ""


def test_every_limit_can_be_asked_for(run, alice):
    options = ["--scope", "mcp:read", "--scope", "mcp:write", "--read-only", "--days", "3"]
    out, _ = run("create", "alice", "--json", *options, "--model", "auth.User")

    principal = present(json.loads(out)["token"])

    assert principal.scopes == {"mcp:read", "mcp:write"}
    assert principal.restriction.read_only
    assert principal.restriction.models == {"auth.user"}
    assert principal.ends_at == principal.expires_at
    assert timedelta(days=2) < principal.expires_at - timezone.now() <= timedelta(days=3)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["create", "bob"], "There is no user whose username is 'bob'"),
        (["create", "gone"], "not active"),
        (["create", "alice", "--scope", "mcp:reed"], "Unknown scope 'mcp:reed'. Use some of"),
        (["create", "alice", "--model", "auth.usr"], "'auth.usr'. Did you mean auth.user"),
        (["create", "alice", "--model", "x"], "There is no model 'x'."),
        (["create", "alice", "--days", "0"], "--days is between 1 and 365."),
        (["create", "alice", "--days", "366"], "--days is between 1 and 365."),
        (["list", "bob"], "There is no user"),
        (["revoke", "99"], "There is no token 99. See: manage.py mcp_token list"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(run, alice, make_user, arguments, sentence):
    make_user("gone", is_active=False)

    with pytest.raises(CommandError) as refused:
        run(*arguments)

    assert sentence in str(refused.value)
    assert not PersonalToken.objects.exists()


def test_the_list_shows_whose_and_never_the_secret(run, alice, django_user_model):
    secret, _ = run("create", "alice", "--name", "laptop")
    PersonalToken.create(user=django_user_model.objects.create_user("bob"), name="phone")

    everybody, _ = run("list")
    hers, _ = run("list", "alice")

    assert everybody.count("\n") == 2
    assert "alice\tlaptop" in hers
    assert "active" in hers
    assert "bob" not in hers
    assert secret.strip() not in everybody


def test_a_name_cannot_draw_another_line_into_the_list(run, alice):
    PersonalToken.create(user=alice, name="a\n99\troot\tbackdoor\x1b[2J\u202e\r\u2028")

    line, _ = run("list")

    assert len(line.splitlines()) == 1
    assert line.count("\t") == 6
    assert not {"\x1b", "\u202e"} & set(line)


def test_the_list_for_programs_says_what_became_of_each(run, alice):
    secret, _ = run("create", "alice")
    token = PersonalToken.objects.get()
    PersonalToken.objects.update(last_used_at=timezone.now())
    assert "is revoked" in run("revoke", token.pk).out
    run("create", "alice")

    listed = json.loads(run("list", "--json")[0])

    assert [one["state"] for one in listed] == ["revoked", "active"]
    assert [one["last_used_at"] is None for one in listed] == [False, True]
    with pytest.raises(AuthenticationFailed):
        present(secret.strip())
