"""Prompts as JSON: to move them from one site to another, and to keep them beside the code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from django.contrib.auth.models import Group
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db import router, transaction

from mcp_django.exposure.decisions import exposed_by
from mcp_django.exposure.functions.results import validation_text
from mcp_django.exposure.prompts.contents import (
    LONGEST_DESCRIPTION,
    BrokenContents,
    Contents,
    Problem,
    compile_contents,
    parse_contents,
)
from mcp_django.exposure.prompts.stored import add_version, contents_of, newest_version
from mcp_django.exposure.registry import check_name, registry
from mcp_django.models import PromptTemplate
from mcp_django.principal import DEFAULT_SERVER

LARGEST = 256 * 1024
MOST_DOCUMENTS = 200
#: A NUL as JSON escapes it. Behind an escaped backslash it is the text "\u0000" itself.
NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")

#: Of a row, by the names that documents use.
DOCUMENT_COLUMNS = ("name", "title", "description", "enabled")


class Document(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A prompt without its history."""

    name: str
    title: str = ""
    description: str = ""
    enabled: bool = True
    #: Names of groups. None: for everybody.
    groups: list[str] = []
    arguments: list[Any] = []
    messages: list[Any]


class BrokenDocuments(Exception):
    """Documents that were not imported. Each sentence names the place of a mistake."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = list(sentences)


@dataclass(frozen=True, kw_only=True)
class Step:
    """What importing one document does."""

    template: PromptTemplate
    contents: Contents
    groups: Sequence[Group]
    is_new: bool
    is_changed: bool

    def __str__(self) -> str:
        what = "new" if self.is_new else "changed" if self.is_changed else "as it was"
        return f"{self.template.name}: {what}"


# Out


def document_of(template: PromptTemplate) -> dict[str, Any]:
    groups = template.groups.values_list("name", flat=True)
    return as_document(template, groups, contents_of(newest_version(template)))


def as_document(
    template: PromptTemplate, groups: Iterable[str], contents: Contents
) -> dict[str, Any]:
    columns = {name: getattr(template, name) for name in DOCUMENT_COLUMNS}
    found = {**columns, "groups": sorted(groups), **contents.as_plain()}
    return {name: value for name, value in found.items() if value not in ("", [])}


def encode(documents: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(documents), indent=2) + b"\n"


# In


def parse_documents(data: bytes) -> list[Document]:
    """One document, or a list of them. Raises BrokenDocuments."""
    if len(data) > LARGEST:
        raise BrokenDocuments([f"This is longer than {LARGEST} bytes."])
    try:
        found = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BrokenDocuments([f"This is not JSON: {error}"]) from None
    given = found if isinstance(found, list) else [found]
    if len(given) > MOST_DOCUMENTS:
        raise BrokenDocuments([f"These are more than {MOST_DOCUMENTS} prompts."])
    documents, sentences = [], []
    for at, one in enumerate(given, start=1):
        try:
            documents.append(msgspec.convert(one, Document))
        except msgspec.ValidationError as error:
            sentences.append(f"Prompt {at}: {error}")
    if NUL.search(data):
        sentences.append("There is a NUL character in a text.")
    if sentences:
        raise BrokenDocuments(sentences)
    return documents


def plan(documents: Iterable[Document], *, server: str) -> list[Step]:
    """What importing them would do. Raises BrokenDocuments with all that is wrong."""
    steps, sentences = [], []
    seen: set[str] = set()
    for document in documents:
        if document.name in seen:
            sentences.append(f"{document.name}: two prompts have this name")
        seen.add(document.name)
        try:
            steps.append(step_of(document, server=server))
        except BrokenDocuments as error:
            sentences += error.sentences
    if sentences:
        raise BrokenDocuments(sentences)
    return steps


def step_of(document: Document, *, server: str) -> Step:
    templates = PromptTemplate.objects.filter(server=server, name=document.name)
    template = templates.first() or PromptTemplate(server=server)
    is_new = template.pk is None
    before = None if is_new else document_of(template)
    vars(template).update({name: getattr(document, name) for name in DOCUMENT_COLUMNS})
    groups = list(Group.objects.filter(name__in=document.groups))
    known = {one.name for one in groups}
    # Without the group it would be for everybody.
    sentences = [f"there is no group {one!r}" for one in document.groups if one not in known]
    if (sentence := name_problem(template.name)) is not None:
        sentences.append(sentence)
    # Only forms hold a TextField to its length.
    if len(template.description) > LONGEST_DESCRIPTION:
        sentences.append(f"description: longer than {LONGEST_DESCRIPTION} characters")
    try:
        template.full_clean()
    except ValidationError as error:
        sentences.append(validation_text(error))
    contents = Contents()
    try:
        parsed = parse_contents(document.arguments, document.messages)
        contents = compile_contents(parsed).contents
        sentences += [str(one) for one in unknown_models(contents)]
    except BrokenContents as error:
        sentences += [str(one) for one in error.problems]
    if sentences:
        name = ascii(document.name)[:60]
        raise BrokenDocuments([f"{name}: {sentence.rstrip('.')}" for sentence in sentences])
    return Step(
        template=template,
        contents=contents,
        groups=groups,
        is_new=is_new,
        is_changed=before != as_document(template, known, contents),
    )


def name_problem(name: str) -> str | None:
    try:
        check_name(name, kind="prompt")
    except ImproperlyConfigured:
        return "Use a-z, 0-9 and single underscores, a letter first, at most 40 characters."
    return None


def unknown_models(contents: Contents) -> Iterator[Problem]:
    """Arguments whose model this site does not expose."""
    exposed = exposed_by(registry, DEFAULT_SERVER).by_label
    for at, one in enumerate(contents.arguments):
        if one.model and one.model not in exposed:
            sentence = f"this site exposes no model {one.model!a}"
            yield Problem(part="arguments", at=at, field="model", sentence=sentence)


def carry_out(steps: Sequence[Step], *, user: Any = None, comment: str = "") -> None:
    """Import all of them, or none. A document that changes nothing makes no version."""
    with transaction.atomic(using=router.db_for_write(PromptTemplate)):
        for step in steps:
            if step.is_changed:
                step.template.save()
                step.template.groups.set(step.groups)
                if contents_of(newest_version(step.template)) != step.contents:
                    add_version(step.template, step.contents, user=user, comment=comment)
