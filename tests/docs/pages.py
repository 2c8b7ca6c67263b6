"""The pages of the docs, taken apart: what they show, and where it comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "docs" / "examples"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *(
        page
        for folder in ("docs", "docs/howto", "docs/howto/clients", "docs/topics", "docs/reference")
        for page in sorted((ROOT / folder).glob("*.md"))
    ),
]

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
REGION = re.compile(r"^# docs: start (\w+)\n(.*?)^# docs: end \1$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    #: The paragraph right before it.
    lead: str

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line}"

    @property
    def path(self) -> str | None:
        """The file that the page says this is, where it says so."""
        found = re.search(r"(?:Write|Append to) `([\w./]+)`", self.lead)
        return None if found is None else found[1]


def blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for match in FENCE.finditer(text):
        before = text[: match.start()].rstrip()
        yield Block(
            page=page,
            line=text.count("\n", 0, match.start()) + 1,
            language=match[2],
            text=dedent(match[3]),
            lead=" ".join(before.rpartition("\n\n")[2].split()),
        )


def blocks(language: str) -> list[Block]:
    return [one for page in PAGES for one in blocks_of(page) if one.language == language]


@cache
def regions() -> frozenset[str]:
    """What files of the examples mark for the docs."""
    return frozenset(
        match[2].strip()
        for path in EXAMPLES.rglob("*.py")
        for match in REGION.finditer(path.read_text())
    )


@cache
def sources() -> tuple[str, ...]:
    """Files that pages may quote from without a mark."""
    return tuple(
        path.read_text()
        for folder in ("demo_project", "tests")
        for path in sorted((ROOT / folder).rglob("*.py"))
    )


def table(page: Path, heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, or any other line, without its head."""
    text = f"\n{page.read_text()}".partition(f"\n{heading}\n")[2]
    assert text, f"{page.name} has no heading {heading!r}"
    rows = re.search(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    assert rows, f"{page.name} has no table under {heading!r}"
    lines = re.split(r"^\|[-|]+\|\n", rows[0], maxsplit=1, flags=re.MULTILINE)[1].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
