"""Serve the site of the searches: `python -m tests.fuzz.serve uvicorn 8123`, or daphne.

Prints the arguments for `python -m tests.fuzz.messages`.
"""

from __future__ import annotations

import os
import signal
import sys

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.fuzz.settings"

import django

django.setup()

from tests.fuzz import rows  # noqa: E402  after Django is set up


def serve(server: str, port: int) -> None:
    from tests.asgi import application

    if server == "daphne":
        from daphne.server import Server

        Server(application, endpoints=[f"tcp:{port}:interface=127.0.0.1"]).run()
    else:
        import uvicorn

        uvicorn.run(application, port=port, lifespan="on", log_level="error")


if __name__ == "__main__":
    # So that the database is dropped, however this ends.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    name, port = sys.argv[1], int(sys.argv[2])
    with rows.site():
        rows.fill()
        rows.fill_others()
        tokens = " ".join(f"--token {person.make()}" for person in rows.PEOPLE.values())
        print(f"--address http://127.0.0.1:{port}/mcp {tokens}", flush=True)
        serve(name, port)
