"""django-reversion's middleware, which opens a transaction round each POST, over a database as
`startproject` sets it up.
"""

from __future__ import annotations

from tests.databases import VENDOR
from tests.sites.packages import *

MIDDLEWARE = [*MIDDLEWARE, "reversion.middleware.RevisionMiddleware"]
if VENDOR == "sqlite":
    # None of the options that docs/howto/deploying.md recommends.
    DATABASES["default"] |= {"OPTIONS": {}}
