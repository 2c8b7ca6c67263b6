"""Personal tokens from the command line: create, list, revoke."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import timedelta
from difflib import get_close_matches
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.http import HttpRequest
from django.utils import timezone

from mcp_django.audit.entries import printable
from mcp_django.auth.authenticators import is_active, principal_of
from mcp_django.conf import get_config
from mcp_django.exposure.permissions import Rights
from mcp_django.models import PersonalToken
from mcp_django.principal import READ, SCOPES


class Command(BaseCommand):
    help = "Create, list and revoke personal tokens."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        create = actions.add_parser("create", help="Make a token and show its secret, once.")
        create.add_argument("user", metavar="USER", help="Who the token acts as.")
        create.add_argument(
            "--scope",
            action="append",
            dest="scopes",
            metavar="SCOPE",
            help=f"What it is good for: {', '.join(SCOPES)}. Repeatable. Default: {READ}.",
        )
        create.add_argument("--read-only", action="store_true", help="It can change nothing.")
        create.add_argument(
            "--model",
            action="append",
            dest="models",
            metavar="LABEL",
            help="The only models it may see, such as shop.order. Repeatable. Default: no limit.",
        )
        create.add_argument("--name", default="command line", help="The program that uses it.")
        create.add_argument("--days", type=int, help="Days until it expires.")
        listing = actions.add_parser("list", help="Show tokens, never their secrets.")
        listing.add_argument("user", metavar="USER", nargs="?", help="Only tokens of this user.")
        revoke = actions.add_parser("revoke", help="End a token now.")
        revoke.add_argument("id", type=int, metavar="ID", help="As list shows it.")
        for one in (create, listing):
            one.add_argument("--json", action="store_true", dest="as_json", help="For programs.")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        getattr(self, action)(**options)

    def create(
        self,
        *,
        user: str,
        scopes: list[str] | None,
        models: list[str] | None,
        days: int | None,
        name: str,
        read_only: bool,
        as_json: bool,
        **options: Any,
    ) -> None:
        owner, longest = find_user(user), get_config().token_max_days
        if not is_active(owner):
            raise CommandError(f"The user {user!r} is not active, so a token would be of no use.")
        if days is not None and not 0 < days <= longest:
            raise CommandError(f"--days is between 1 and {longest}.")
        for label in models or ():
            check_model(label)
        try:
            token, secret = PersonalToken.create(
                user=owner,
                name=name,
                scopes=scopes or [READ],
                read_only=read_only,
                models=models,
                expires_at=None if days is None else timezone.now() + timedelta(days=days),
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        if as_json:
            self.stdout.write(json.dumps({"token": secret, **facts(token)}))
            return
        self.stdout.write(secret)
        self.stderr.write(
            f"This is shown once: keep it now. It expires on {token.expires_at:%Y-%m-%d}."
        )
        request = HttpRequest()
        request.user = owner
        if READ in token.scopes and not Rights(request, principal_of(token)).exposures():
            self.stderr.write(
                f"It shows no records yet. {user} needs a permission to view an exposed model, "
                "and has to be staff where the admin decides."
            )

    def list(self, *, user: str | None, as_json: bool, **options: Any) -> None:
        tokens = PersonalToken.objects.select_related("user").order_by("pk")
        if user is not None:
            tokens = tokens.filter(user=find_user(user))
        if as_json:
            self.stdout.write(json.dumps([facts(token) for token in tokens]))
            return
        for token in tokens:
            self.stdout.write(
                f"{token.pk}\t{printable(token.user.get_username())}\t{printable(token.name)}\t"
                f"mcp_{token.hint}…\t"
                f"{' '.join(token.scopes)}\t{token.state()}\t{token.expires_at:%Y-%m-%d}"
            )

    def revoke(self, *, id: int, **options: Any) -> None:
        token = PersonalToken.objects.filter(pk=id).first()
        if token is None:
            raise CommandError(f"There is no token {id}. See: manage.py mcp_token list")
        token.revoke()
        self.stdout.write(f"Token {id} is revoked.")


def find_user(username: str) -> Any:
    users = get_user_model()
    try:
        return users._default_manager.get_by_natural_key(username)
    except users.DoesNotExist:
        raise CommandError(
            f"There is no user whose {users.USERNAME_FIELD} is {username!r}."
        ) from None


def check_model(label: str) -> None:
    known = [model._meta.label_lower for model in apps.get_models()]
    if label.lower() in known:
        return
    close = get_close_matches(label.lower(), known, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise CommandError(f"There is no model {label!r}.{hint}")


def facts(token: PersonalToken) -> dict[str, Any]:
    used = token.last_used_at
    columns = ("name", "hint", "scopes", "read_only", "models")
    return {
        "id": token.pk,
        "user": token.user.get_username(),
        **{name: getattr(token, name) for name in columns},
        "expires_at": token.expires_at.isoformat(),
        "last_used_at": None if used is None else used.isoformat(),
        "state": token.state(),
    }
