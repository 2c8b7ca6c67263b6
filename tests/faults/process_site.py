"""The site itself. `python -m tests.faults.process_site` makes its tables and prints tokens."""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.faults.process_settings"
django.setup()

from django.contrib.auth import get_user_model  # noqa: E402  after Django is set up
from django.core.management import call_command  # noqa: E402

import mcp_django as mcp  # noqa: E402
from mcp_django.models import PersonalToken  # noqa: E402
from tests.shop.models import Memo  # noqa: E402
from tests.transports.live import MemoExposure, everybody  # noqa: E402
from tests.transports.serve_site import application as application  # noqa: E402

PEOPLE = ("ada", "bob")


class OwnMemos(MemoExposure):
    """Nobody sees the memo of somebody else."""

    def get_queryset(self, request: Any) -> Any:
        return Memo.objects.filter(code=request.user.username)


mcp.unregister(Memo)
mcp.register(Memo)(OwnMemos)


@mcp.tool(read_only=True, permission=everybody)
def write_memo(ctx: mcp.Context, text: str) -> dict[str, str]:
    """Write down something in place of what the caller wrote before."""
    name = ctx.request.user.get_username()
    memo, _ = Memo.objects.update_or_create(code=name, defaults={"text": text})
    uri = f"django://objects/shop.memo/{memo.pk}"
    return {"uri": uri, "owner": name, "text": text}


@mcp.tool(read_only=True, permission=everybody)
def hold(ctx: mcp.Context, file: str) -> str:
    """Say which process this is, and go on until there is a file, whoever has left."""
    ctx.progress(1, message=str(os.getpid()))
    while not Path(file).exists():
        time.sleep(0.01)
    return "held"


@mcp.tool(read_only=True, permission=everybody)
def set_clock_back(ctx: mcp.Context, seconds: int) -> str:
    """Set the clock of this process back."""
    from time_machine import travel

    travel(datetime.now(UTC) - timedelta(seconds=seconds)).start()
    return "set"


def prepare() -> dict[str, str]:
    """Make the tables and the users, and return the tokens of these."""
    call_command("migrate", verbosity=0, run_syncdb=True, skip_checks=True)
    call_command("createcachetable")
    users = [get_user_model().objects.create_user(name) for name in PEOPLE]
    return {
        user.get_username(): PersonalToken.create(user=user, name="test", scopes=["mcp:read"])[1]
        for user in users
    }


if __name__ == "__main__":
    json.dump(prepare(), sys.stdout)
