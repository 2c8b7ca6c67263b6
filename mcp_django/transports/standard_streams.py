"""Standard input and output for messages alone, whatever code of the site reads and prints."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NamedTuple

INPUT, OUTPUT, ERRORS = 0, 1, 2


class Pipes(NamedTuple):
    """File descriptors that no other code and no child process knows."""

    input: int
    output: int


def take_streams() -> Pipes:
    """The real ones. From now on what is printed goes to standard error, also what child processes
    print, and whoever reads standard input finds its end.
    """
    have_errors()
    pipes = Pipes(input=os.dup(INPUT), output=os.dup(OUTPUT))
    for fd in pipes:
        make_blocking(fd)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, INPUT)
    os.dup2(ERRORS, OUTPUT)
    os.close(nothing)
    # What was printed while Django started may still wait in here. It is no message either.
    flush(sys.stdout)
    sys.stdout = sys.stderr
    return pipes


def have_errors() -> None:
    """Where standard error is closed, whatever is opened next would be written to in its place."""
    try:
        os.fstat(ERRORS)
    except OSError:
        # The lowest number that is free, which is that of standard error.
        os.open(os.devnull, os.O_RDWR)


def make_blocking(fd: int) -> None:
    # Who started the process may have set the pipe otherwise. Windows has no such thing.
    with suppress(OSError, AttributeError):
        os.set_blocking(fd, True)


def flush(stream: object) -> None:
    # None under pythonw, and a stream may be closed.
    with suppress(OSError, ValueError, AttributeError):
        stream.flush()  # type: ignore[attr-defined]  # whatever stands in sys.stdout
