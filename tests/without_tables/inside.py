"""Take the tables of the package away from a site, and print as JSON what is left.

`python -m tests.without_tables.inside` needs an empty database.
"""

from __future__ import annotations

import json
from typing import Any

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402  after Django is set up
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client as Browser  # noqa: E402

from mcp_django.models import PersonalToken  # noqa: E402
from mcp_django.testing import Client  # noqa: E402


def migrate(*arguments: str) -> None:
    call_command("migrate", *arguments, verbosity=0)


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
        name
        for name in connection.introspection.table_names()
        if name.startswith("mcp_django_") and not name.startswith("mcp_django_oauth_")
    ]
    without = statuses(secret)
    migrate("mcp_django")
    _, secret = PersonalToken.create(user=boss, name="laptop")
    return {"left": left, "without": without, "again": bool(Client(token=secret).list_tools())}


if __name__ == "__main__":
    print(json.dumps(downgrade()))
