from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from mcp_django.transports.stdio.conversation import ERRORS, INPUT, OUTPUT, take_streams


class Streams:
    """Pipes in the place of the three streams of this process, read when all is over."""

    def __init__(self):
        self.pipes = {fd: os.pipe() for fd in (INPUT, OUTPUT, ERRORS)}
        self.written = {}

    @contextmanager
    def installed(self, monkeypatch):
        kept = {fd: os.dup(fd) for fd in self.pipes}
        for fd, (reading, writing) in self.pipes.items():
            os.dup2(reading if fd == INPUT else writing, fd)
        try:
            with (
                open(OUTPUT, "w", closefd=False) as out,
                open(ERRORS, "w", buffering=1, closefd=False) as errors,
            ):
                monkeypatch.setattr(sys, "stdout", out)
                monkeypatch.setattr(sys, "stderr", errors)
                yield
        finally:
            for fd, old in kept.items():
                os.dup2(old, fd)
                os.close(old)

    def read(self):
        for fd, (reading, writing) in self.pipes.items():
            os.close(writing)
            self.written[fd] = os.read(reading, 100_000)
            os.close(reading)
        return self.written


@pytest.fixture
def streams():
    return Streams()


def test_what_is_printed_before_and_after_goes_to_standard_error(streams, monkeypatch):
    os.write(streams.pipes[INPUT][1], b"hello")
    os.set_blocking(streams.pipes[INPUT][0], False)
    with streams.installed(monkeypatch):
        print("before")
        pipes = take_streams()
        print("after")
        os.write(OUTPUT, b"raw\n")
        subprocess.run([sys.executable, "-c", "print('child', repr(input.__name__))"], check=True)
        heard = os.read(INPUT, 10)
        is_blocking = os.get_blocking(pipes.input)
        said = os.read(pipes.input, 10)
        os.write(pipes.output, b"message\n")
        for fd in pipes:
            os.close(fd)

    written = streams.read()
    assert written[OUTPUT] == b"message\n"
    assert written[ERRORS] == b"before\nafter\nraw\nchild 'input'\n"
    assert (heard, said, is_blocking) == (b"", b"hello", True)


def test_without_standard_error_nothing_is_printed_anywhere(streams, monkeypatch):
    with streams.installed(monkeypatch):
        monkeypatch.setattr(sys, "stdout", None)
        os.close(ERRORS)
        pipes = take_streams()
        os.write(OUTPUT, b"raw\n")
        os.write(pipes.output, b"message\n")
        for fd in pipes:
            os.close(fd)

    written = streams.read()
    assert written[OUTPUT] == b"message\n"
    assert written[ERRORS] == b""
