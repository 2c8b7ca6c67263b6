from __future__ import annotations

import subprocess
import sys

import pytest

from mcp_django import auth

PROBE = """
from mcp_django.auth import DRF, Anonymous, Authenticator, DevUser, JWTBearer, PersonalTokens
DRF("rest_framework.authentication.TokenAuthentication"), DevUser("a"), Anonymous()
JWTBearer("https://login.example.com", jwks_url="https://login.example.com/keys", user="a.b")
import sys
late = {"mcp_django.models", "django.contrib.auth.models", "rest_framework", "jwt"}
print(sorted(late & set(sys.modules)))
"""


@pytest.mark.thorough
def test_settings_may_import_every_authenticator():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROBE], capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_every_public_name_is_there_and_no_other():
    assert all(getattr(auth, name) for name in auth.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        auth.Nothing  # noqa: B018
