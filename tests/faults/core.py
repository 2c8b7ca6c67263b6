"""Faults in handlers, audit, subscriptions and auth."""

from __future__ import annotations

from tests.faults.model import Fault, Room

FAULTS: tuple[Fault, ...] = ()
CORE = Room(tests=("tests/handlers",), faults=FAULTS)
