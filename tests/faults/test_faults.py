"""The faults that `make faults` plants can be planted."""

from __future__ import annotations

from pathlib import Path

import pytest

import mcp_django
from tests.faults.model import Fault
from tests.faults.rooms import ROOMS
from tests.spec.requirements import BY_ID

PACKAGE = Path(mcp_django.__path__[0])
ROOT = PACKAGE.parent
FAULTS = [fault for room in ROOMS.values() for fault in room.faults]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.file}:{fault.old[:40]}")
def test_the_line_of_a_fault_stands_once_and_another_can_stand_there(fault: Fault):
    source = (PACKAGE / fault.file).read_text()
    planted = source.replace(fault.old, fault.new)

    assert source.count(fault.old) == 1
    assert compile(planted, fault.file, "exec") != compile(source, fault.file, "exec")


def test_faults_break_requirements_that_are_implemented_and_each_only_once():
    broken = [fault.requirement for fault in FAULTS if fault.requirement]

    assert len(broken) == len(set(broken)) == 36
    assert all(BY_ID[name].is_implemented for name in broken)


@pytest.mark.parametrize("room", ROOMS)
def test_the_tests_that_must_notice_exist(room: str):
    assert all((ROOT / path).exists() for path in ROOMS[room].tests)
