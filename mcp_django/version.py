"""The version of the package, for whatever must not import the rest of it."""

from __future__ import annotations

__version__ = "0.1.0"
