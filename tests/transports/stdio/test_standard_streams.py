from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.waiting import LONG_PATIENCE

#: In a process whose input does not block and which has no standard error.
PROGRAM = """
import os, sys, django
os.close(2)
os.set_blocking(0, False)
django.setup()
from mcp_django.transports.stdio.conversation import take_streams
pipes = take_streams()
print("printed")
os.write(1, b"raw")
os.write(pipes.output, str((os.read(0, 10), os.get_blocking(pipes.input))).encode())
"""


@pytest.mark.thorough
def test_without_standard_error_nothing_is_printed_anywhere():
    """Where what is printed goes otherwise: tests/management/test_mcp_stdio.py."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        input=b"hello",
        stdout=subprocess.PIPE,
        timeout=LONG_PATIENCE,
        check=True,
    )

    assert done.stdout == b"(b'', True)"
