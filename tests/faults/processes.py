"""Sites in processes of their own, the servers that they need, and people who use them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from django.db.utils import ConnectionHandler

from mcp_django.protocol.errors import INTERNAL_ERROR
from mcp_django.protocol.revisions import LATEST_LEGACY
from mcp_django.testing import ProtocolFailure
from tests.children import finished, start
from tests.served import SocketClient
from tests.services import path_of
from tests.transports.live_servers import Answer, free_port, wait_for
from tests.waiting import PATIENCE, wait_until

UPDATED = "notifications/resources/updated"
SETTINGS = "tests.faults.process_settings"
SERVE = ("-m", "django", "mcp_serve", "--settings", SETTINGS)


class Server:
    """`manage.py mcp_serve` on a port of its own, and what it has logged so far."""

    def __init__(self, *options: str, **environ: str) -> None:
        self.port, self.log = free_port(), ""
        self.process = start(
            [sys.executable, "-W", "ignore", *SERVE, f"--bind=127.0.0.1:{self.port}", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **environ},
        )
        # A file would be full where the disk is.
        self.reader = threading.Thread(target=self.read_log)
        self.reader.start()

    def read_log(self) -> None:
        for line in self.process.stdout:
            self.log += line

    def logs(self, text: str) -> None:
        """Return once the log has the text."""
        try:
            wait_until(lambda: text in self.log)
        except TimeoutError:
            raise AssertionError(f"{text!r} is not in the log:\n{self.log}") from None

    @property
    def health(self) -> int:
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/mcp/health", timeout=PATIENCE) as answer:
                return int(answer.status)
        except HTTPError as error:
            return error.code

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class Site:
    """A database with its users, and the servers over it."""

    def __init__(self, database: dict[str, Any], *, cache: str = "database", **environ: str):
        self.environ = {
            "FAULTS_DATABASE": json.dumps(database),
            "FAULTS_CACHE": cache,
            **environ,
        }
        self.database = database
        self.stack = ExitStack()
        made = finished("-W", "ignore", "-m", "tests.faults.process_site", **self.environ)
        assert made.returncode == 0, made.stderr
        self.tokens: dict[str, str] = json.loads(made.stdout)

    def __enter__(self) -> Site:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stack.close()

    def serve(self, *options: str, **environ: str) -> Server:
        server = Server(*options, **self.environ, **environ)
        self.stack.callback(server.close)
        wait_for(server.port)
        return server

    def people(self, calls: Server, listens: Server) -> list[Person]:
        """Each calls one server, and listens to what happens there at the other."""
        people = [Person(name, token, calls, listens) for name, token in self.tokens.items()]
        for person in people:
            self.stack.callback(person.close)
        return people

    def stored(self) -> dict[str, str]:
        """The text of each person, as the database has it."""
        connection = ConnectionHandler({"default": self.database})["default"]
        with connection.cursor() as cursor:
            cursor.execute("SELECT code, text FROM shop_memo")
            rows = dict(cursor.fetchall())
        connection.close()
        return rows


class Subscription:
    """A client with a stream about the memo of its person, to which it comes back."""

    def __init__(self, person: Person, listens: Server) -> None:
        self.person, self.port = person, listens.port
        self.client = self.make_client()
        self.stream = self.open()

    def make_client(self) -> SocketClient:
        return SocketClient(self.port, token=self.person.token)

    def open(self) -> Answer:
        params = {"notifications": {"resourceSubscriptions": [self.person.uri]}}
        message = self.client.message("subscriptions/listen", params)
        stream = self.answer("POST", message, **self.client.routing_headers(message))
        stream.message()
        return stream

    def answer(self, verb: str, message: Any = None, **headers: str) -> Answer:
        """Raises HTTPException where it is none that streams."""
        headers["Authorization"] = f"Bearer {self.person.token}"
        answer = Answer(self.port, verb, message, **headers)
        if answer.status != 200:
            answer.close()
            raise HTTPException(answer.status)
        return answer

    def come_back(self) -> None:
        """As soon as somebody opens the stream."""
        self.stream.close()

        def is_open() -> bool:
            with suppress(OSError, HTTPException, ProtocolFailure):
                self.stream = self.open()
                return True
            return False

        wait_until(is_open, pause=0.1)

    def hear(self) -> None:
        """Return once the client has read what its person wrote last, since it was told to."""
        while self.next_update() and self.read() != self.person.text:
            continue

    def next_update(self) -> bool:
        """Return after a message about the memo, or when the client has come back."""
        while True:
            try:
                message = self.stream.message()
            except (OSError, HTTPException):
                message = None
            if message is None:
                self.come_back()
                return True
            if message["method"] == UPDATED:
                assert message["params"]["uri"] == self.person.uri
                return True

    def read(self) -> str:
        """Return the memo. A client tries again where the site says that it is in trouble."""
        wait_until(lambda: not refusal(self.try_to_read), pause=0.1)
        return self.text

    def try_to_read(self) -> None:
        self.text = self.client.read_resource(self.person.uri)["text"]


class SessionSubscription(Subscription):
    """The same in a session, which may be lost."""

    def make_client(self) -> SocketClient:
        client = SocketClient(self.port, token=self.person.token, revision=LATEST_LEGACY)
        client.initialize()
        client.request("resources/subscribe", {"uri": self.person.uri})
        return client

    def open(self) -> Answer:
        revision = {"MCP-Protocol-Version": LATEST_LEGACY.value}
        try:
            return self.answer("GET", **revision, **self.client.session_headers())
        except HTTPException as error:
            if error.args == (404,):
                # As the specification has it: begin another session.
                self.client = self.make_client()
            raise

    def try_to_read(self) -> None:
        try:
            super().try_to_read()
        except ProtocolFailure as failure:
            if failure.status != 404:
                raise
            self.come_back()
            super().try_to_read()


class Person:
    """A user with a memo of its own, who writes and hears of it over two clients."""

    def __init__(self, name: str, token: str, calls: Server, listens: Server) -> None:
        self.name, self.token, self.text, self.number = name, token, "", 0
        self.caller = SocketClient(calls.port, token=token)
        self.uri = self.write()
        self.subscriptions = [Subscription(self, listens), SessionSubscription(self, listens)]

    @property
    def session(self) -> SessionSubscription:
        return self.subscriptions[1]

    def write(self) -> str:
        """Return the URI of what is written."""
        self.number += 1
        text = f"{self.name} writes {self.number}"
        written = self.caller.data("write_memo", text=text)
        assert (written["owner"], written["text"]) == (self.name, text)
        self.text = text
        return str(written["uri"])

    def close(self) -> None:
        for subscription in self.subscriptions:
            subscription.stream.close()


def refusal(call: Callable[[], object]) -> int:
    """Return the status of a refusal that says that the site is in trouble. 0: of none."""
    try:
        call()
    except ProtocolFailure as failure:
        if failure.status != 503 and failure.code != INTERNAL_ERROR:
            raise
        return failure.status
    return 0


def check_all_is_well(site: Site, people: list[Person]) -> None:
    """Everybody writes, hears of it and reads it, and of nobody else."""
    # The first message may be about what happened before.
    for _ in range(2):
        for person in people:
            wait_until(lambda person=person: not refusal(person.write), pause=0.1)
        for person in people:
            for subscription in person.subscriptions:
                subscription.hear()
    written = {person.name: person.text for person in people}
    assert site.stored() == written
    ada, bob = people
    intruder = SocketClient(bob.session.port, token=bob.token, revision=LATEST_LEGACY)
    intruder.session = ada.session.client.session
    with pytest.raises(ProtocolFailure, match="HTTP 404"):
        intruder.list_tools()


class DatabaseServer:
    """One of the test's own, which may crash and be started again, and ends with the test."""

    #: Who runs it in place of root.
    user: str

    def __init__(self) -> None:
        self.port = free_port()
        self.folder = TemporaryDirectory()
        self.run_as: list[str] = []
        if os.geteuid() == 0:
            shutil.chown(self.folder.name, self.user)
            ids = (f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups")
            self.run_as = ["setpriv", *ids, "--pdeathsig=INT", "--"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.options: dict[str, Any] = {"cwd": self.folder.name, **quiet}
        subprocess.run([*self.run_as, *self.make()], check=True, **self.options)
        self.start()

    def __enter__(self) -> DatabaseServer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()
        self.folder.cleanup()

    def start(self) -> None:
        self.process = start([*self.run_as, *self.serve()], **self.options)
        wait_for(self.port)

    def kill(self) -> None:
        """As a crash: clients and transactions are lost."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    @property
    def where(self) -> dict[str, str]:
        return {"HOST": "127.0.0.1", "PORT": str(self.port)}


class PostgreSQL(DatabaseServer):
    user = "postgres"

    def make(self) -> list[str]:
        return [path_of("initdb"), "--auth=trust", "--username=postgres", "--no-sync", "data"]

    def serve(self) -> list[str]:
        server = Path(path_of("initdb")).resolve().with_name("postgres")
        return [str(server), "-D", "data", "-F", "-p", str(self.port), "-k", self.folder.name]

    @property
    def database(self) -> dict[str, Any]:
        engine = "django.db.backends.postgresql"
        return {"ENGINE": engine, "NAME": "postgres", "USER": "postgres", **self.where}


class MariaDB(DatabaseServer):
    user = "mysql"

    def make(self) -> list[str]:
        rights = "--auth-root-authentication-method=normal"
        return [path_of("mariadb-install-db"), "--no-defaults", f"--datadir={self.data}", rights]

    def serve(self) -> list[str]:
        where = (f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self.data}.sock")
        return [path_of("mariadbd"), "--no-defaults", f"--datadir={self.data}", *where]

    def kill(self) -> None:
        # SIGQUIT would be its orderly end.
        self.process.kill()
        self.process.wait()

    @property
    def data(self) -> str:
        return f"{self.folder.name}/data"

    @property
    def database(self) -> dict[str, Any]:
        import pymysql  # type: ignore[import-untyped]

        pymysql.install_as_MySQLdb()
        engine, options = "django.db.backends.mysql", {"charset": "utf8mb4"}
        # Every server has this schema from the start.
        return {"ENGINE": engine, "NAME": "test", "USER": "root", "OPTIONS": options, **self.where}


def sqlite(folder: Path) -> dict[str, Any]:
    options = {
        "timeout": 20,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL;",
    }
    file = str(folder / "site.sqlite3")
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": file, "OPTIONS": options}
