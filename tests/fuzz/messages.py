"""Malformed and half-valid messages, by the thousand: does the endpoint stand?

No answer is a 5xx but 503, none is missing or malformed, nothing is logged with a traceback, and
no call hangs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import traceback
from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from mcp_django.audit.records import records
from mcp_django.protocol.revisions import ASSUMED, Revision
from mcp_django.testing import Client
from mcp_django.transports.threads import lanes
from tests.asgi import application
from tests.fuzz import rows
from tests.fuzz.cases import MODERN, SESSION, Case, Cases, Knowledge, headers_with
from tests.fuzz.doors import Answer, Door, Sent
from tests.fuzz.values import dump
from tests.oracle import assert_valid_message

INTERNAL_ERROR = -32603
REVISION = b"mcp-protocol-version"
#: Of all answers, so many may say that the server is busy.
BUSY = 0.01
#: Cases that are under way at the same time.
AT_ONCE = 4


#: The tracebacks that were logged for the case that is being sent.
logged: ContextVar[list[str]] = ContextVar("logged")


class Tracebacks(logging.Handler):
    """Keeps each record that has a traceback, beside the case that it belongs to."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        #: Of nobody's case, as what a task left behind.
        self.others: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            trace = "".join(traceback.format_exception(*record.exc_info))
            texts = logged.get(self.others)
            texts.append(f"{record.name}: {record.getMessage()}\n{trace}")


@dataclass
class Report:
    """What came back."""

    count: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    #: Of each kind of case how many there were, and how many had a result.
    kinds: Counter[str] = field(default_factory=Counter)
    results: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def print(self) -> None:
        print(f"{self.count:,} messages; statuses: {dict(sorted(self.statuses.items()))}")
        shares = {kind: self.results[kind] / count for kind, count in self.kinds.items()}
        print("with a result:", ", ".join(f"{kind} {share:.0%}" for kind, share in shares.items()))


class Search:
    """Sends cases, a few at a time, and judges what comes back."""

    def __init__(self, door: Door, cases: Cases) -> None:
        self.door = door
        self.cases = cases
        self.tokens = cases.knowledge.tokens
        self.report = Report()
        self.log = Tracebacks()
        self.sessions: dict[tuple[str, Revision], bytes] = {}

    async def run(self, first: int, count: int) -> Report:
        report, indexes = self.report, iter(range(first, first + count))
        await asyncio.gather(*(self.work(indexes) for _ in range(AT_ONCE)))
        report.failures += [f"logged: {one}" for one in self.log.others]
        if report.statuses[503] > max(BUSY * report.count, 5):
            report.failures.append(f"{report.statuses[503]} answers were 503.")
        return report

    async def work(self, indexes: Iterator[int]) -> None:
        for index in indexes:
            case, texts = self.cases.case(index), []
            logged.set(texts)
            problems = await self.run_case(case)
            problems += [f"logged: {one}" for one in texts]
            self.report.kinds[case.kind] += 1
            if problems:
                self.report.failures.append(self.describe(index, case, problems))
            self.report.count += 1

    async def run_case(self, case: Case) -> list[str]:
        await self.open(case)
        answer = await self.door.ask(case.sent)
        self.report.statuses[answer.status] += 1
        if answer.status == 404 and case.person:
            # It may have been ended by a case: the next one gets another.
            self.sessions.pop((case.person, case.revision), None)
        return self.problems_of(case, answer)

    def problems_of(self, case: Case, answer: Answer) -> list[str]:
        if answer.problem:
            return [answer.problem]
        if case.sent.is_broken_off and not answer.status:
            return []
        if not answer.status:
            return ["There was no response."]
        problems = []
        if answer.status >= 500 and answer.status != 503:
            problems.append(f"The status is {answer.status}.")
        try:
            messages = messages_of(answer)
        except ValueError as error:
            return [*problems, f"The body is no JSON: {error}"]
        for message in messages:
            problems += self.problems_in(case, message, revision=revision_of(case, answer))
        if answer.status == 200 and any("result" in one for one in messages):
            self.report.results[case.kind] += 1
        return problems

    def problems_in(self, case: Case, message: Any, *, revision: Revision) -> list[str]:
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return [f"No message: {message!r}"]
        error = message.get("error")
        problems = []
        if isinstance(error, dict):
            if error.get("code") == INTERNAL_ERROR and "busy" not in str(error):
                problems.append(f"The error is {error}")
        elif "result" not in message and "method" not in message:
            problems.append(f"Neither a result nor an error: {message!r}"[:500])
        if case.is_exact:
            methods = [message["method"]] if "method" in message else []
            methods += case.methods.get(message.get("id"), ["ping"])
            faults = [fault_in(revision, method, message) for method in methods]
            if all(faults):
                problems.append(f"Not valid in {revision.value}: {faults[0]} in {message!r}")
        return [problem[:1500] for problem in problems]

    def describe(self, index: int, case: Case, problems: list[str]) -> str:
        sent = case.sent
        headers = b"\n".join(name + b": " + value[:200] for name, value in sent.headers)
        secrets = {token.encode(): f"<token of {name}>" for name, token in self.tokens.items()}
        for secret, name in secrets.items():
            headers = headers.replace(secret, name.encode())
        return (
            f"--seed {self.cases.seed} --only {index} ({case.kind}, {case.revision.value})\n"
            f"{sent.verb} {sent.path}?{sent.query!r}\n{headers!r}\n{sent.body[:3000]!r}\n"
            + "\n".join(problems)
        )

    # Sessions

    async def open(self, case: Case) -> None:
        """Put the id of a session where one is wanted."""
        if any(value == SESSION for _, value in case.sent.headers):
            session = await self.session(case.person, case.revision)
            case.sent.headers = [
                (name, session if value == SESSION else value) for name, value in case.sent.headers
            ]

    async def session(self, person: str | None, revision: Revision) -> bytes:
        if person is None or revision in MODERN:
            return b"none"
        if (person, revision) not in self.sessions:
            sent = Sent(headers=headers_with(self.tokens[person]), body=dump(handshake(revision)))
            answer = await self.door.ask(sent)
            self.sessions[person, revision] = answer.headers.get("mcp-session-id", "none").encode()
        return self.sessions[person, revision]


def revision_of(case: Case, answer: Answer) -> Revision:
    """The revision that an answer is written in.

    A handshake names its revision in its body alone, and without a credential nobody reads that.
    """
    is_unread = answer.status == 401 and not any(name == REVISION for name, _ in case.sent.headers)
    return ASSUMED if is_unread else case.revision


def fault_in(revision: Revision, method: str, message: dict[str, Any]) -> str:
    try:
        assert_valid_message(revision, method, message)
    except (AssertionError, ValueError, KeyError) as fault:
        return repr(fault)
    return ""


def handshake(revision: Revision) -> dict[str, Any]:
    params = {
        "protocolVersion": revision.value,
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "fuzz", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


def messages_of(answer: Answer) -> list[Any]:
    """The messages in a body. Raises ValueError."""
    if answer.is_stream:
        events = answer.body.decode().replace("\r", "").split("\n")
        data = [line.removeprefix("data: ") for line in events if line.startswith("data: {")]
        return [json.loads(one) for one in data]
    if not answer.body or "json" not in answer.headers.get("content-type", ""):
        return []
    found = json.loads(answer.body)
    return found if isinstance(found, list) else [found]


def search(options: argparse.Namespace) -> list[str]:
    rows.fill_others()
    tokens = {name: person.make() for name, person in rows.PEOPLE.items()}
    cases = Cases(options.seed, Knowledge.learn(Client(token=tokens["boss"]), tokens))
    messages = Search(Door(application), cases)
    logging.getLogger().addHandler(messages.log)
    if options.only is not None:
        print(messages.describe(options.only, cases.case(options.only), []))
    try:
        report = asyncio.run(messages.run(options.first, options.count))
    finally:
        records.close()
        lanes.close()
    report.print()
    return report.failures
