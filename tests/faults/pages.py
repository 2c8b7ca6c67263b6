"""Faults in admin, oauth, templating, management and modules at the top."""

from __future__ import annotations

from tests.faults.model import Fault, Room

FAULTS: tuple[Fault, ...] = ()
PAGES = Room(tests=("tests/admin",), faults=FAULTS)
