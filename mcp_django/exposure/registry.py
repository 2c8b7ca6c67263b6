"""What one server exposes. Filled while apps load, resolved at first use."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.db.models import Model
from django.dispatch import Signal, receiver

from mcp_django.cached import Cached
from mcp_django.exceptions import AlreadyRegistered, NotRegistered
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import meant
from mcp_django.exposure.primitives import BUILT_IN, Prompt, Tool
from mcp_django.levels import Level

if TYPE_CHECKING:
    from mcp_django.exposure.prompts.files import FilesRead
    from mcp_django.exposure.resources.functions import CodeResource


# What a tool or a prompt may be called.

LONGEST_NAME = 40
# Clients put prefixes before names and cut at 64; hyphens, dots and doubled underscores are their
# own separators. One name that a client dislikes can cost the site the whole connector.
TOOL_NAME = re.compile(rf"[a-z][a-z0-9_]{{0,{LONGEST_NAME - 1}}}")


def check_name(name: str, *, kind: str) -> str:
    """The name, if every client accepts it. Raises ImproperlyConfigured and suggests another."""
    if TOOL_NAME.fullmatch(name) and "__" not in name:
        return name
    raise ImproperlyConfigured(
        f"{name!a} cannot be the name of a {kind}: use a-z, 0-9 and single underscores, a "
        f"letter first, at most {LONGEST_NAME} characters. "
        f'For example @mcp.{kind}(name="{suggest_tool_name(name)}").'
    )


def suggest_tool_name(name: str) -> str:
    """A name near to this one that `check_name` accepts."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    plain = re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_0123456789")
    return plain[:LONGEST_NAME].rstrip("_") or "my_tool"


#: Something was registered or taken back, perhaps while the site runs. Sent with `kind`: "model",
#: "tool", "prompt" or "resource".
registrations_changed = Signal()


def described_key(kind: str, key: Any) -> str:
    return str(key._meta.label) if kind == "model" else f"The {kind} {key!r}"


#: Where a registry has what it is told of.
TABLES = {"model": "_classes", "tool": "tools", "prompt": "code_prompts", "resource": "resources"}
ExposureClass = TypeVar("ExposureClass", bound=type[ModelExposure])


class Registry:
    def __init__(self) -> None:
        self._classes: dict[type[Model], type[ModelExposure]] = {}
        self.tools: dict[str, Tool] = {}
        self.code_prompts: dict[str, Prompt] = {}
        #: Prompts in files of the site. Set when the site is ready.
        self.prompt_files: Callable[[], FilesRead] | None = None
        #: Resources of code, by URI or template.
        self.resources: dict[str, CodeResource] = {}
        #: What is wrong in an `mcp.py`, where the rest of it was not read. Nothing is served then.
        self.mistake: ImproperlyConfigured | None = None
        self._candidates: dict[type[Model], ModelExposure] | None = None
        #: What `decisions.exposed_by` made of the candidates, for it alone.
        self.in_force: Cached[Any] = Cached()
        self._lock = threading.RLock()

    # Registration: called by `mcp.py` modules.

    def register(self, model: type[Model], exposure_class: type[ModelExposure]) -> None:
        """Expose a model. Raises AlreadyRegistered, or ImproperlyConfigured for a bad class."""
        given: Any = model
        is_model = isinstance(given, type) and issubclass(given, Model)
        if not is_model or given._meta.abstract:
            raise ImproperlyConfigured(f"{model!r} is not a model that can be exposed.")
        kind: Any = exposure_class
        if not (isinstance(kind, type) and issubclass(kind, ModelExposure)):
            raise ImproperlyConfigured(f"{kind!r} is no subclass of mcp_django.ModelExposure.")
        if not exposure_class.fields:
            raise ImproperlyConfigured(
                f"{exposure_class.__name__} lists no fields. Name what records may show, "
                'for example fields = ["id", "name"].'
            )
        if not isinstance(exposure_class.level, Level | None):
            raise ImproperlyConfigured(
                f"{exposure_class.__name__} has the level {exposure_class.level!r}. Take one of "
                f"mcp_django.Level: {', '.join(Level.names)}."
            )
        self._add("model", model, exposure_class)

    def unregister(self, model: type[Model]) -> None:
        """Take a model back. Raises NotRegistered."""
        self.remove("model", model)

    def is_registered(self, model: type[Model]) -> bool:
        return model in self._classes

    def add_tool(self, tool: Tool) -> None:
        """Offer a tool. Raises AlreadyRegistered when its name is taken."""
        self._add("tool", tool.name, tool)

    def add_prompt(self, prompt: Prompt) -> None:
        """Offer a prompt. Raises AlreadyRegistered when its name is taken."""
        self._add("prompt", prompt.name, prompt)

    def add_resource(self, resource: CodeResource) -> None:
        """Offer a resource of code. Raises AlreadyRegistered when its URI is taken."""
        self._add("resource", resource.uri, resource)

    def _add(self, kind: str, key: Any, value: Any) -> None:
        registered = getattr(self, TABLES[kind])
        with self._lock:
            if key in registered or (kind == "tool" and key in BUILT_IN):
                raise AlreadyRegistered(f"{described_key(kind, key)} is already registered.")
            registered[key] = value
            if kind == "model":
                self._candidates = None
        registrations_changed.send(self, kind=kind)

    def remove(self, kind: str, key: Any) -> None:
        """Take back a model, or a tool, prompt or resource of code. Raises NotRegistered."""
        with self._lock:
            if getattr(self, TABLES[kind]).pop(key, None) is None:
                raise NotRegistered(f"{described_key(kind, key)} is not registered.")
            if kind == "model":
                self._candidates = None
        registrations_changed.send(self, kind=kind)

    # What is registered: for everything above.

    @property
    def prompts(self) -> dict[str, Prompt]:
        """By name: those in files, and over them those of code."""
        if self.prompt_files is None:
            return self.code_prompts
        return {**self.prompt_files().prompts, **self.code_prompts}

    @property
    def candidates(self) -> dict[type[Model], ModelExposure]:
        """Every model that there can be, ordered by label: those that code opened, and those of
        the admin that staff may open. Admin classes are read at first use. Raises
        ImproperlyConfigured where an `mcp.py` could not be read to its end."""
        if self.mistake is not None:
            raise self.mistake
        found = self._candidates
        if found is None:
            with self._lock:
                found = self._candidates = self._resolve()
        return found

    @property
    def exposures(self) -> dict[type[Model], ModelExposure]:
        """Those that code opened."""
        return {model: one for model, one in self.candidates.items() if one.is_offered}

    def _resolve(self) -> dict[type[Model], ModelExposure]:
        classes = dict(self._classes)
        if apps.is_installed("django.contrib.admin"):
            from mcp_django.exposure.admin_sites import exposures_of_admins

            classes = {**exposures_of_admins(), **classes}
        found = {model: exposure_class(model) for model, exposure_class in classes.items()}
        return dict(sorted(found.items(), key=lambda item: item[1].label))

    def forget_resolved(self) -> None:
        """Resolve again at next use: an admin class was registered late, or a setting changed."""
        # Else another thread could keep what it has resolved of before.
        with self._lock:
            self._candidates = None


registry = Registry()


@receiver(setting_changed)
def forget_admin_classes(*, setting: str, **kwargs: Any) -> None:
    if setting in ("MCP_DJANGO", "INSTALLED_APPS"):  # which admin sites count, and whether any
        registry.forget_resolved()


def register(
    *models: type[Model],
    exposure_class: type[ModelExposure] | None = None,
    **options: Any,
) -> Callable[[ExposureClass], ExposureClass]:
    """Expose models, as `@admin.register` does for the admin.

        @mcp.register(Order)
        class OrderExposure(mcp.ModelExposure): ...

        mcp.register(Country, fields=["code", "name"], label_fields=["name"])

    The options are attributes of ModelExposure. Raises AlreadyRegistered, or ImproperlyConfigured
    when no fields are named or an option does not exist.
    """
    first: Any = models[0] if models else ModelExposure
    if isinstance(first, type) and issubclass(first, ModelExposure):
        raise ImproperlyConfigured("Name the model: @mcp.register(Order).")
    if options:
        check_options("ModelExposure", options, ModelExposure)
        base: Any = exposure_class or ModelExposure
        exposure_class = type(base.__name__, (base,), options)

    def decorate(decorated: ExposureClass) -> ExposureClass:
        for model in models:
            registry.register(model, decorated)
        return decorated

    if exposure_class is not None:
        decorate(exposure_class)
    return decorate


def check_options(owner: str, names: Iterable[str], options: type) -> None:
    """Raise ImproperlyConfigured for a name that `options` has no annotation of."""
    known = options.__annotations__
    for name in names:
        if name not in known:
            raise ImproperlyConfigured(f"{owner} has no option {name!r}{meant(name, known)}.")


def unregister(*models: type[Model]) -> None:
    """Take models back. Raises NotRegistered."""
    for model in models:
        registry.unregister(model)


def is_registered(model: type[Model]) -> bool:
    """Whether code registered the model. An admin class with `mcp_expose` does not count."""
    return registry.is_registered(model)
