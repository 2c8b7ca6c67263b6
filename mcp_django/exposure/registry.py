"""What one server exposes. Filled while apps load, resolved at first use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.db.models import Model
from django.dispatch import Signal, receiver

from mcp_django.exceptions import AlreadyRegistered, NotRegistered
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.prompt_files import PromptFiles
from mcp_django.exposure.prompts import Prompt
from mcp_django.exposure.tools import BUILT_IN, Tool
from mcp_django.principal import DEFAULT_SERVER

if TYPE_CHECKING:
    from mcp_django.exposure.code_resources import CodeResource

#: Something was registered or taken back, perhaps while the site runs. Sent with `kind`: "model",
#: "tool", "prompt" or "resource".
registrations_changed = Signal()

ExposureClass = TypeVar("ExposureClass", bound=type[ModelExposure])


class Registry:
    def __init__(
        self, server: str = DEFAULT_SERVER, *, prompt_files: PromptFiles | None = None
    ) -> None:
        self.server = server
        self._classes: dict[type[Model], type[ModelExposure]] = {}
        self._tools: dict[str, Tool] = {}
        self._prompts: dict[str, Prompt] = {}
        self.prompt_files = prompt_files
        self._resources: dict[str, CodeResource] = {}
        self._candidates: dict[type[Model], ModelExposure] | None = None
        #: What `overrides.exposed_by` made of the candidates, for it alone.
        self.in_force: Any = None
        self._lock = threading.RLock()

    # Registration: called by `mcp.py` modules.

    def register(self, model: type[Model], exposure_class: type[ModelExposure]) -> None:
        """Expose a model. Raises AlreadyRegistered, or ImproperlyConfigured for a bad class."""
        given: Any = model
        is_model = isinstance(given, type) and issubclass(given, Model)
        if not is_model or given._meta.abstract:
            raise ImproperlyConfigured(f"{model!r} is not a model that can be exposed.")
        if not exposure_class.fields:
            raise ImproperlyConfigured(
                f"{exposure_class.__name__} lists no fields. Name what records may show, "
                'for example fields = ["id", "name"].'
            )
        with self._lock:
            if model in self._classes:
                raise AlreadyRegistered(f"{model._meta.label} is already registered.")
            self._classes[model] = exposure_class
            self._candidates = None
        registrations_changed.send(self, kind="model")

    def unregister(self, model: type[Model]) -> None:
        """Take a model back. Raises NotRegistered."""
        with self._lock:
            if self._classes.pop(model, None) is None:
                raise NotRegistered(f"{model._meta.label} is not registered.")
            self._candidates = None
        registrations_changed.send(self, kind="model")

    def is_registered(self, model: type[Model]) -> bool:
        return model in self._classes

    def add_tool(self, tool: Tool) -> None:
        """Offer a tool. Raises AlreadyRegistered when its name is taken."""
        with self._lock:
            if tool.name in self._tools or tool.name in BUILT_IN:
                raise AlreadyRegistered(f"There is already a tool called {tool.name!r}.")
            self._tools[tool.name] = tool
        registrations_changed.send(self, kind="tool")

    def remove_tool(self, name: str) -> None:
        """Take a tool back. Raises NotRegistered."""
        with self._lock:
            if self._tools.pop(name, None) is None:
                raise NotRegistered(f"There is no tool called {name!r}.")
        registrations_changed.send(self, kind="tool")

    def add_prompt(self, prompt: Prompt) -> None:
        """Offer a prompt. Raises AlreadyRegistered when its name is taken."""
        with self._lock:
            if prompt.name in self._prompts:
                raise AlreadyRegistered(f"There is already a prompt called {prompt.name!r}.")
            self._prompts[prompt.name] = prompt
        registrations_changed.send(self, kind="prompt")

    def remove_prompt(self, name: str) -> None:
        """Take a prompt back. Raises NotRegistered."""
        with self._lock:
            if self._prompts.pop(name, None) is None:
                raise NotRegistered(f"There is no prompt called {name!r}.")
        registrations_changed.send(self, kind="prompt")

    def add_resource(self, resource: CodeResource) -> None:
        """Offer a resource of code. Raises AlreadyRegistered when its URI is taken."""
        with self._lock:
            if resource.uri in self._resources:
                raise AlreadyRegistered(f"There is already a resource {resource.uri!r}.")
            self._resources[resource.uri] = resource
        registrations_changed.send(self, kind="resource")

    def remove_resource(self, uri: str) -> None:
        """Take a resource back. Raises NotRegistered."""
        with self._lock:
            if self._resources.pop(uri, None) is None:
                raise NotRegistered(f"There is no resource {uri!r}.")
        registrations_changed.send(self, kind="resource")

    # What is registered: for everything above.

    @property
    def resources(self) -> dict[str, CodeResource]:
        """Resources of code, by URI or template."""
        return self._resources

    @property
    def prompts(self) -> dict[str, Prompt]:
        """By name: those in files, and over them those of code."""
        if self.prompt_files is None:
            return self._prompts
        return {**self.prompt_files.read().prompts, **self._prompts}

    @property
    def code_prompts(self) -> dict[str, Prompt]:
        return self._prompts

    @property
    def tools(self) -> dict[str, Tool]:
        return self._tools

    @property
    def candidates(self) -> dict[type[Model], ModelExposure]:
        """Every model that there can be, ordered by label: those that code opened, and those of
        the admin that staff may open. Admin classes are read at first use."""
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
            from mcp_django.exposure.admin_options import exposures_of_admins

            classes = {**exposures_of_admins(), **classes}
        found = {model: exposure_class(model) for model, exposure_class in classes.items()}
        return dict(sorted(found.items(), key=lambda item: item[1].label))

    def forget_resolved(self) -> None:
        """Resolve again at next use: an admin class was registered late, or a setting changed."""
        self._candidates = None


registry = Registry(prompt_files=PromptFiles())


@receiver(setting_changed)
def forget_admin_classes(*, setting: str, **kwargs: Any) -> None:
    if setting == "MCP_DJANGO":  # it names the admin sites
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
    if not models:
        raise ImproperlyConfigured("Name the model: @mcp.register(Order).")
    if options:
        exposure_class = with_options(exposure_class or ModelExposure, options)
    if exposure_class is not None:
        for model in models:
            registry.register(model, exposure_class)

    def decorate(decorated: ExposureClass) -> ExposureClass:
        for model in models:
            registry.register(model, decorated)
        return decorated

    return decorate


def with_options(base: type[ModelExposure], options: dict[str, Any]) -> type[ModelExposure]:
    known = ModelExposure.__annotations__
    for name in options:
        if name not in known:
            raise ImproperlyConfigured(
                f"ModelExposure has no option {name!r}. It has: {', '.join(sorted(known))}."
            )
    return cast("type[ModelExposure]", type(base.__name__, (base,), options))


def unregister(*models: type[Model]) -> None:
    """Take models back. Raises NotRegistered."""
    for model in models:
        registry.unregister(model)


def is_registered(model: type[Model]) -> bool:
    """Whether code registered the model. An admin class with `mcp_expose` does not count."""
    return registry.is_registered(model)
