"""What a site finds that comes from an older release, or goes back to having no tables of ours.

`python -m tests.upgrade.inside NAME` runs one of these on an empty database and prints JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402  after Django is set up
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.db.migrations.executor import MigrationExecutor  # noqa: E402
from django.test import Client as Browser  # noqa: E402
from django.test.utils import setup_test_environment  # noqa: E402

from mcp_django.models import ExposureGeneration, PersonalToken  # noqa: E402
from mcp_django.testing import Client  # noqa: E402
from tests.shop.models import Order  # noqa: E402
from tests.upgrade.schema import schema  # noqa: E402


def migrate(*arguments: str) -> None:
    call_command("migrate", *arguments, verbosity=0)


def load(dump: str) -> None:
    text = (Path(__file__).parent / f"{dump}.{connection.vendor}.sql").read_text()
    connection.ensure_connection()
    if connection.vendor == "sqlite":
        connection.connection.executescript(text)
    else:
        with connection.connection.cursor() as cursor:
            cursor.execute(text)


def planned() -> list[str]:
    """The migrations of ours that `migrate` would run."""
    executor = MigrationExecutor(connection)
    targets = [key for key in executor.loader.graph.leaf_nodes() if key[0] == "mcp_django"]
    return [migration.name for migration, _ in executor.migration_plan(targets)]


def call(secret: str) -> dict[str, Any]:
    # The use of a token is noted at once in tests, and beside the call elsewhere.
    setup_test_environment()
    Order.objects.create(number="A1")
    client = Client(token=secret)
    found = client.call_tool("find_records", model="shop.order").records
    token = PersonalToken.objects.get()
    return {
        "records": [one["number"] for one in found],
        "tools": [one["name"] for one in client.list_tools()],
        "used": token.last_used_at is not None,
        "owner": token.user.get_username(),
    }


def upgrade(secret: str) -> dict[str, Any]:
    """A site that applied all four migrations of which there is one now."""
    load("first_slice")
    load("four_migrations")
    pending = planned()
    migrate("--run-syncdb")
    return {
        "planned": pending,
        "schema": schema(),
        "number": ExposureGeneration.objects.get(server="default").number,
        **call(secret),
    }


def leave_first_slice(tokens: str) -> dict[str, Any]:
    """With the code of the first slice: what a site does before it upgrades."""
    load("first_slice")
    call_command("dumpdata", "mcp_django.personaltoken", output=tokens, verbosity=0)
    migrate("mcp_django", "zero")
    return {}


def come_back(tokens: str, secret: str) -> dict[str, Any]:
    """With the code of today: what that site does after it."""
    pending = planned()
    migrate("--run-syncdb")
    call_command("loaddata", tokens, verbosity=0)
    return {"planned": pending, "schema": schema(), **call(secret)}


def statuses(secret: str) -> dict[str, Any]:
    client = Client(token=secret)
    sent = client.post_request("tools/list")
    anonymous = Client().post_request("tools/list")
    browser = Browser()
    message = client.message("tools/list")
    wsgi = browser.post("/mcp", message, "application/json", headers={"Accept": "*/*"})
    browser.force_login(get_user_model().objects.get(username="boss"))
    return {
        "token": [sent.status, sent.messages[0]["error"]["message"]],
        "anonymous": anonymous.status,
        "wsgi": wsgi.status_code,
        "index": browser.get("/admin/").status_code,
        "orders": browser.get("/admin/shop/order/").status_code,
        "user saved": save_user(),
    }


def save_user() -> bool:
    """It would tell every process that rights have changed, if there were a table to do so."""
    user = get_user_model().objects.get(username="boss")
    user.first_name += "x"
    user.save()
    return True


def downgrade() -> dict[str, Any]:
    migrate("--run-syncdb")
    boss = get_user_model().objects.create_superuser("boss", password="x")
    _, secret = PersonalToken.create(user=boss, name="laptop")
    migrate("mcp_django", "zero")
    left = [
        name for name in connection.introspection.table_names() if name.startswith("mcp_django")
    ]
    without = statuses(secret)
    migrate("mcp_django")
    _, secret = PersonalToken.create(user=boss, name="laptop")
    return {
        "left": left,
        "without": without,
        "again": bool(Client(token=secret).list_tools()),
    }


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
