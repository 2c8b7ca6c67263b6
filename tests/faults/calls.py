"""Faults in transports/calls, transports/streams and transports/stdio."""

from __future__ import annotations

from tests.faults.model import Fault, Room

FAULTS: tuple[Fault, ...] = ()
CALLS = Room(tests=("tests/transports/calls",), faults=FAULTS)
