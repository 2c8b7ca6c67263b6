"""Cases of the message search: each is made from the seed and its index, and from nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from mcp_django.protocol.headers import encode_value
from mcp_django.protocol.methods import LOG_LEVELS, METHODS, NAME_PARAMS
from mcp_django.protocol.revisions import LEGACY, MODERN, Era, Revision
from mcp_django.testing import Client
from tests.fuzz.doors import Pairs, Sent
from tests.fuzz.values import HOSTILE, broken, dump, mutated
from tests.nasty.hostile import PATHS

META = "io.modelcontextprotocol/"
ACCEPT = b"application/json, text/event-stream"
#: What stands in a header or a query until the session of that person is open.
SESSION = b"@session@"
#: Where methods come from that no revision has, or that only clients have.
STRANGE_METHODS = [
    "", " ", "tools", "tools/", "tools/call ", "Tools/Call", "rpc.discover", "__class__",
    "notifications/initialized", "notifications/cancelled", "elicitation/create", "roots/list",
    "sampling/createMessage", "tasks/get", "tasks/list", "tasks/cancel", "tasks/result", "a" * 500,
    "tools/call\x00", "\ud800",
]  # fmt: skip
NOTICES = [
    "notifications/initialized", "notifications/cancelled", "notifications/progress",
    "notifications/roots/list_changed", "notifications/nothing", "notifications/message",
]  # fmt: skip
#: Another value in the place of a header, or one more.
STRANGE_HEADERS: dict[bytes, list[bytes]] = {
    b"host": [
        b"", b"evil.example", b"testserver:99999", b"testserver.", b"[::1", b"testserver@evil",
        b"\xff", b"a" * 5000, b"testserver, evil",
    ],
    b"origin": [
        b"null", b"http://testserver", b"http://evil.example", b"http://[", b"\xe9", b"file://",
        b"http://localhost:1@evil", b"http://testserver:80",
    ],
    b"accept": [
        b"", b"*/*", b"text/html", b"application/json", b"text/event-stream", b"a" * 3000,
        b"application/json;q=0, text/event-stream", b"application/*, text/*;q=0.1", b";;,,",
    ],
    b"content-type": [
        b"", b"text/plain", b"application/json; charset=utf-16", b"APPLICATION/JSON", b"\xff",
        b"application/x-www-form-urlencoded", b"multipart/form-data; boundary=x", b"a/" * 2000,
    ],
    b"content-encoding": [b"gzip", b"identity", b"br", b"", b"deflate, gzip"],
    b"content-length": [b"0", b"-1", b"99999999999", b"x", b"1, 2", "٣".encode(), b"9" * 5000],
    b"mcp-protocol-version": [
        b"", b"2024-11-05", b"2025-03-26", b"2025-06-18", b"2025-11-25", b"2026-07-28", b"latest",
        b"2099-01-01", b"\xff", b"2025-06-18, 2025-06-18", b"a" * 3000,
    ],
    b"mcp-session-id": [b"", b"x", b"a" * 128, b"a" * 5000, b"\xff", b"../x", b"%00", b" "],
    b"last-event-id": [b"", b"0", b"1", b"x:1", b"-1", b"9" * 400, b"a" * 4000, b"a:b:c:d"],
    b"mcp-method": [b"", b"tools/list", b"TOOLS/CALL", b"=?base64?dG9vbHMvbGlzdA==?=", b"\xe9"],
    b"mcp-name": [
        b"", b"=?base64?", b"=?base64??=", b"=?base64?####?=", b"=?base64?/w==?=", b"echo",
        b"\xe9", b"=?base64?" + b"a" * 4000 + b"?=",
    ],
    b"mcp-param-region": [b"", b"x", b"=?base64?/w==?=", b"9" * 400],
    b"authorization": [
        b"", b"Bearer", b"Bearer ", b"Bearer x", b"Basic eDp5", b"Bearer mcp_" + b"a" * 43,
        b"bearer mcp_x y", b"Bearer " + b"a" * 5000, b"\xff\xfe", b"Digest username=x",
    ],
    b"cookie": [b"sessionid=x", b"csrftoken=" + b"a" * 64, b"=;=;", b"\xff"],
    b"accept-language": [b"de", b"xx-yy;q=x", b"a" * 3000, b"\xff", b"ar, he;q=0.5"],
}  # fmt: skip


@dataclass(kw_only=True)
class Case:
    """One message, how it travels, and what its answer must be like."""

    kind: str
    sent: Sent
    person: str | None
    #: Spoken in the session that stands for SESSION, where there is one.
    revision: Revision
    #: Whether all answers must be valid in that revision.
    is_exact: bool = True
    #: Methods by the ids of requests; of a batch several may have the same.
    methods: dict[Any, list[str]] = field(default_factory=dict)


@dataclass(kw_only=True)
class Knowledge:
    """What a site offers, as it says itself."""

    tools: dict[str, Any]
    prompts: dict[str, Any]
    uris: list[str]
    templates: list[str]
    #: By the label of a model: the names that its description has.
    names: dict[str, list[str]]
    tokens: dict[str, str]

    @classmethod
    def learn(cls, client: Client, tokens: dict[str, str]) -> Knowledge:
        names = {}
        for model in client.call_tool("list_models").data["models"]:
            described = client.call_tool("describe_model", model=model["model"]).data
            fields = [field["name"] for field in described.get("fields", ())]
            names[model["model"]] = fields + described.get("more_filters", [])
        templates = client.list_all("resources/templates/list", "resourceTemplates")
        return cls(
            tools={tool["name"]: tool["inputSchema"] for tool in client.list_tools()},
            prompts={prompt["name"]: prompt for prompt in client.list_prompts()},
            uris=[resource["uri"] for resource in client.list_resources()],
            templates=[template["uriTemplate"] for template in templates],
            names=names,
            tokens=tokens,
        )

    @property
    def labels(self) -> list[str]:
        return list(self.names)


class Cases:
    def __init__(self, seed: int, knowledge: Knowledge) -> None:
        self.seed = seed
        self.knowledge = knowledge
        self.kinds: dict[str, tuple[int, Any]] = {
            "call": (24, self.call),
            "hostile arguments": (26, self.hostile_call),
            "hostile message": (12, self.hostile_message),
            "broken bytes": (9, self.broken_bytes),
            "hostile headers": (11, self.hostile_headers),
            "batch": (5, self.batch),
            "notice": (4, self.notice),
        }

    def case(self, index: int) -> Case:
        random = Random(f"{self.seed}:{index}")
        weights = [weight for weight, _ in self.kinds.values()]
        kind = random.choices(list(self.kinds), weights)[0]
        case: Case = self.kinds[kind][1](random)
        case.kind = kind
        if random.random() < 0.05:
            size = len(case.sent.body) + 1
            case.sent.cuts = tuple(random.randrange(size) for _ in range(random.randrange(1, 4)))
            case.sent.is_broken_off = random.random() < 0.2
        return case

    # Who asks, and in which revision

    def person(self, random: Random) -> str | None:
        if random.random() < 0.6:
            return "boss"
        return random.choice([*self.knowledge.tokens, None])

    def request(self, random: Random) -> tuple[dict[str, Any], Revision]:
        """A request that is valid as far as we know, and its revision."""
        revision = random.choice([*LEGACY, *MODERN * 3])
        names = [name for name, method in METHODS.items() if revision.era in method.eras]
        weights = [8 if name == "tools/call" else 1 for name in names]
        method = random.choices(names, weights)[0]
        message = {
            "jsonrpc": "2.0",
            "id": random.choice([1, 2, 3, "a", "b", 2**40, random.randrange(10**6)]),
            "method": method,
            "params": self.params(random, method),
        }
        return in_revision(random, message, revision), revision

    def pack(
        self, random: Random, message: Any, revision: Revision, body: bytes | None = None
    ) -> Case:
        person = self.person(random)
        headers = headers_with(self.knowledge.tokens.get(person)) + routing(message, revision)
        if revision.era is Era.LEGACY and method_of(message) != "initialize":
            needs = METHODS.get(method_of(message))
            if (needs is not None and needs.needs_streams) or random.random() < 0.3:
                headers.append((b"mcp-session-id", SESSION))
        sent = Sent(headers=headers, body=dump(message, random) if body is None else body)
        methods = methods_in(message)
        return Case(kind="", sent=sent, person=person, revision=revision, methods=methods)

    # The kinds

    def call(self, random: Random) -> Case:
        return self.pack(random, *self.request(random))

    def hostile_call(self, random: Random) -> Case:
        message, revision = self.request(random)
        params = message["params"]
        names = [name for name in params if name != "_meta"]
        if names and random.random() < 0.9:
            name = "arguments" if "arguments" in names else random.choice(names)
            value = params[name]
            for _ in range(random.choice([1, 1, 2])):
                value = mutated(random, value)
            message = {**message, "params": {**params, name: value}}
        else:
            message = {**message, "params": mutated(random, params)}
        case = self.pack(random, message, revision)
        case.is_exact = is_own_envelope(message, revision)
        return case

    def hostile_message(self, random: Random) -> Case:
        message, revision = self.request(random)
        if random.random() < 0.3:
            message["method"] = random.choice([*STRANGE_METHODS, *METHODS, *NAME_PARAMS])
        elif random.random() < 0.3:
            message["id"] = random.choice(HOSTILE)
        else:
            message = mutated(random, message)
        case = self.pack(random, message, revision)
        case.is_exact = is_own_envelope(message, revision)
        return case

    def broken_bytes(self, random: Random) -> Case:
        message, revision = self.request(random)
        case = self.pack(random, message, revision, broken(random, dump(message, random)))
        case.is_exact = False
        return case

    def hostile_headers(self, random: Random) -> Case:
        case = self.pack(random, *self.request(random))
        headers = case.sent.headers
        for _ in range(random.choice([1, 1, 1, 2, 3])):
            name = random.choice(list(STRANGE_HEADERS))
            value = random.choice([*STRANGE_HEADERS[name], random.randbytes(8).hex().encode()])
            match random.randrange(4):
                case 0:
                    headers = [pair for pair in headers if pair[0] != name]
                case 1:
                    headers = [*headers, (name, value)]
                case _:
                    headers = [*(pair for pair in headers if pair[0] != name), (name, value)]
        if random.random() < 0.2:
            case.sent.query = random.choice(
                [b"x=1", b"%ff", b"\xff", b"session_id=x", b"a" * 5000]
            )
        random.shuffle(headers)
        case.sent.headers = headers
        case.is_exact = False
        return case

    def batch(self, random: Random) -> Case:
        messages = []
        for _ in range(random.choice([0, 1, 2, 3, 5, 20, 51])):
            message, _ = self.request(random)
            params = {name: part for name, part in message["params"].items() if name != "_meta"}
            message = {**message, "params": params}
            if random.random() < 0.3:
                message = mutated(random, message)
            elif random.random() < 0.3:
                message = self.notice_message(random)
            messages.append(message)
        revision = Revision("2025-03-26") if random.random() < 0.8 else random.choice(LEGACY)
        case = self.pack(random, messages, revision)
        case.is_exact = revision.value == "2025-03-26"
        return case

    def notice_message(self, random: Random) -> dict[str, Any]:
        """A notification, or the answer to a question that nobody asked."""
        ids = [1, 2, "a", 0, -1, None, 1.5, "x" * 3000, [], {}]
        if random.random() < 0.4:
            answer = random.choice(
                [
                    {"result": random.choice([{}, {"action": "accept", "content": {}}, None, 5])},
                    {"error": {"code": -1, "message": "no"}},
                    {"error": random.choice(HOSTILE)},
                    {"result": {}, "error": {}},
                ]
            )
            return {"jsonrpc": "2.0", "id": random.choice(ids), **answer}
        params: Any = random.choice(
            [
                {},
                {"requestId": random.choice(ids), "reason": random.choice(["x", 5, None])},
                {"progressToken": random.choice(ids), "progress": random.choice(HOSTILE)},
                random.choice(HOSTILE),
            ]
        )
        return {"jsonrpc": "2.0", "method": random.choice(NOTICES), "params": params}

    def notice(self, random: Random) -> Case:
        revision = random.choice(list(Revision))
        case = self.pack(random, self.notice_message(random), revision)
        case.is_exact = False
        return case

    # Params that could be right

    def params(self, random: Random, method: str) -> dict[str, Any]:
        known = self.knowledge
        match method:
            case "tools/call":
                name = random.choice(list(known.tools))
                return {"name": name, "arguments": self.arguments(random, known.tools[name])}
            case "prompts/get":
                prompt = random.choice(list(known.prompts.values()))
                given = {one["name"]: self.text(random) for one in prompt.get("arguments", ())}
                return {"name": prompt["name"], "arguments": given}
            case "resources/read" | "resources/subscribe" | "resources/unsubscribe":
                return {"uri": self.uri(random)}
            case "completion/complete":
                return self.completion(random)
            case "logging/setLevel":
                return {"level": random.choice(LOG_LEVELS)}
            case "subscriptions/listen":
                uris = [self.uri(random) for _ in range(random.randrange(4))]
                wishes = {"toolsListChanged": True, "resourceSubscriptions": uris}
                return {"notifications": wishes}
            case "initialize":
                return {
                    "protocolVersion": random.choice(list(Revision)).value,
                    "capabilities": random.choice([{}, {"elicitation": {}, "sampling": {}}]),
                    "clientInfo": {"name": "fuzz", "version": "1"},
                }
            case _ if method.endswith("list"):
                return random.choice([{}, {}, {"cursor": self.text(random)}])
        return {}

    def completion(self, random: Random) -> dict[str, Any]:
        known = self.knowledge
        if random.random() < 0.5:
            prompt = random.choice(list(known.prompts.values()))
            names = [one["name"] for one in prompt.get("arguments", ())] or ["x"]
            ref = {"type": "ref/prompt", "name": prompt["name"]}
        else:
            template = random.choice(known.templates)
            names = [part.split("}")[0].strip("+?&*") for part in template.split("{")[1:]]
            ref = {"type": "ref/resource", "uri": template}
        given = {"model": random.choice(known.labels)} if random.random() < 0.5 else {}
        argument = {"name": random.choice(names), "value": self.text(random)[:100]}
        return {"ref": ref, "argument": argument, "context": {"arguments": given}}

    def uri(self, random: Random) -> str:
        known = self.knowledge
        template = random.choice([*known.uris, *known.templates, *known.templates])
        while "{" in template:
            before, _, rest = template.partition("{")
            name, _, after = rest.partition("}")
            values = [random.choice(known.labels), str(random.randrange(1, 14)), "logo", "A-1"]
            value = values[0] if "model" in name else random.choice(values)
            template = f"{before}{value}{after}"
        if random.random() < 0.3:
            at = random.randrange(len(template) + 1)
            template = template[:at] + self.text(random)[:50] + template[at:]
        return template

    def text(self, random: Random) -> str:
        near = ["A-1", "A-2", "1", "warm", "customer", "label 1", "red", "2026-01-02", ""]
        strange = [one for one in HOSTILE if isinstance(one, str)]
        return random.choice([*near * 8, *strange])

    def arguments(self, random: Random, schema: dict[str, Any]) -> dict[str, Any]:
        found = self.value(random, schema, schema, "")
        return found if isinstance(found, dict) else {}

    def value(
        self, random: Random, schema: Any, root: dict[str, Any], name: str, depth: int = 0
    ) -> Any:
        """A value that the schema takes, as well as it is understood here."""
        if not isinstance(schema, dict) or depth > 5:
            return self.text(random)
        special = self.special(random, name)
        if special is not None and random.random() < 0.9:
            return special
        if "$ref" in schema:
            target: Any = root
            for part in schema["$ref"].lstrip("#/").split("/"):
                target = target[part]
            return self.value(random, target, root, name, depth + 1)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self.value(random, random.choice(schema[key]), root, name, depth + 1)
        if "enum" in schema:
            return random.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        return self.typed(random, schema, root, name, depth)

    def typed(
        self, random: Random, schema: dict[str, Any], root: dict[str, Any], name: str, depth: int
    ) -> Any:
        kind = schema.get("type", "string")
        match random.choice(kind) if isinstance(kind, list) else kind:
            case "object":
                required = schema.get("required", ())
                return {
                    key: self.value(random, part, root, key, depth + 1)
                    for key, part in schema.get("properties", {}).items()
                    if key in required or random.random() < 0.35
                }
            case "array":
                part = schema.get("items", {})
                size = random.randrange(3)
                return [self.value(random, part, root, name, depth + 1) for _ in range(size)]
            case "integer":
                return random.randrange(schema.get("minimum", 0), 15)
            case "number":
                return random.choice([0, 1, 2.5])
            case "boolean":
                return random.random() < 0.5
            case "null":
                return None
        if schema.get("format") == "date":
            return "2026-01-02"
        return self.text(random)

    def special(self, random: Random, name: str) -> Any:
        """What the arguments of our own tools take, by their names."""
        known = self.knowledge
        label = random.choice(known.labels)
        names = known.names.get(label) or ["id"]
        path = random.choice(names) if random.random() < 0.8 else random.choice(PATHS)[:300]
        operator = random.choice(["", "", "__in", "__gte", "__icontains", "__isnull"])
        value: Any = random.choice([1, "A-1", True, "2026-01-02", self.text(random)])
        row = {"sku": "x", "amount": 1, "pk": random.randrange(1, 9)}
        sign = random.choice(["", "-"])
        condition = {path + operator: [value] if operator == "__in" else value}
        makers: dict[str, Callable[[], Any]] = {
            "model": lambda: label,
            "pk": lambda: random.choice([random.randrange(1, 14), "1", [1, 2]]),
            **dict.fromkeys(("filters", "exclude", "having"), lambda: condition),
            "any_of": lambda: [{path: self.text(random)} for _ in range(random.randrange(1, 3))],
            **dict.fromkeys(("order_by", "group_by", "fields"), lambda: [sign + path]),
            "metrics": lambda: {"m": {random.choice(["sum", "avg", "count", "max"]): path}},
            "values": lambda: {
                random.choice(names): self.cell(random) for _ in range(random.randrange(1, 5))
            },
            "inlines": lambda: {random.choice(["lines", "memos", "parts"]): [row]},
            "uri": lambda: self.uri(random),
        }
        return makers[name]() if name in makers else None

    def cell(self, random: Random) -> Any:
        """A value for a field of a form."""
        file = {"filename": self.text(random)[:60], "data": "eA=="}
        return random.choice([1, "x", "A-1", True, "2026-01-02", 2.5, [1], None, file, {"a": 1}])


def in_revision(random: Random, message: dict[str, Any], revision: Revision) -> dict[str, Any]:
    if revision.era is Era.LEGACY:
        if random.random() < 0.1:
            message["params"]["_meta"] = {"progressToken": random.choice([1, "t", 1.5, None])}
        return message
    meta = {
        f"{META}protocolVersion": revision.value,
        f"{META}clientCapabilities": random.choice([{}, {"elicitation": {}}]),
        f"{META}clientInfo": {"name": "fuzz", "version": "1"},
    }
    if random.random() < 0.1:
        meta["progressToken"] = random.choice([1, "t", 1.5, None, "a" * 999])
    if random.random() < 0.05:
        message["params"]["requestState"] = random.choice(["x", "", 5, "a" * 999])
        message["params"]["inputResponses"] = random.choice([{}, {"refund": {}}, [], "x"])
    message["params"]["_meta"] = meta
    return message


def headers_with(token: str | None) -> Pairs:
    headers = [(b"host", b"testserver"), (b"accept", ACCEPT)]
    headers.append((b"content-type", b"application/json"))
    return headers + ([(b"authorization", f"Bearer {token}".encode())] if token else [])


def routing(message: Any, revision: Revision) -> Pairs:
    """The headers that repeat parts of a message, as far as they can be made of it."""
    method = method_of(message)
    if method == "initialize" and revision.era is Era.LEGACY:
        return []
    headers: Pairs = [(b"mcp-protocol-version", revision.value.encode())]
    if revision.era is Era.MODERN:
        headers.append((b"mcp-method", method.encode("latin-1", "replace")))
        params = message.get("params") if isinstance(message, dict) else None
        member = NAME_PARAMS.get(method)
        value = params.get(member) if member and isinstance(params, dict) else None
        if isinstance(value, str):
            encoded = encode_value(value.encode(errors="replace").decode())
            headers.append((b"mcp-name", encoded.encode()))
    return headers


def method_of(message: Any) -> str:
    method = message.get("method") if isinstance(message, dict) else None
    return method if isinstance(method, str) else ""


def methods_in(message: Any) -> dict[Any, list[str]]:
    found: dict[Any, list[str]] = {}
    for one in message if isinstance(message, list) else [message]:
        if isinstance(one, dict) and isinstance(one.get("id"), int | str):
            found.setdefault(one["id"], []).append(method_of(one))
    return found


def is_own_envelope(message: Any, revision: Revision) -> bool:
    """Whether the message still says what its headers say."""
    if not isinstance(message, dict) or method_of(message) == "initialize":
        return False
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    named = meta.get(f"{META}protocolVersion") if isinstance(meta, dict) else None
    return named == (revision.value if revision.era is Era.MODERN else None)
