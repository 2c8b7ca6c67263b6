"""Serve the fixture site: `python -m tests.conformance_site.serve 8001`, or for the runner."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

#: Who a process acts as that serves the fixtures over stdio.
USER = "conformance"


@dataclass(frozen=True, kw_only=True)
class Site:
    url: str
    #: Of a process that shall find the same database.
    environment: dict[str, str]


def command(port: int) -> list[str]:
    return [
        sys.executable, "-m", "daphne", "-v", "0", "-b", "127.0.0.1", "-p", str(port),
        "tests.asgi:application",
    ]  # fmt: skip


def environment(folder: str) -> dict[str, str]:
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.conformance_site.settings",
        "CONFORMANCE_DB": str(Path(folder) / "site.sqlite3"),
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def serve(port: int | None = None) -> Iterator[Site]:
    """A running site. The suite accepts loopback addresses only."""
    port = port or free_port()
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder)
        for arguments in (
            ["migrate", "--verbosity=0"],
            ["createsuperuser", "--noinput", f"--username={USER}", "--email=", "--verbosity=0"],
        ):
            subprocess.run([sys.executable, "-m", "django", *arguments], env=env, check=True)
        process = subprocess.Popen(command(port), env=env)
        try:
            for _ in range(400):
                if is_listening(port) or process.poll() is not None:
                    break
                time.sleep(0.05)
            yield Site(url=f"http://localhost:{port}/mcp", environment=env)
            # The caller is done.
        finally:
            process.terminate()
            process.wait()


def main() -> None:
    with serve(int(sys.argv[1]) if sys.argv[1:] else 8001) as site:
        print(f"Serving {site.url}. Press Ctrl-C to stop.")
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
