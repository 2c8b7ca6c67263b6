"""Stored prompts as files: to keep them with the code, or to move them to another site."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mcp_django.exposure.prompts.documents import (
    LARGEST,
    BrokenDocuments,
    Document,
    carry_out,
    document_of,
    encode,
    parse_documents,
    plan,
)
from mcp_django.models import PromptTemplate
from mcp_django.principal import DEFAULT_SERVER


class Command(BaseCommand):
    help = "Export stored prompts to JSON files, or import them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        export = actions.add_parser("export", help="Write each prompt to DIR/NAME.json.")
        export.add_argument("directory", metavar="DIR", type=Path)
        importing = actions.add_parser(
            "import", help="Take over every DIR/*.json: all of them, or none."
        )
        importing.add_argument("directory", metavar="DIR", type=Path)
        importing.add_argument(
            "--dry-run", action="store_true", help="Say what would be done, and do nothing."
        )

    def handle(self, *args: Any, action: str, directory: Path, **options: Any) -> None:
        if action == "export":
            self.export_to(directory)
        else:
            self.import_from(directory, dry_run=options["dry_run"])

    def export_to(self, directory: Path) -> None:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for template in PromptTemplate.objects.filter(server=DEFAULT_SERVER):
                path = directory / f"{template.name}.json"
                path.write_bytes(encode(document_of(template)))
                self.stdout.write(str(path))
        except OSError as error:
            raise CommandError(f"Cannot write: {error}") from None

    def import_from(self, directory: Path, *, dry_run: bool) -> None:
        documents, sentences = read_all(directory)
        steps = []
        try:
            steps = plan(documents, server=DEFAULT_SERVER)
        except BrokenDocuments as error:
            sentences += error.sentences
        if sentences:
            raise CommandError("\n".join([*sentences, "Nothing was changed."]))
        if not dry_run:
            carry_out(steps, comment="Imported.")
        for step in steps:
            self.stdout.write(str(step))
        if dry_run:
            self.stdout.write("Nothing was changed: this was a dry run.")


def read_all(directory: Path) -> tuple[list[Document], list[str]]:
    """The documents of a directory, and what is wrong with its files."""
    paths = sorted(directory.glob("*.json"))
    if not paths:
        raise CommandError(f"There are no files *.json in {directory}.")
    documents: list[Document] = []
    sentences: list[str] = []
    for path in paths:
        try:
            with path.open("rb") as file:
                documents += parse_documents(file.read(LARGEST + 1))
        except BrokenDocuments as error:
            sentences += [f"{path.name}: {sentence}" for sentence in error.sentences]
        except OSError as error:
            sentences.append(f"{path.name}: {error}")
    return documents, sentences
