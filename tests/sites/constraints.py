"""A site whose permissions hold for some objects, as in Nautobot and NetBox."""

from __future__ import annotations

from tests.settings import *

AUTHENTICATION_BACKENDS = ["tests.sites.restricted.ObjectPermissionBackend"]
