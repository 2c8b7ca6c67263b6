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
from pathlib import Path


def command(port: int) -> list[str]:
    return [
        sys.executable, "-m", "daphne", "-v", "0", "-b", "127.0.0.1", "-p", str(port),
        "tests.conformance_site.asgi:application",
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
def serve(port: int | None = None) -> Iterator[str]:
    """The address of a running site. The suite accepts loopback addresses only."""
    port = port or free_port()
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder)
        subprocess.run(
            [sys.executable, "-m", "django", "migrate", "--verbosity=0"], env=env, check=True
        )
        process = subprocess.Popen(command(port), env=env)
        try:
            for _ in range(400):
                if is_listening(port) or process.poll() is not None:
                    break
                time.sleep(0.05)
            yield f"http://localhost:{port}/mcp"
            # The caller is done.
        finally:
            process.terminate()
            process.wait()


def main() -> None:
    with serve(int(sys.argv[1]) if sys.argv[1:] else 8001) as url:
        print(f"Serving {url}. Press Ctrl-C to stop.")
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
