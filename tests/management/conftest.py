from __future__ import annotations

import pytest
from django.core.management import call_command


@pytest.fixture
def run(request, capsys):
    """Run the command that the module names. Return what it wrote to stdout and to stderr."""

    def run(*arguments):
        call_command(request.module.COMMAND, *map(str, arguments))
        return capsys.readouterr()

    return run


@pytest.fixture
def alice(django_user_model):
    return django_user_model.objects.create_user("alice")
