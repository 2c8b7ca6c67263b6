"""Serve one client on standard input and output."""

from __future__ import annotations

import asyncio
import os
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from mcp_django.auth.authenticate import NamedUser
from mcp_django.exceptions import AuthenticationFailed, ServiceUnavailable, TooManyRequests
from mcp_django.principal import SCOPES
from mcp_django.transports.layer import links_processes
from mcp_django.transports.shutdown import end_process
from mcp_django.transports.stdio import Caller, serve, take_streams

ALONE = (
    "This client does not hear of changes of other processes, such as those of the web server: "
    "the site has no channel layer that links them. Set CHANNEL_LAYERS to channels_redis."
)
TOKEN = "MCP_TOKEN"  # noqa: S105  the name of a variable


class Command(BaseCommand):
    help = (
        "Serve one MCP client on standard input and output, as a user by name or as the holder "
        f"of the token in the environment variable {TOKEN}."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", metavar="USER", help="Who the client acts as.")
        parser.add_argument(
            "--scope",
            action="append",
            dest="scopes",
            metavar="SCOPE",
            help=f"What it may do: {', '.join(SCOPES)}. Repeatable. Default: all of them.",
        )

    def handle(
        self, *args: Any, user: str | None, scopes: list[str] | None, **options: Any
    ) -> None:
        # Tools and what they start have no use for it.
        token = os.environ.pop(TOKEN, "")
        caller = make_caller(user=user, scopes=scopes, token=token)
        # Before anybody is asked: what that prints is no message.
        pipes = take_streams()
        try:
            caller.recognize(caller.request())
        except (AuthenticationFailed, TooManyRequests):
            raise CommandError(
                f"There is no active user {user!r}." if user else f"{TOKEN} is not valid."
            ) from None
        except ServiceUnavailable as error:
            raise CommandError(str(error)) from error
        if not links_processes():
            self.stderr.write(ALONE)
        # The threads that answer have their own.
        connections.close_all()
        asyncio.run(serve(caller, pipes))
        end_process()


def make_caller(*, user: str | None, scopes: list[str] | None, token: str) -> Caller:
    if user and token:
        raise CommandError(f"--user and {TOKEN} both say who the client acts as. Leave one out.")
    if not (user or token):
        raise CommandError(f"Say who the client acts as, by --user or by {TOKEN}.")
    if not user:
        if scopes:
            raise CommandError("A token has its own scopes: leave --scope out.")
        return Caller(token=token)
    try:
        known = NamedUser(user, scopes=scopes or SCOPES)
    except ImproperlyConfigured as error:
        raise CommandError(str(error)) from None
    return Caller(recognize=known.authenticate)
