"""`@mcp.tool`: a function of the site as a tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Unpack, overload

from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections

from mcp_django.context import CallContext
from mcp_django.exposure.functions.arguments import Arguments
from mcp_django.exposure.functions.results import Results
from mcp_django.exposure.functions.signatures import SiteOptions
from mcp_django.exposure.functions.site_schemas import RawArguments, RawResults, param_headers
from mcp_django.exposure.primitives import Outcome
from mcp_django.exposure.questions.confirmations import ARGUMENT, with_confirmation, without_token
from mcp_django.exposure.registry import Registry, check_name
from mcp_django.exposure.registry import registry as default_registry
from mcp_django.exposure.site_functions import Function, SiteFunction, known_now, registering
from mcp_django.principal import ACTION, DELETE, READ, WRITE
from mcp_django.protocol.results import ToolAnnotations, ToolDefinition

if TYPE_CHECKING:
    from mcp_django.exposure.permissions import Rights


# Arguments and results are declared by annotations, by a schema or by a serializer.


def framework_for(tool: str) -> ModuleType:
    """Our module about Django REST framework, which is optional."""
    try:
        import rest_framework  # type: ignore[import-untyped]  # noqa: F401
    except ImportError as error:
        raise ImproperlyConfigured(
            f"The tool {tool!r} has a serializer, and Django REST framework is not installed. "
            'Install "django-mcp-orm[drf]".'
        ) from error
    from mcp_django.exposure.functions import drf

    return drf


#: The scope that a credential needs for a tool that is not read only, by what it destroys.
SCOPES_OF_WRITERS = {None: ACTION, True: DELETE, False: WRITE}


class ToolOptions(SiteOptions, total=False):
    name: str | None
    read_only: bool
    destructive: bool | None
    idempotent: bool
    open_world: bool
    atomic: bool
    input_schema: Mapping[str, Any] | None
    output_schema: Mapping[str, Any] | None
    serializer: Any
    output_serializer: Any


class FunctionTool(SiteFunction):
    """A function as a tool. Its definition is made once, when it is registered."""

    kind = "tool"
    decorator = "@mcp.tool"
    options = ToolOptions
    no_generators = (
        "A tool returns one value; say what happens meanwhile with mcp.Context.progress()."
    )
    described_for = "call it"
    method = "tools/call"
    confirms_itself = False

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        read_only: bool = False,
        destructive: bool | None = None,
        idempotent: bool = False,
        open_world: bool = False,
        atomic: bool = False,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        serializer: Any = None,
        output_serializer: Any = None,
        **options: Any,
    ) -> None:
        if read_only and destructive:
            raise ImproperlyConfigured("A tool is read_only or destructive, not both.")
        self.name = check_name(name or function.__name__, kind="tool")
        super().__init__(function, key=self.name, **options)
        self.scope = READ if read_only else SCOPES_OF_WRITERS[destructive]
        if atomic and self.is_async:
            raise ImproperlyConfigured(
                f"The tool {self.name!r} is async, and a transaction cannot span an await. "
                "Drop atomic=True, or make the function sync."
            )
        # The code before a question runs again with the answer.
        self.atomic = atomic or (self.asks and not self.is_async)
        self.arguments: Arguments | RawArguments = self._reader(input_schema, serializer)
        self.results: Results = self._results(output_schema, output_serializer)
        schema = self.arguments.schema
        if ARGUMENT in schema.get("properties", {}):
            raise ImproperlyConfigured(
                f"The argument {ARGUMENT!r} of the tool {self.name!r} has a name that is ours. "
                "Give yours another name."
            )
        definition = ToolDefinition(
            name=self.name,
            title=known_now(self.title),
            description=known_now(self.description),
            input_schema=schema,
            output_schema=self.results.schema,
            annotations=ToolAnnotations(
                read_only=read_only,
                destructive=not read_only if destructive is None else destructive,
                # A tool that changes nothing is idempotent.
                idempotent=idempotent or read_only,
                open_world=open_world,
            ),
            param_headers=param_headers(schema, tool=self.name),
        )
        self._definition = with_confirmation(definition) if self.asks else definition

    def _reader(self, schema: Any, serializer: Any) -> Any:
        """Raises ImproperlyConfigured for what cannot be relied on, as `_results` does."""
        if schema is not None and serializer is not None:
            raise ImproperlyConfigured(
                f"The tool {self.name!r} has an input_schema and a serializer. One must decide."
            )
        if schema is not None:
            return RawArguments(self.name, self.signature, schema)
        if serializer is not None:
            drf = framework_for(self.name)
            return drf.SerializerArguments(self.name, self.signature, serializer)
        return Arguments(self.name, self.signature, descriptions=self.parameters)

    def _results(self, schema: Any, serializer: Any) -> Any:
        if schema is not None and serializer is not None:
            raise ImproperlyConfigured(
                f"The tool {self.name!r} has an output_schema and an output_serializer. "
                "One must decide."
            )
        if schema is not None:
            return RawResults(self.name, schema)
        if serializer is not None:
            return framework_for(self.name).SerializerResults(self.name, serializer)
        return Results(self.name, self.signature.returns)

    @property
    def definition(self) -> ToolDefinition:
        """What clients get in lists."""
        return self.localized(self._definition)

    def exists_for(self, rights: Rights) -> bool:
        if rights.is_read_only and not self._definition.annotations.read_only:
            return False
        return super().exists_for(rights)

    def check(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> None:
        self._read(context, arguments)

    def call(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> Outcome:
        """Run the function. Raises ToolError for arguments that do not fit and for what the
        function refuses; other exceptions of the function pass.
        """
        return self.run(
            context,
            rights,
            self._read(context, arguments),
            finish=partial(self.results.make, context=context),
            sent=arguments,
            # A call that changes nothing more the second time may be answered twice.
            is_single_use=not self._definition.annotations.idempotent,
        )

    def _read(self, context: CallContext, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return self.arguments.read(without_token(arguments) if self.asks else arguments, context)

    def databases(self) -> list[str]:
        """As Django chooses them for a view."""
        return [
            alias
            for alias in connections
            if connections.settings[alias]["ATOMIC_REQUESTS"]
            or (self.atomic and alias == DEFAULT_DB_ALIAS)
        ]


@overload
def tool(function: Function, /) -> Function: ...


@overload
def tool(
    *, registry: Registry | None = None, **options: Unpack[ToolOptions]
) -> Callable[[Function], Function]: ...


def tool(function: Any = None, /, *, registry: Registry | None = None, **options: Any) -> Any:
    """Offer a function as a tool. Returns the function itself.

        @mcp.tool(read_only=True, permission="shop.view_order")
        def revenue(request: HttpRequest, since: date, until: date) -> Revenue:
            "What was sold between two days."

    The annotations become the schema of the arguments, the docstring becomes the description.
    A parameter annotated HttpRequest (or just called `request`) and one annotated `mcp.Context`
    are filled in by us. Without `permission`, which is "app.codename" or a function of the
    request, every active member of the staff may call the tool. `destructive` is assumed of a
    tool that is not `read_only`, unless you say otherwise. With `atomic`, or ATOMIC_REQUESTS, a
    sync function runs in a transaction that any exception rolls back.

    With `input_schema`, which is JSON Schema, or `serializer`, a Serializer of Django REST
    framework, the function has one parameter for all arguments: `arguments: dict[str, Any]`.
    `output_schema` and `output_serializer` take the place of the return annotation.

    With `asks` the function may ask with `mcp.Context.ask` and its like. A sync one runs in a
    transaction, as with `atomic`: what it did before a question without an answer is undone.

    Raises AlreadyRegistered when the name is taken, ImproperlyConfigured when the function
    cannot be a tool.
    """
    decorate = registering(FunctionTool, (registry or default_registry).add_tool, options)
    return decorate if function is None else decorate(function)
