"""Faults in exposure/admin_bridge and exposure/forms."""

from __future__ import annotations

from tests.faults.model import Fault, Room

FAULTS: tuple[Fault, ...] = ()
RECORDS = Room(tests=("tests/writes",), faults=FAULTS)
