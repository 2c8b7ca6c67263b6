"""Faults in transports/http and stores."""

from __future__ import annotations

from tests.faults.model import Fault, Room

FAULTS: tuple[Fault, ...] = ()
HTTP = Room(tests=("tests/transports/http",), faults=FAULTS)
