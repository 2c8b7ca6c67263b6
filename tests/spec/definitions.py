"""Print the definitions of the tools of a site, as its superuser is told of them.

DJANGO_SETTINGS_MODULE=demo_project.settings python -m tests.spec.definitions
"""

from __future__ import annotations

import json

import django
from django.conf import settings
from django.test.utils import setup_databases, setup_test_environment, teardown_databases


def main() -> None:
    django.setup()
    setup_test_environment()
    databases = setup_databases(verbosity=0, interactive=False)
    # Models are there only now.
    from django.contrib.auth import get_user_model
    from django.test import override_settings

    from mcp_django.testing import Client

    options = {**settings.MCP_DJANGO, "AUTHENTICATORS": ["mcp_django.auth.PersonalTokens"]}
    with override_settings(MCP_DJANGO=options):
        user = get_user_model().objects.create_superuser("admin")
        print(json.dumps(Client(user=user).list_tools()))
    teardown_databases(databases, verbosity=0)


if __name__ == "__main__":
    main()
