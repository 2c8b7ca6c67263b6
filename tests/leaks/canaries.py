"""Values that nobody can meet by chance, and how to find them again in what was said."""

from __future__ import annotations

import base64
import json
import random
import string
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import models

#: Letters at both ends of a text. 52 ** 8 of them, so none is there by chance.
CORE = 8


class Canaries:
    """Makes one for each column and row, and looks for all that were made."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.needles: dict[bytes, str] = {}
        #: Names of the files that were written, and what they hold.
        self.files: dict[str, bytes] = {}

    def make(self, field: Any, *, row: int, world: int) -> Any:
        """A value for a column. In the second world rows are in the opposite order by it."""
        rank = row if world == 1 else 25 - row
        if field.choices:
            return field.choices[rank % len(field.choices)][0]
        for kind, maker in MAKERS:
            if isinstance(field, kind):
                return maker(self, field, rank)
        raise TypeError(f"No canary for {field!r}")

    def letters(self, size: int) -> str:
        return "".join(self.random.choices(string.ascii_letters, k=size))

    def text(self, field: Any, rank: int) -> str:
        longest = field.max_length or 64
        if longest < 2 * CORE + 4:
            # Too short to be told from chance; it still is another in the other world.
            return (chr(ord("a") + rank) + self.letters(longest))[:longest]
        first = chr(ord("a") + rank) + self.letters(CORE - 1)
        found = f'{first}é"{self.letters(CORE)}'
        self.watch(found, field)
        return found

    def number(self, field: Any, digits: int, rank: int) -> int:
        low = 10 ** (digits - 1)
        found: int = low + rank * (low // 40) + self.random.randrange(low // 100)
        self.needles[str(found).encode()] = str(field)
        return found

    def decimal(self, field: Any, rank: int) -> Decimal:
        return Decimal(self.number(field, field.max_digits, rank)).scaleb(-field.decimal_places)

    def uuid(self, field: Any, rank: int) -> UUID:
        found = UUID(int=rank << 120 | self.random.getrandbits(119))
        self.needles[str(found).encode()] = str(field)
        return found

    def json(self, field: Any, rank: int) -> Any:
        text = self.text(models.TextField(), rank)
        return {"secret_key": text, "deep": {"password": [text]}, f"k{rank}": rank}

    def file(self, field: Any, rank: int) -> str:
        name = f"{chr(ord('a') + rank)}{self.letters(CORE * 2)}.txt"
        self.watch(name[: CORE * 2], field)
        content = self.letters(20)
        self.watch(content, field)
        self.files[name] = content.encode()
        return name

    def watch(self, text: str, field: Any) -> None:
        """Look for a text in every spelling in which it could get out."""
        for part in (text[:CORE], text[-CORE:]):
            raw = part.encode()
            spelled = [raw, raw[::-1], raw.hex().encode(), json.dumps(text).encode()]
            for shift, own in enumerate((slice(0, 10), slice(2, 12), slice(3, 13))):
                # Wherever it stands in what was encoded; the edges hold bits of neighbours.
                spelled.append(base64.b64encode(b"\0" * shift + raw)[own])
            self.needles.update((one.lower(), str(field)) for one in spelled)

    def found_in(self, said: bytes) -> list[str]:
        """The columns whose canaries were said, in any case of letters."""
        lower = said.lower()
        # Decimals are said with a point, and needles have none.
        bare = lower.replace(b".", b"")
        return sorted({of for one, of in self.needles.items() if one in lower or one in bare})


#: The first class that fits decides.
MAKERS: tuple[tuple[type[Any], Any], ...] = (
    (models.JSONField, Canaries.json),
    (models.FileField, Canaries.file),
    (models.BinaryField, lambda self, field, rank: self.text(field, rank).encode() * (rank + 1)),
    (models.DateTimeField, lambda self, field, rank: datetime(2000 + rank, 2, 3, tzinfo=UTC)),
    (models.DateField, lambda self, field, rank: date(2000 + rank, 2, 3)),
    (models.TimeField, lambda self, field, rank: time(rank % 24, 1)),
    (models.DurationField, lambda self, field, rank: timedelta(days=rank)),
    (models.DecimalField, Canaries.decimal),
    (models.FloatField, lambda self, field, rank: float(self.number(field, 9, rank))),
    (models.BooleanField, lambda self, field, rank: rank > 12),
    (models.UUIDField, Canaries.uuid),
    (models.GenericIPAddressField, lambda self, field, rank: f"10.{rank}.0.1"),
    (models.IntegerField, lambda self, field, rank: self.number(field, 9, rank)),
    (models.Field, Canaries.text),
)
