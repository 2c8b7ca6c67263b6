"""Two databases that differ only in what the caller may not see give the same answers.

    python -m tests.fuzz.pairs --count 20000 --seed 1 --jobs 2
    python -m tests.fuzz.pairs --seed 1 --only 4711
    python -m tests.fuzz.pairs --named

On SQLite, where the keys of new records are taken back with everything else.

A pair is a script of up to three calls, run over both states. The answers must be equal but for
what is random by nature, and what the person cannot see must be as it was before. Some scripts
run as somebody who sees everything: those must differ, or the search is blind.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.fuzz.settings"

import django

django.setup()

from django.conf import settings  # noqa: E402  after Django is set up
from django.db import models, transaction  # noqa: E402

from mcp_django.exposure.generation import generations  # noqa: E402
from mcp_django.protocol.revisions import Revision  # noqa: E402
from mcp_django.testing import Client  # noqa: E402
from tests.fuzz import rows, states  # noqa: E402
from tests.fuzz.cases import MODERN, Cases, Knowledge, routing  # noqa: E402
from tests.fuzz.searching import learn, options_of, run_jobs  # noqa: E402
from tests.fuzz.values import mutated  # noqa: E402
from tests.leaks.canaries import Canaries  # noqa: E402

#: Scripts between two times that the states are made anew.
BATCH = 100
#: Of the scripts of somebody who sees what is hidden, so many must differ.
SIGHT = 0.05
#: Differences that are printed.
SHOWN = 10
#: What each run asks, one person after the other.
BLIND = [one for one in rows.PEOPLE.values() if not (one.sees_hidden or one.is_superuser)]
#: Whoever has the most rights can be told the most.
BLIND += [rows.PEOPLE["narrowed"]] * 2
#: Paths that nobody may use, and what follows from them.
HIDDEN_PATHS = [
    "margin", "rating", "cost", "draft", "is_hidden", "lines__cost", "customer__rating",
    "customer__is_hidden", "labels__is_hidden", "lines__is_hidden", "vaults__text", "vaults",
    "memos__is_hidden", "order__margin", "order__is_hidden", "parent__is_hidden",
]  # fmt: skip
FUZZ = [model._meta.label_lower for model in rows.MODELS]
#: Columns that records can be ordered and grouped by.
PLAIN = {
    "fuzz.customer": ["name", "country"],
    "fuzz.label": ["name", "parent"],
    "fuzz.order": ["number", "status", "total"],
    "fuzz.line": ["sku", "amount", "order"],
    "fuzz.memo": ["text", "order"],
    "fuzz.payment": ["amount", "order"],
    "fuzz.review": ["text", "order"],
}
OTHERS = ("library.", "workshop.", "shop.")
WRITES = {"create_record", "update_record", "delete_record"}
GENERIC = [
    "find_records", "get_record", "aggregate_records", "create_record", "update_record",
    "delete_record",
]  # fmt: skip
#: Tools that write nothing, and the name where there is no tool.
READS = {
    "", "list_models", "describe_model", "find_records", "get_record", "aggregate_records",
    "list_resources", "read_resource", "revenue", "count_slowly", "fuzz_order_list_numbers",
}  # fmt: skip

Facts: TypeAlias = frozenset[tuple[Any, ...]]

#: Stand in a script for what the call before answered with.
CURSOR, CONFIRMATION, VERSION = "@cursor@", "@confirmation@", "@version@"
RANDOM_MEMBERS = (
    "confirmation|next|next_cursor|nextCursor|_version|version|requestState|request_state"
)
MASKS = [
    (re.compile(rf'(\\*"(?:{RANDOM_MEMBERS})\\*":\s*\\*")[^"\\]+'), r"\1masked"),
    (re.compile(r"version is now [0-9a-f]+"), "version is now masked"),
    (re.compile(r"data-[0-9a-f]{4,}"), "data-masked"),
    (re.compile(datetime.now(UTC).strftime("%Y-%m-%d") + r"T[0-9:.]+"), "now"),
]


@dataclass(frozen=True, kw_only=True)
class Script:
    """Calls that one person makes one after the other: methods and params."""

    person: str
    steps: tuple[tuple[str, dict[str, Any]], ...]
    revision: Revision = MODERN[-1]

    @property
    def tools(self) -> set[str]:
        return {params.get("name", "") for _, params in self.steps}

    @property
    def kind(self) -> str:
        method, params = self.steps[0]
        return str(params.get("name")) if method == "tools/call" else method


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was answered, and whether something unseen was changed."""

    said: tuple[str, ...]
    is_intact: bool
    is_refused: bool


# Scripts with names

#: Kinds of scripts whose answers may differ. A kind goes when its named scripts pass.
OPEN = {"judged rows", "choices of a form"}


def finds_judged_rows(script: Script) -> bool:
    steps = json.dumps(script.steps)
    return "fuzz.review" in steps and ('"find_records"' in steps or "objects/" in steps)


def names_choices(script: Script) -> bool:
    """Whether it writes a relation to a model of which the person sees no record at all."""
    hidden = HIDDEN_CHOICES.get(script.person, set())
    written = [
        params["arguments"].get("values")
        for _, params in script.steps
        if params.get("name") in ("create_record", "update_record")
        and isinstance(params.get("arguments"), dict)
    ]
    return any(isinstance(values, dict) and not hidden.isdisjoint(values) for values in written)


KINDS: dict[str, Callable[[Script], bool]] = {
    # For good: where rows are judged one by one, pages are short. See docs/topics/rights.md.
    "judged rows": finds_judged_rows,
    # For good: a form takes the key of each of its choices. See docs/topics/writing.md.
    "choices of a form": names_choices,
}
#: Relations of orders whose choices the person cannot see.
HIDDEN_CHOICES = {"clerk of orders": {"labels"}, "held to orders": {"labels", "customer"}}


def open_kind(script: Script) -> str:
    """The open kind that a script is of, or nothing."""
    return next((kind for kind in sorted(OPEN) if KINDS[kind](script)), "")


def call(person: str, *steps: tuple[str, dict[str, Any]]) -> Script:
    calls = [("tools/call", {"name": name, "arguments": given}) for name, given in steps]
    return Script(person=person, steps=tuple(calls))


def update(pk: int, **values: Any) -> tuple[str, dict[str, Any]]:
    return "update_record", {"model": "fuzz.order", "pk": pk, **values}


#: Lines and memos 2 and 3 of order 1 are hidden, and the second state has only the former.
NAMED = {
    "the preview of a deletion": call(
        "narrowed", ("delete_record", {"model": "fuzz.order", "pk": 1})
    ),
    "the preview of the deletion of several": call(
        "narrowed", ("delete_record", {"model": "fuzz.customer", "pk": [1, 2]})
    ),
    "the dry run of a deletion": call(
        "narrowed", ("delete_record", {"model": "fuzz.order", "pk": 1, "dry_run": True})
    ),
    "a deletion": call(
        "narrowed",
        ("delete_record", {"model": "fuzz.order", "pk": 1}),
        ("delete_record", {"model": "fuzz.order", "pk": 1, "confirmation": CONFIRMATION}),
    ),
    "a dry run with a row that the admin hides": call(
        "narrowed", update(1, inlines={"lines": [{"pk": 3, "amount": 666}]}, dry_run=True)
    ),
    "a row that the admin hides": call(
        "narrowed", update(1, inlines={"lines": [{"pk": 2, "amount": 666}]})
    ),
    "the deletion of a row that the admin hides": call(
        "narrowed", update(1, inlines={"lines": [{"pk": 2, "delete": True}]})
    ),
    "a confirmed deletion beside a row that the admin hides": call(
        "narrowed",
        update(1, inlines={"lines": [{"pk": 1, "delete": True}]}),
        update(1, inlines={"lines": [{"pk": 1, "delete": True}]}, confirmation=CONFIRMATION),
    ),
    "a dry run with a row that the exposure hides": call(
        "narrowed", update(1, inlines={"memos": [{"pk": 3, "text": "seen"}]}, dry_run=True)
    ),
    "a row that the exposure hides": call(
        "narrowed", update(1, inlines={"memos": [{"pk": 2, "text": "seen"}]})
    ),
    "the set of members": call("narrowed", update(1, values={"labels": {"set": [1]}})),
    "members that are added and removed": call(
        "narrowed",
        update(1, values={"labels": {"add": [1, 2]}}),
        update(1, values={"labels": {"remove": [1]}}),
    ),
    "a choice of a form": call("clerk of orders", update(1, values={"labels": {"set": [6]}})),
    "a record": call(
        "narrowed",
        ("get_record", {"model": "fuzz.order", "pk": 1}),
        update(1, values={"total": 5}),
    ),
    "numbers": call(
        "narrowed reader",
        (
            "aggregate_records",
            {"model": "fuzz.line", "group_by": ["sku"], "having": {"count__gte": 1}},
        ),
    ),
}  # fmt: skip


# Random scripts


class Scripts(Cases):
    """Calls of the message search with words that are hidden somewhere."""

    def __init__(self, seed: int, knowledge: Knowledge, aims: list[Any]) -> None:
        super().__init__(seed, knowledge)
        self.aims = aims
        #: The rows that have nothing hidden more often.
        self.keys = {
            model._meta.label_lower: [
                *model.objects.order_by("pk").values_list("pk", flat=True),
                *list(model.objects.filter(is_hidden=False).values_list("pk", flat=True)) * 3,
            ]
            for model in rows.MODELS
        }

    def script(self, index: int, person: str) -> Script:
        random = Random(f"{self.seed}:{index}")
        steps = [self.step(random)]
        first = steps[0][1]
        if first.get("name") in WRITES and random.random() < 0.5:
            steps += self.after_a_write(random, first)
        elif first.get("name") == "find_records" or steps[0][0].endswith("/list"):
            steps += self.more_pages(steps[0])
        revision = random.choice([MODERN[-1]] * 3 + list(Revision))
        return Script(person=person, steps=tuple(steps), revision=revision)

    def params(self, random: Random, method: str) -> dict[str, Any]:
        if method == "tools/call" and random.random() < 0.6:
            name = random.choice(GENERIC)
            return {"name": name, "arguments": self.plausible(random, name)}
        if method == "prompts/get" and random.random() < 0.7:
            name = random.choice(["about_order", "fuzz_order", "stored_order"])
            member = "order" if name == "stored_order" else "number"
            return {"name": name, "arguments": {member: str(random.choice(self.aims))}}
        return super().params(random, method)

    def plausible(self, random: Random, tool: str) -> dict[str, Any]:
        """Arguments of one of our own tools that fit together."""
        model = random.choice(FUZZ)
        given: dict[str, Any] = {"model": model}
        if tool in ("find_records", "aggregate_records"):
            return {**given, **self.question(random, tool, model)}
        if tool != "create_record":
            given["pk"] = random.choice(self.keys[model])
        if tool in ("create_record", "update_record"):
            values = self.row(random, model)
            if tool == "update_record":
                values = dict(random.sample(sorted(values.items()), 1))
                if model == "fuzz.order" and random.random() < 0.3:
                    given["inlines"] = self.special(random, "inlines")
            given["values"] = values
        if tool in WRITES and random.random() < 0.4:
            given["dry_run"] = True
        return given

    def question(self, random: Random, tool: str, model: str) -> dict[str, Any]:
        names = PLAIN[model] if random.random() < 0.7 else self.knowledge.names[model]
        given: dict[str, Any] = {}
        for name in ("filters", "exclude"):
            if random.random() < 0.35:
                given[name] = self.condition(random, names)
        if random.random() < 0.2:
            given["search"] = self.text(random)[:60]
        if tool == "find_records":
            given["order_by"] = [random.choice(["", "-"]) + random.choice(names)]
        else:
            given["group_by"] = [random.choice(names)]
            given["having"] = {"count__gte": random.randrange(3)}
        return given

    def condition(self, random: Random, names: list[str]) -> dict[str, Any]:
        path = random.choice(names if random.random() < 0.8 else HIDDEN_PATHS)
        operator = random.choice(["", "", "__gte", "__lt", "__icontains", "__isnull", "__in"])
        value: Any = random.choice(self.aims)
        if operator == "__isnull":
            return {path + operator: random.random() < 0.5}
        return {path + operator: [value] if operator == "__in" else value}

    def row(self, random: Random, model: str) -> dict[str, Any]:
        """What the form of the model may be sent."""
        order = random.choice(self.keys["fuzz.order"])
        text = random.choice(["new", "newer", self.text(random)[:60]])
        rows_: dict[str, dict[str, Any]] = {
            "fuzz.customer": {"name": text, "country": "FR"},
            "fuzz.label": {"name": text, "parent": random.randrange(1, 7)},
            "fuzz.order": {
                "number": "N-1",
                "customer": random.choice([1, 2, 4, 6, "customer 1", text]),
                "status": "paid",
                "total": "5.00",
                "labels": self.members(random),
                "contract": {"filename": "a.txt", "data": "eA=="},
            },
            "fuzz.line": {"order": order, "sku": text, "amount": 2},
            "fuzz.payment": {"order": order, "amount": 2},
        }
        return rows_.get(model, {"order": order, "text": text})

    def members(self, random: Random) -> Any:
        keys = random.sample(range(1, 7), random.randrange(4))
        return random.choice([keys, {"add": keys}, {"remove": keys}, {"set": keys}])

    def step(self, random: Random) -> tuple[str, dict[str, Any]]:
        method = random.choices(
            ["tools/call", "resources/read", "completion/complete", "prompts/get", "tools/list",
             "resources/list", "prompts/list", "resources/templates/list"],
            [40, 6, 6, 4, 1, 1, 1, 1],
        )[0]  # fmt: skip
        params = self.params(random, method)
        name = "arguments" if "arguments" in params else ""
        if name and random.random() < 0.15:
            params = {**params, name: mutated(random, params[name])}
        return method, params

    def after_a_write(
        self, random: Random, first: dict[str, Any]
    ) -> list[tuple[str, dict[str, Any]]]:
        given = first.get("arguments")
        if not isinstance(given, dict):
            return []
        again = {**first, "arguments": {**given, "confirmation": CONFIRMATION}}
        read = {"model": random.choice(FUZZ), "limit": 50}
        steps = [("tools/call", {"name": "find_records", "arguments": read})]
        # A row of a form may be deleted, too, which asks first.
        is_asked = first["name"] == "delete_record" or "inlines" in given
        return [("tools/call", again), *steps] if is_asked else steps

    def more_pages(self, step: tuple[str, dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
        method, params = step
        if method != "tools/call":
            return [(method, {**params, "cursor": CURSOR})]
        given = params.get("arguments")
        if not isinstance(given, dict):
            return []
        given["limit"] = 2
        more = {**params, "arguments": {**given, "cursor": CURSOR}}
        return [(method, more), (method, more)]

    def text(self, random: Random) -> str:
        if random.random() < 0.3:
            aim = str(random.choice(self.aims))
            return random.choice([aim, aim[:4], aim[-3:], aim.upper()])
        return super().text(random)

    def special(self, random: Random, name: str) -> Any:
        if name in ("filters", "exclude", "having") and random.random() < 0.3:
            path = random.choice([*HIDDEN_PATHS, *self.paths()])
            operator = random.choice(["", "__gte", "__lt", "__startswith", "__isnull", "__in"])
            aim = random.choice(self.aims)
            return {path + operator: [aim] if operator == "__in" else aim}
        if name in ("order_by", "group_by", "fields") and random.random() < 0.15:
            return [random.choice(HIDDEN_PATHS)]
        if name == "labels" or (name == "values" and random.random() < 0.1):
            return {"labels": self.members(random)}
        if name == "inlines":
            row = {"pk": random.randrange(1, 12), **random.choice([{"delete": True}, {}])}
            changes: dict[str, Any] = random.choice([{"amount": 5}, {"text": "x"}, {"sku": "x"}])
            return {random.choice(["lines", "memos"]): [{**row, **changes}]}
        return super().special(random, name)

    def paths(self) -> list[str]:
        return [name for names in self.knowledge.names.values() for name in names]


def aims() -> list[Any]:
    """Values that only what is hidden has, and values of any row."""
    found: list[Any] = ["sku 1", "sku 2", "memo 2", "label 5", "customer 5", "A-8", 1, 2, True]
    for model in (*rows.MODELS, rows.Vault):
        for column in model._meta.concrete_fields:
            if isinstance(column, models.CharField | models.IntegerField):
                values = model.objects.values_list(column.attname, flat=True)
                found += list(values.order_by("pk")[:12])
    return found


# Running them


@contextmanager
def state(person: rows.Person, seed: str, world: int) -> Iterator[None]:
    """The database in one of the states, until the block ends."""
    canaries = Canaries(int.from_bytes(seed.encode(), "big") * 4 + world)
    with transaction.atomic():
        states.hide(person, canaries, world)
        generations.forget()
        yield
        transaction.set_rollback(True)
    generations.forget()


def run(script: Script, client: Client, hidden_from: rows.Person, before: Facts) -> Outcome:
    """Make the calls, look what became of the hidden things, and undo everything.

    `before` is what is hidden in this state. More of it may come, and nothing may go.
    """
    # The admin takes along what nobody sees, when its parent goes, or its row.
    deletes = "delete_record" in script.tools or CONFIRMATION in json.dumps(script.steps)
    may_write = bool(script.tools - READS) and not deletes
    files = stored() if may_write else set()
    said: list[str] = []
    raw = ""
    with transaction.atomic():
        for method, params in script.steps:
            wanted = with_answers(params, raw)
            if wanted is None:
                break
            raw = ask(client, script.revision, method, wanted)
            said.append(masked(raw))
        is_intact = not may_write or before <= states.hidden_facts(hidden_from)
        transaction.set_rollback(True)
    for name in stored() - files if may_write else ():
        (Path(settings.MEDIA_ROOT) / name).unlink()
    is_refused = '"error"' in said[0] or '"isError":true' in said[0]
    return Outcome(said=tuple(said), is_intact=is_intact, is_refused=is_refused)


def ask(client: Client, revision: Revision, method: str, params: dict[str, Any]) -> str:
    client.revision = revision
    message = {**client.message(method, params), "id": 1}
    body = json.dumps(message).encode(errors="surrogatepass")
    # The client's own would be refused by Python where a name has half of a character.
    headers = {
        name.decode(): value.decode("latin-1") for name, value in routing(message, revision)
    }
    answer = client.post(body, headers=headers)
    return f"{answer.status} {answer.body.decode()}"


def with_answers(params: dict[str, Any], raw: str) -> dict[str, Any] | None:
    """Params with what the last answer said in the place of its name. None: it did not say it."""
    text = json.dumps(params)
    for name, member in ((CURSOR, "next(?:_?[cC]ursor)?"), (CONFIRMATION, "confirmation")):
        if f'"{name}"' not in text:
            continue
        match = re.search(rf'\\*"{member}\\*":\s*\\*"([^"\\]+)', raw)
        if match is None:
            return None
        text = text.replace(name, match[1])
    found: dict[str, Any] = json.loads(text)
    return found


def masked(text: str) -> str:
    for pattern, by in MASKS:
        text = pattern.sub(by, text)
    return text


def stored() -> set[str]:
    root = Path(settings.MEDIA_ROOT)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def differences(
    make: Callable[[list[Any]], list[Script]], hidden_from: rows.Person, token: str, seed: str
) -> Iterator[tuple[Script, str, bool]]:
    """Each script, what is wrong with its answers, and whether it was refused.

    `make` makes the scripts, of values that are in the first state.
    """
    scripts: list[Script] = []
    outcomes = []
    for world in (1, 2):
        with state(hidden_from, seed, world):
            scripts = scripts or make(aims())
            client, before = Client(token=token), states.hidden_facts(hidden_from)
            outcomes.append([run(script, client, hidden_from, before) for script in scripts])
    for script, one, other in zip(scripts, *outcomes, strict=True):
        wrong = ""
        if one.said != other.said:
            wrong = f"The answers differ:\n  {one.said}\n  {other.said}"
        elif not (one.is_intact and other.is_intact):
            wrong = f"Something unseen was changed:\n  {one.said}"
        yield script, wrong, one.is_refused


@dataclass
class Report:
    count: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    failures: list[str] = field(default_factory=list)
    #: Differences of open kinds.
    known: int = 0
    seeing: int = 0
    seen: int = 0

    def print(self) -> None:
        print(f"{self.count:,} pairs in {self.seconds:.1f} s, {self.refused:,} of them refused")
        print(", ".join(f"{kind} {count}" for kind, count in self.kinds.most_common()))
        print(f"as somebody who sees what is hidden: {self.seen} of {self.seeing} differ")
        print(f"{self.known} differences of kinds that are known: {', '.join(sorted(OPEN))}")
        for failure in self.failures[:SHOWN]:
            print(f"\n{failure[:6000]}")
        print(f"{len(self.failures)} failures")


def search(options: argparse.Namespace, tokens: dict[str, str]) -> Report:
    report, started = Report(), time.monotonic()
    first = options.first if options.only is None else options.only - options.only % BATCH
    end = first + (BATCH if options.only is not None else options.count)
    # Without the other apps, whose rows are the same in both states.
    knowledge = learn(
        Client(token=tokens["boss"]),
        {"boss": ""},
        labels=FUZZ,
        tools_left_out=("echo", "echo_later", "pay", "shop_customer_greet"),
        uris_left_out=OTHERS,
    )
    for start in range(first, end, BATCH):
        person = BLIND[start // BATCH % len(BLIND)]
        indexes = range(start, min(start + BATCH, end))
        if options.only is not None:
            indexes = range(options.only, options.only + 1)
        make = partial(scripts_of, options.seed, knowledge, indexes, person.name)
        found = list(differences(make, person, tokens[person.name], f"{options.seed}"))
        for index, (script, wrong, is_refused) in zip(indexes, found, strict=True):
            report.count += 1
            report.kinds[script.kind] += 1
            report.refused += is_refused
            if options.only is not None:
                print(script, wrong or "The answers are equal.", sep="\n")
            if wrong and open_kind(script):
                report.known += 1
            elif wrong:
                head = f"--seed {options.seed} --only {index} as {person.name}"
                report.failures.append(f"{head}\n{json.dumps(script.steps)}\n{wrong}")
        if start // BATCH % 10 == 0 and options.only is None:
            look(report, make, tokens, f"{options.seed}")
    report.seconds = time.monotonic() - started
    if options.only is None and report.seen < SIGHT * report.seeing:
        report.failures.append("Who sees what is hidden hardly sees it: the search is blind.")
    return report


def scripts_of(
    seed: int, knowledge: Knowledge, indexes: Iterable[int], person: str, values: list[Any]
) -> list[Script]:
    made = Scripts(seed, knowledge, values)
    return [made.script(index, person) for index in indexes]


def look(
    report: Report,
    make: Callable[[list[Any]], list[Script]],
    tokens: dict[str, str],
    seed: str,
) -> None:
    """The same scripts as somebody who sees what is hidden from others."""
    hidden_from = rows.PEOPLE["narrowed"]
    for _, wrong, _ in differences(make, hidden_from, tokens["insider"], seed):
        report.seeing += 1
        report.seen += bool(wrong)


def alone(script: Script, values: list[Any]) -> list[Script]:
    return [script]


def run_named(tokens: dict[str, str]) -> dict[str, tuple[str, str]]:
    """The open kind and what is wrong, of each of the named scripts."""
    found = {}
    for name, script in NAMED.items():
        person = rows.PEOPLE[script.person]
        ((_, wrong, _),) = differences(
            partial(alone, script), person, tokens[person.name], "named"
        )
        found[name] = open_kind(script), wrong
    return found


def main() -> int:
    parser = options_of(__doc__, count=500)
    parser.add_argument(
        "--named", action="store_true", help="the scripts that have names, as JSON"
    )
    options = parser.parse_args()
    if options.jobs > 1 and options.only is None:
        return run_jobs("tests.fuzz.pairs", options, batch=BATCH)
    with rows.site():
        rows.fill()
        tokens = {name: person.make() for name, person in rows.PEOPLE.items()}
        if options.named:
            print(json.dumps(run_named(tokens)))
            return 0
        report = search(options, tokens)
    report.print()
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
