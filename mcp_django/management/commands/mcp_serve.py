"""Serve the site in production, with Daphne."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from argparse import SUPPRESS, ArgumentParser
from contextlib import suppress
from pathlib import Path
from typing import Any

from channels.routing import get_default_application
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from mcp_django.asgi import get_mcp_application
from mcp_django.checks import check_layer, check_session_cache, check_store
from mcp_django.conf import get_config
from mcp_django.transports.shutdown import SIGNALS, end_process

#: Connections that wait until a process takes them. All clients come back after a restart.
BACKLOG = 2048
#: Seconds before a worker that ended is replaced, so that one that cannot start does not spin.
PAUSE = 1.0


class Command(BaseCommand):
    help = "Serve the site in production with Daphne: the endpoint and everything else."

    def add_arguments(self, parser: ArgumentParser) -> None:
        for name, kind, default, metavar, text in (
            ("--bind", str, "127.0.0.1:8000", "ADDRESS:PORT", "Where to listen."),
            ("--unix", str, None, "PATH", "Listen on a Unix socket instead."),
            ("--fd", int, None, "NUMBER", "Use a socket instead that is open and listens."),
            ("--workers", int, 1, "NUMBER", "Processes that share the socket."),
            ("--grace", float, 20.0, "SECONDS", "For what runs when the server is told to stop."),
            ("--max-body", int, None, "BYTES", "Longest body (DATA_UPLOAD_MAX_MEMORY_SIZE)."),
            # For workers, from the process that starts them.
            ("--parent", int, None, "PID", SUPPRESS),
        ):
            text += "" if default is None else f" Default: {default}."
            parser.add_argument(name, type=kind, default=default, metavar=metavar, help=text)
        parser.add_argument(
            "--proxy-headers",
            action="store_true",
            help="Believe X-Forwarded-For and X-Forwarded-Proto. The proxy must set both.",
        )

    def handle(self, *args: Any, workers: int, parent: int | None, **options: Any) -> None:
        if workers > 1:
            self.check_processes()
        application = load_application()
        try:
            listener = open_socket(bind=options["bind"], unix=options["unix"], fd=options["fd"])
        except (OSError, ValueError) as error:
            raise CommandError(f"Cannot listen: {error}") from error
        connections.close_all()
        if parent is None:
            self.stdout.write(f"Serving on {options['unix'] or options['fd'] or options['bind']}.")
            self.stdout.flush()
        if workers > 1:
            Workers(listener, number=workers).run()
        else:
            run_daphne(application, listener, parent=parent, **options)

    def check_processes(self) -> None:
        """Raise CommandError where processes would not know each other's sessions."""
        if "mcp_serve" not in sys.orig_argv:
            raise CommandError("Workers are started by the command line of this process.")
        for message in check_session_cache():
            raise CommandError(f"{message.msg} {message.hint}")
        for message in [*check_layer(), *check_store(databases=list(connections))]:
            self.stderr.write(f"{message.msg} {message.hint}")


def load_application() -> Any:
    """The one that ASGI_APPLICATION names, as Channels has it, or else the endpoint and Django."""
    if not getattr(settings, "ASGI_APPLICATION", None):
        return get_mcp_application()
    try:
        return get_default_application()
    except ImproperlyConfigured as error:
        raise CommandError(str(error)) from error


def open_socket(*, bind: str, unix: str | None, fd: int | None) -> socket.socket:
    """Return a socket that listens. Raises OSError and ValueError."""
    if fd is not None:
        listener = socket.socket(fileno=fd)
    elif unix is not None:
        with suppress(FileNotFoundError):
            # The last server has left it there. asyncio does the same.
            if stat.S_ISSOCK(os.stat(unix).st_mode):
                Path(unix).unlink()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(unix)
        # The rights of the folder say who may connect, as with Daphne and uvicorn.
        Path(unix).chmod(0o666)
        listener.listen(BACKLOG)
    else:
        host, _, port = bind.rpartition(":")
        where = host.strip("[]"), int(port)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server(where, family=family, backlog=BACKLOG)
    listener.settimeout(0)
    return listener


def run_daphne(application: Any, listener: socket.socket, **options: Any) -> None:
    try:
        from mcp_django.daphne_server import DaphneServer
    except ModuleNotFoundError as error:
        raise CommandError('Install Daphne: pip install "django-mcp-orm[daphne]".') from error
    headers = ("X-Forwarded-For", "X-Forwarded-Proto")
    client, scheme = headers if options["proxy_headers"] else (None, None)
    # Django's None is no limit.
    longest = options["max_body"] or settings.DATA_UPLOAD_MAX_MEMORY_SIZE or float("inf")
    DaphneServer(
        application,
        listener=listener,
        grace=options["grace"],
        max_body=max(longest, get_config().max_body),
        parent=options["parent"],
        root_path=settings.FORCE_SCRIPT_NAME or "",
        proxy_forwarded_address_header=client,
        proxy_forwarded_proto_header=scheme,
    ).run()
    end_process()


class Workers:
    """Processes that serve on one socket, and this one, which replaces those that end.

    They are started and not forked: what Django has imported by now may have chosen an event loop,
    and two processes cannot share one.
    """

    def __init__(self, listener: socket.socket, *, number: int) -> None:
        self.listener = listener
        self.number = number
        self.processes: list[subprocess.Popen[bytes]] = []
        self.signals = 0

    def run(self) -> None:
        """Until a signal, and until the workers have ended."""
        for number in SIGNALS:
            signal.signal(number, self.stop)
        while not self.signals:
            self.replace()
            time.sleep(PAUSE)
        self.listener.close()
        # One may have started while the signal came. Workers count only the first.
        self.pass_on(signal.SIGTERM)
        for process in self.processes:
            process.wait()

    def replace(self) -> None:
        """Start those that are missing."""
        for process in [process for process in self.processes if process.poll() is not None]:
            sys.stderr.write(f"A worker ended with status {process.returncode}.\n")
            self.processes.remove(process)
        fd = self.listener.fileno()
        more = ("--workers=1", f"--fd={fd}", f"--parent={os.getpid()}", "--skip-checks")
        # Control-C in a terminal is for this process alone, which passes it on.
        options: dict[str, Any] = {"pass_fds": [fd], "process_group": 0}
        while len(self.processes) < self.number and not self.signals:
            command = [sys.executable, *sys.orig_argv[1:], *more]
            self.processes.append(subprocess.Popen(command, **options))  # noqa: S603  ours

    def stop(self, number: int, frame: Any) -> None:
        self.signals += 1
        self.pass_on(signal.SIGTERM if self.signals == 1 else signal.SIGKILL)

    def pass_on(self, number: signal.Signals) -> None:
        for process in self.processes:
            process.send_signal(number)
