"""Where the files of prompts are, and what is in them: read at first use."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.template.utils import get_app_template_dirs

if TYPE_CHECKING:
    from mcp_django.exposure.file_prompts import FilePrompt

logger = logging.getLogger("mcp_django")

FOLDER = Path("mcp", "prompts")
BACKEND = "django.template.backends.django.DjangoTemplates"
LARGEST = 256 * 1024


@dataclass(frozen=True, kw_only=True)
class Found:
    """What was read, and under what it may be kept."""

    key: Any
    prompts: Mapping[str, FilePrompt]
    #: Why a file is no prompt, by its path.
    problems: Mapping[Path, str]


class PromptFiles:
    """The prompts in files, by name. With DEBUG, a changed file is read again."""

    def __init__(self) -> None:
        self._found: Found | None = None
        self._lock = threading.Lock()

    def read(self) -> Found:
        """Everything there is. A file that is broken is left out, and all the others are there."""
        folders = tuple(prompt_folders())
        stamps = tuple(map(stamp_of, files_in(folders))) if settings.DEBUG else None
        key = folders, stamps
        found = self._found
        if found is None or found.key != key:
            with self._lock:
                found = self._found
                if found is None or found.key != key:
                    found = self._found = read_all(folders, key=key)
        return found


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


def stamp_of(path: Path) -> tuple[Path, int, int]:
    try:
        facts = path.stat()
    except OSError:  # it has just gone
        return path, 0, 0
    return path, facts.st_mtime_ns, facts.st_size


def read_all(folders: tuple[Path, ...], *, key: Any) -> Found:
    # Late: it brings the query compiler along, and a site without such files has no need of it.
    from mcp_django.exposure.file_prompts import BrokenPrompt, FilePrompt

    prompts: dict[str, FilePrompt] = {}
    problems: dict[Path, str] = {}
    for path in files_in(folders):
        try:
            prompts[path.stem] = FilePrompt(path.stem, text_of(path))
        except (BrokenPrompt, OSError, ValueError) as error:  # ValueError: not UTF-8
            logger.error("The prompt %s is left out: %s", path, error)
            problems[path] = str(error)
    return Found(key=key, prompts=prompts, problems=problems)


def text_of(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"longer than {LARGEST} bytes")
    return content.decode()
