"""The faults that `make faults` plants can be planted."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_django import protocol
from tests.spec.faults import FAULTS, Fault
from tests.spec.requirements import BY_ID

PROTOCOL = Path(protocol.__path__[0])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.requirement)
def test_the_line_of_a_fault_stands_once_and_another_can_stand_there(fault: Fault):
    source = (PROTOCOL / fault.file).read_text()
    planted = source.replace(fault.old, fault.new)

    assert source.count(fault.old) == 1
    assert "\n" not in fault.old + fault.new
    assert compile(planted, fault.file, "exec") != compile(source, fault.file, "exec")


def test_there_are_36_faults_of_as_many_requirements_that_are_implemented():
    broken = {fault.requirement for fault in FAULTS}

    assert len(FAULTS) == len(broken) == 36
    assert all(BY_ID[name].is_implemented for name in broken)
