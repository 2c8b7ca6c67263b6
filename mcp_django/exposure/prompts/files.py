"""A prompt in a file: front matter in TOML, and messages in the restricted template language."""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.template.utils import get_app_template_dirs

from mcp_django.cached import Cached
from mcp_django.exposure.functions.signatures import check_permission
from mcp_django.exposure.primitives import may_reach
from mcp_django.exposure.prompts.contents import (
    CHOICE,
    Body,
    BrokenContents,
    TemplatePrompt,
    compile_contents,
    parse_contents,
)
from mcp_django.exposure.registry import check_name
from mcp_django.principal import READ

if TYPE_CHECKING:
    from mcp_django.exposure.permissions import Rights


# Finding and reading the files, at first use.

logger = logging.getLogger("mcp_django")

FOLDER = Path("mcp", "prompts")
BACKEND = "django.template.backends.django.DjangoTemplates"
LARGEST = 256 * 1024


@dataclass(frozen=True, kw_only=True)
class FilesRead:
    prompts: Mapping[str, FilePrompt]
    #: Why a file is no prompt, by its path.
    problems: Mapping[Path, str]


_files: Cached[FilesRead] = Cached()


def read_files() -> FilesRead:
    """All prompts in files. A broken file is left out. With DEBUG, a changed one is read again."""
    folders = tuple(prompt_folders())
    stamps: dict[Path, tuple[int, int]] = {}
    for path in files_in(folders) if settings.DEBUG else ():
        with suppress(OSError):  # it has just gone
            stamps[path] = path.stat().st_mtime_ns, path.stat().st_size
    return _files.get(folders, stamps, make=lambda before: read_all(folders))


def prompt_folders() -> Iterator[Path]:
    """As Django looks for templates: the directories of the settings, then those of apps."""
    engines: list[dict[str, Any]] = settings.TEMPLATES
    for engine in engines:
        if engine["BACKEND"] == BACKEND:
            yield from (Path(one) / FOLDER for one in engine.get("DIRS", ()))
    yield from (Path(one) / FOLDER for one in get_app_template_dirs("templates"))


def files_in(folders: tuple[Path, ...]) -> Iterator[Path]:
    """The first file of each name."""
    seen = set()
    for folder in folders:
        for path in sorted(folder.glob("*.md")):
            if path.name not in seen and not path.name.startswith("."):
                seen.add(path.name)
                yield path


def read_all(folders: tuple[Path, ...]) -> FilesRead:
    prompts: dict[str, FilePrompt] = {}
    problems: dict[Path, str] = {}
    for path in files_in(folders):
        try:
            with path.open("rb") as file:
                content = file.read(LARGEST + 1)
            if len(content) > LARGEST:
                raise ImproperlyConfigured(f"longer than {LARGEST} bytes")
            prompts[path.stem] = FilePrompt(path.stem, content.decode())
        except (ImproperlyConfigured, OSError, ValueError) as error:  # ValueError: not UTF-8
            logger.error("The prompt %s is left out: %s", path, error)
            problems[path] = str(error)
    return FilesRead(prompts=prompts, problems=problems)


FENCE = "+++"
HEADING = re.compile(r"## (user|assistant)\s*")


class Header(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    title: str = ""
    description: str = ""
    permission: str | None = None
    arguments: list[dict[str, Any]] = []


class FilePrompt(TemplatePrompt):
    """A prompt that a file describes."""

    def __init__(self, name: str, source: str) -> None:
        """Raises ImproperlyConfigured."""
        try:
            check_name(name, kind="prompt")
        except ImproperlyConfigured:
            raise ImproperlyConfigured(
                "a file of a prompt is called like a function: a-z, 0-9 and single underscores, "
                "a letter first, at most 40 characters, and .md"
            ) from None
        header, text, line = split_header(source)
        self.permission = check_permission(header.permission, of=f"prompt {name!r}")
        super().__init__(
            name,
            body_from(header, text, line=line),
            title=header.title,
            description=header.description,
        )

    def exists_for(self, rights: Rights) -> bool:
        is_reader = rights.has_scopes(frozenset({READ}))
        return is_reader and may_reach(rights, self.permission, name=f"the prompt {self.name}")


def split_header(source: str) -> tuple[Header, str, int]:
    """The front matter, the text after it and the number of its first line."""
    lines = source.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != FENCE:
        return Header(), "\n".join(lines), 1
    ends = [number for number, line in enumerate(lines[1:], start=1) if line.rstrip() == FENCE]
    if not ends:
        raise ImproperlyConfigured(
            f"line 1: there is no second line {FENCE} to end the front matter"
        )
    try:
        # An empty line for the fence, so that errors name the lines of the file.
        found = tomllib.loads("\n".join(["", *lines[1 : ends[0]]]))
        header = msgspec.convert(found, Header)
    except tomllib.TOMLDecodeError as error:
        raise ImproperlyConfigured(f"the front matter is not TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise ImproperlyConfigured(f"the front matter: {error}") from None
    return header, "\n".join(lines[ends[0] + 1 :]), ends[0] + 2


def body_from(header: Header, text: str, *, line: int) -> Body:
    """The messages between headings. The text before the first heading is the user's."""
    parts: list[tuple[str, int, list[str]]] = [("user", line, [])]
    for number, written in enumerate(text.split("\n"), start=line):
        if heading := HEADING.fullmatch(written):
            parts.append((heading[1], number + 1, []))
        else:
            parts[-1][2].append(written)
    parts = [part for part in parts if "".join(part[2]).strip()]
    if not parts:
        raise ImproperlyConfigured("there is no text in it")
    arguments = [{"type": CHOICE, **one} if "choices" in one else one for one in header.arguments]
    messages = [{"role": role, "text": "\n".join(lines)} for role, _, lines in parts]
    try:
        body = compile_contents(parse_contents(arguments, messages))
    except BrokenContents as error:
        problem = error.problems[0]
        if problem.part == "arguments" or problem.at is None:
            raise ImproperlyConfigured(str(problem)) from None
        at = parts[problem.at][1] + (problem.line or 1) - 1
        raise ImproperlyConfigured(f"line {at}: {problem.sentence}") from None
    if body.contents.models:
        raise ImproperlyConfigured("only stored prompts have arguments of the type object")
    return body
