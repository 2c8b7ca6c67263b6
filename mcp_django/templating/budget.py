"""How much a template may be, and how much rendering may cost."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field

MAX_SOURCE = 32_768
#: The lexer takes time by the square of what looks like a tag in one line.
MAX_LINE = 4_000
MAX_TOKENS = 1_000
MAX_DEPTH = 12
MAX_FILTERS = 8

MAX_OUTPUT = 65_536
MAX_STEPS = 10_000
#: Of this thread's processor time: a busy machine is not the template's fault.
MAX_SECONDS = 0.5
#: Characters of one value.
MAX_VALUE = 16_384
MAX_RESOURCES = 8
MAX_URI = 500


class TemplateError(Exception):
    """A template that cannot be used, or a rendering that went over a limit."""

    def __init__(self, reason: str, *, line: int | None = None) -> None:
        super().__init__(reason if line is None else f"line {line}: {reason}")
        self.reason = reason
        self.line = line


@dataclass
class Budget:
    """What is left for one prompt. It may span several templates."""

    steps: int = MAX_STEPS
    output: int = MAX_OUTPUT
    until: float = field(default_factory=lambda: time.thread_time() + MAX_SECONDS)
    resources: list[str] = field(default_factory=list)
    #: Marks the place of a resource in the text. Nobody can guess it, so no value contains it.
    mark: str = field(default_factory=lambda: f"\x00{secrets.token_hex(16)}:")
    #: Ends the names of fences, for the same reason.
    fence: str = field(default_factory=lambda: secrets.token_hex(4))

    def step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise TemplateError("Rendering took too many steps.")
        if time.thread_time() > self.until:
            raise TemplateError("Rendering took too long.")

    def write(self, text: str) -> str:
        self.output -= len(text)
        if self.output < 0:
            raise TemplateError("The text would be too long.")
        return text

    def embed(self, uri: str) -> str:
        """The mark that stands for a resource in the text."""
        if len(self.resources) == MAX_RESOURCES:
            raise TemplateError(f"More than {MAX_RESOURCES} resources.")
        if len(uri) > MAX_URI:
            raise TemplateError(f"The address of a resource is longer than {MAX_URI} characters.")
        self.resources.append(uri)
        return f"{self.mark}{len(self.resources) - 1}\x00"

    def fenced(self, text: str) -> str:
        """Text that people typed, marked, so that a model can tell it from the instructions."""
        inner = f"\n{text}\n" if "\n" in text else text
        return f"<data-{self.fence}>{inner}</data-{self.fence}>"
