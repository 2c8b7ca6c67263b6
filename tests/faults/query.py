"""Faults in exposure and exposure/query."""

from __future__ import annotations

from tests.faults.model import Fault, Room

FAULTS: tuple[Fault, ...] = ()
QUERY = Room(tests=("tests/exposure/query",), faults=FAULTS)
