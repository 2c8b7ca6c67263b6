"""Faults in exposure/functions, prompts, questions, resources and tools."""

from __future__ import annotations

from tests.faults.model import Fault, Room

FAULTS: tuple[Fault, ...] = ()
TOOLS = Room(tests=("tests/exposure/tools",), faults=FAULTS)
