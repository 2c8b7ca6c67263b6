"""Two databases that differ only in what the caller may not see answer the same to writes.

A pair is a script of a write, its confirmation and a look at what became of it, run over both
states. The answers must be equal but for what is random by nature, and what the person cannot see
must be as it was before. `tests/leaks` asks the same of reads. Some scripts run as somebody who
sees everything: those must differ, or the search is blind.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from django.conf import settings
from django.db import connection, models, transaction

from mcp_django.stores.cache_version import generations
from mcp_django.testing import Client
from tests.fuzz import rows, states
from tests.fuzz.doors import TOKEN, post_call
from tests.fuzz.values import mutated
from tests.leaks.canaries import Canaries

#: Scripts between two times that the states are made anew.
BATCH = 100
#: Of the scripts of somebody who sees what is hidden, so many must differ.
SIGHT = 0.5
#: Whoever has the most rights can be told the most.
BLIND = [one for one in rows.PEOPLE.values() if not (one.sees_hidden or one.is_superuser)]
BLIND += [rows.PEOPLE["narrowed"]] * 2
#: Relations of orders whose choices the person cannot see. A form takes the key of each of its
#: choices: see docs/topics/writing.md.
HIDDEN_CHOICES = {"clerk of orders": ("labels",), "held to orders": ("labels", "customer")}
#: Of judged rows, pages are short: see docs/topics/rights.md.
READ = [one._meta.label_lower for one in rows.MODELS if one is not rows.Review]
#: Where each state is a tenant's.
TENANTS = getattr(settings, "TENANTS", ())
#: PostgreSQL takes no number of a sequence back, also where a hidden row kept another from coming.
SAME_KEYS = (
    "SELECT setval(format('%I.%I', schemaname, sequencename), 1000) FROM pg_sequences "
    "WHERE schemaname = current_schema()"
)
CONFIRMATION = "@confirmation@"
RANDOM = "confirmation|next|_version|version"
MASKS = [
    (re.compile(rf'(\\*"(?:{RANDOM})\\*":\s*\\*")[^"\\]+'), r"\1masked"),
    (re.compile(r"version is now [0-9a-f]+"), "version is now masked"),
    (re.compile(r"data-[0-9a-f]{4,}"), "data-masked"),
    (re.compile(r"/(north|south)/"), "/"),
]

#: The tool and its arguments.
Step = tuple[str, dict[str, Any]]
Script = list[Step]
#: Of one person, by state.
Tokens = tuple[str, str]
Facts = frozenset[tuple[Any, ...]]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    answers: tuple[str, ...]
    #: Whether everything that the person does not see is as before.
    is_intact: bool


def update(pk: int, **arguments: Any) -> Step:
    return "update_record", {"model": "fuzz.order", "pk": pk, **arguments}


def delete(model: str, pk: Any, **arguments: Any) -> Step:
    return "delete_record", {"model": model, "pk": pk, **arguments}


def confirmed(step: Step) -> Step:
    return step[0], {**step[1], "confirmation": CONFIRMATION}


LINE_1 = update(1, inlines={"lines": [{"pk": 1, "delete": True}]})
#: Lines and memos 2 and 3 of order 1 are hidden, and the second state has only the former.
NAMED: list[Script] = [
    [delete("fuzz.order", 1), confirmed(delete("fuzz.order", 1))],
    [delete("fuzz.order", 1, dry_run=True)],
    [delete("fuzz.customer", [1, 2])],
    # Rows that the admin hides, and rows that the exposure hides.
    [update(1, inlines={"lines": [{"pk": 3, "amount": 666}]}, dry_run=True)],
    [update(1, inlines={"lines": [{"pk": 2, "amount": 666}]})],
    [update(1, inlines={"lines": [{"pk": 2, "delete": True}]})],
    [LINE_1, confirmed(LINE_1)],
    [update(1, inlines={"memos": [{"pk": 3, "text": "seen"}]}, dry_run=True)],
    [update(1, inlines={"memos": [{"pk": 2, "text": "seen"}]})],
    [update(1, values={"labels": {"set": [1]}})],
    [update(1, values={"labels": {"add": [1, 2]}}), update(1, values={"labels": {"remove": [1]}})],
    [("get_record", {"model": "fuzz.order", "pk": 1}), update(1, values={"total": 5})],
]


class Scripts:
    """Writes of a person, with words that are hidden somewhere. An index makes the same script
    in each run."""

    def __init__(self, seed: int, person: str) -> None:
        self.seed = seed
        self.hidden_choices = HIDDEN_CHOICES.get(person, ())
        #: Values that only what is hidden has, and values of any row.
        self.aims: list[Any] = ["sku 1", "sku 2", "memo 2", "label 5", "customer 5", "A-8", 1, 2]
        self.keys: dict[str, list[int]] = {}
        for model in (*rows.MODELS, rows.Vault):
            for column in model._meta.concrete_fields:
                if isinstance(column, models.CharField | models.IntegerField):
                    values = model.objects.order_by("pk").values_list(column.attname, flat=True)
                    self.aims += values[:12]
        for model in rows.MODELS:
            every = list(model.objects.order_by("pk").values_list("pk", flat=True))
            seen = list(model.objects.filter(is_hidden=False).values_list("pk", flat=True))
            # What has nothing hidden comes more often.
            self.keys[model._meta.label_lower] = every + seen * 3

    def script(self, index: int) -> Script:
        random = Random(f"{self.seed}:{index}")
        step = self.write(random)
        if random.random() < 0.15:
            step = step[0], mutated(random, step[1])
        steps = [step]
        # A mutated step may have any value in place of its arguments.
        is_whole = isinstance(step[1], dict)
        is_confirmed = is_whole and (step[0] == "delete_record" or "inlines" in step[1])
        if is_confirmed and random.random() < 0.5:
            steps.append(confirmed(step))
        return [*steps, ("find_records", {"model": random.choice(READ), "limit": 50})]

    def write(self, random: Random) -> Step:
        model = random.choice(list(self.keys))
        tool = random.choice(["create_record", "update_record", "delete_record", "action"])
        if tool == "action":
            return "fuzz_order_mark_paid", {"pks": random.sample(self.keys["fuzz.order"], 2)}
        arguments: dict[str, Any] = {"model": model}
        if tool != "create_record":
            arguments["pk"] = random.choice(self.keys[model])
        if tool != "delete_record":
            values = self.row(random, model)
            if tool == "update_record":
                values = dict(random.sample(sorted(values.items()), 1))
            arguments["values"] = values
            if model == "fuzz.order" and random.random() < 0.3:
                arguments["inlines"] = self.inlines(random)
        if random.random() < 0.4:
            arguments["dry_run"] = True
        return tool, arguments

    def row(self, random: Random, model: str) -> dict[str, Any]:
        """What the form of the model may be sent."""
        order, text = random.choice(self.keys["fuzz.order"]), self.text(random)
        row: dict[str, Any] = {
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
        }.get(model, {"order": order, "text": text})
        return {name: value for name, value in row.items() if name not in self.hidden_choices}

    def text(self, random: Random) -> str:
        aim = str(random.choice(self.aims))
        return random.choice(["new", "newer", aim, aim[:4], aim[-3:], aim.upper()])[:60]

    def members(self, random: Random) -> Any:
        keys = random.sample(range(1, 7), random.randrange(4))
        return random.choice([keys, {"add": keys}, {"remove": keys}, {"set": keys}])

    def inlines(self, random: Random) -> dict[str, Any]:
        row = {"pk": random.randrange(1, 12), **random.choice([{"delete": True}, {}])}
        change: dict[str, Any] = random.choice([{"amount": 5}, {"text": "x"}, {"sku": "x"}])
        return {random.choice(["lines", "memos"]): [{**row, **change}]}


@contextmanager
def state(person: rows.Person, seed: int, world: int) -> Iterator[None]:
    """The database in one of the states, until the block ends."""
    with transaction.atomic():
        states.hide(person, Canaries(seed * 4 + world), world)
        generations.forget()
        yield
        transaction.set_rollback(True)
    generations.forget()


def run(script: Script, client: Client, hidden_from: rows.Person, before: Facts) -> Outcome:
    """Make the calls, see what became of the hidden things, and undo everything.

    `before` is what is hidden in this state. More of it may come, and nothing may go.
    """
    # The admin takes along what nobody sees, when its parent goes, or its row.
    deletes = CONFIRMATION in json.dumps(script)
    files, answers, raw = stored_files(), [], ""
    with transaction.atomic():
        for tool, arguments in script:
            text = json.dumps(arguments)
            if CONFIRMATION in text:
                token = TOKEN.search(raw)
                if token is None:
                    break
                text = text.replace(CONFIRMATION, token[1])
            answer = post_call(client, tool, json.loads(text))
            raw = f"{answer.status} {answer.body.decode()}"
            answers.append(masked(raw))
        is_intact = deletes or before <= states.hidden_facts(hidden_from)
        transaction.set_rollback(True)
    for path in stored_files() - files:
        path.unlink()
    return Outcome(answers=tuple(answers), is_intact=is_intact)


def masked(text: str) -> str:
    for pattern, replacement in MASKS:
        text = pattern.sub(replacement, text)
    return text


def stored_files() -> set[Path]:
    return {path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()}


def within(world: int) -> AbstractContextManager[Any]:
    """The tenant that has this state, where each has one of its own."""
    if not TENANTS:
        return nullcontext()
    from django_tenants.utils import schema_context

    return schema_context(TENANTS[world - 1])  # type: ignore[no-any-return]


@contextmanager
def playing(
    world: int, hidden_from: rows.Person, tokens: Tokens, seed: int
) -> Iterator[Callable[[Script], Outcome]]:
    """What runs scripts in one of the states."""
    with within(world), state(hidden_from, seed, world):
        client, before = Client(token=tokens[world - 1]), states.hidden_facts(hidden_from)

        def play(script: Script) -> Outcome:
            with within(world):
                if TENANTS:
                    with connection.cursor() as cursor:
                        cursor.execute(SAME_KEYS)
                return run(script, client, hidden_from, before)

        yield play


def differences(
    make: Callable[[], list[Script]], hidden_from: rows.Person, tokens: Tokens, seed: int
) -> Iterator[str]:
    """For each script what is wrong with its answers, or nothing. Tenants take turns.

    `make` makes the scripts, of values that are in the first state.
    """
    options: Any = {"hidden_from": hidden_from, "tokens": tokens, "seed": seed}
    with playing(1, **options) as play:
        scripts = make()
        if TENANTS:
            with playing(2, **options) as play_other:
                pairs = [(play(script), play_other(script)) for script in scripts]
        else:
            ones = [play(script) for script in scripts]
    if not TENANTS:
        with playing(2, **options) as play:
            pairs = list(zip(ones, map(play, scripts), strict=True))
    for script, (one, other) in zip(scripts, pairs, strict=True):
        calls = json.dumps(script)
        if one.answers != other.answers:
            yield f"{calls}\nThe answers differ:\n  {one.answers}\n  {other.answers}"
        elif not (one.is_intact and other.is_intact):
            yield f"{calls}\nSomething unseen was changed:\n  {one.answers}"
        else:
            yield ""


def told(head: str, wrong: Iterator[str]) -> Iterator[str]:
    """The same with a head, and cut."""
    for at, text in enumerate(wrong):
        yield text and f"{head}, script {at}\n{text}"[:6000]


def judged(options: argparse.Namespace, tokens: dict[str, Tokens]) -> Iterator[str]:
    """For each script what is wrong, or nothing."""
    seed, narrowed = options.seed, rows.PEOPLE["narrowed"]
    #: Scripts of somebody who sees what is hidden: whether they differed.
    insight: list[bool] = []
    yield from told("named", differences(lambda: NAMED, narrowed, tokens["narrowed"], seed))
    for start in range(options.first, options.first + options.count, BATCH):
        end = min(start + BATCH, options.first + options.count)
        person = BLIND[start // BATCH % len(BLIND)]

        def make(name: str = person.name, indexes: range = range(start, end)) -> list[Script]:
            scripts = Scripts(seed, name)
            return [scripts.script(index) for index in indexes]

        head = f"--seed {seed} --only {start}.. as {person.name}"
        yield from told(head, differences(make, person, tokens[person.name], seed))
        if start // BATCH % 10 == 0 and options.only is None:
            insight += map(bool, differences(make, narrowed, tokens["insider"], seed))
    print(f"{sum(insight)} of {len(insight)} differ for an insider")
    if sum(insight) < SIGHT * len(insight):
        yield "Who sees what is hidden hardly sees it: the search is blind."


def search(options: argparse.Namespace) -> Iterator[str]:
    secrets = []
    for world in (1, 2)[: len(TENANTS) or 1]:
        if TENANTS:
            from tests.sites.estates.models import make_tenant

            make_tenant(TENANTS[world - 1])
        with within(world):
            rows.fill()
            secrets.append([person.make() for person in rows.PEOPLE.values()])
    tokens = dict(zip(rows.PEOPLE, zip(secrets[0], secrets[-1], strict=True), strict=True))
    return filter(None, judged(options, tokens))
