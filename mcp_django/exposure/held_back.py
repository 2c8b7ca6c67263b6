"""Mail that is not sent and files that are not written, as long as there is a dry run.

Methods of mail backends and storages are replaced by ones that ask whether the code that calls
them is part of a dry run: all others go on sending and writing. Nothing else would do: a site has
its own classes, and what it imported from Django it calls by that name.
"""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable, Iterator, Mapping
from functools import partial, wraps
from typing import Any

from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage
from django.core.files.utils import validate_file_name
from django.core.mail.backends.base import BaseEmailBackend

from mcp_django.exposure.dry_run_state import DryRun, current

MARK = "_mcp_django_asks"


def install() -> None:
    """Replace the methods of all classes, also of those that are imported later.

    What was replaced stays so.
    """
    adopt(BaseEmailBackend, {"send_messages": hold_mail})
    adopt(Storage, FILES)


def adopt(base: Any, methods: Mapping[str, Callable[..., Any]]) -> None:
    for kind in family(base):
        replace(kind, methods)
    if "__init_subclass__" not in vars(base):

        def adopt_subclass(kind: Any, /, **kwargs: Any) -> None:
            super(base, kind).__init_subclass__(**kwargs)
            replace(kind, methods)

        base.__init_subclass__ = classmethod(adopt_subclass)


def family(base: Any) -> Iterator[type]:
    yield base
    for kind in base.__subclasses__():
        yield from family(kind)


def replace(kind: type, methods: Mapping[str, Callable[..., Any]]) -> None:
    for name, hold in methods.items():
        own = vars(kind).get(name)
        if inspect.isfunction(own) and not hasattr(own, MARK):
            setattr(kind, name, asking(own, hold))


def asking(own: Callable[..., Any], hold: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(own)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        run = current.get()
        if run is None:
            return own(self, *args, **kwargs)
        return hold(run, partial(own, self), self, *args, **kwargs)

    setattr(method, MARK, True)
    return method


# In place of the methods: the dry run, the method itself, and what the method is called with.


def hold_mail(run: DryRun, send: Any, backend: Any, email_messages: Any) -> int:
    messages = list(email_messages)
    run.mails += [(str(one.subject), list(one.recipients())) for one in messages]
    return len(messages)


def hold_save(
    run: DryRun, save: Any, storage: Any, name: Any, content: Any, max_length: Any = None
) -> str:
    name = content.name if name is None else name
    name = storage.get_available_name(name, max_length=max_length)
    validate_file_name(name, allow_relative_path=True)
    whole = content if hasattr(content, "chunks") else File(content, name)
    data = b"".join(
        chunk.encode() if isinstance(chunk, str) else chunk for chunk in whole.chunks()
    )
    run.files.append(("save", name))
    run.hold(key_of(storage, name), data)
    return str(name)


def hold_delete(run: DryRun, delete: Any, storage: Any, name: str) -> None:
    run.files.append(("delete", name))
    run.hold(key_of(storage, name), None)


def hold_open(run: DryRun, opened: Any, storage: Any, name: str, mode: str = "rb") -> Any:
    if set(mode) & set("wax+"):
        run.refuse("it writes into a file that it has open")
    key = key_of(storage, name)
    if key not in run.contents:
        return opened(name, mode)
    data = run.contents[key]
    if data is None:
        raise FileNotFoundError(name)
    if "b" in mode:
        return ContentFile(data, name=name)
    return File(io.StringIO(data.decode()), name=name)


def hold_exists(run: DryRun, exists: Any, storage: Any, name: str) -> bool:
    key = key_of(storage, name)
    return run.contents[key] is not None if key in run.contents else bool(exists(name))


def hold_size(run: DryRun, size: Any, storage: Any, name: str) -> int:
    data = run.contents.get(key_of(storage, name))
    return int(size(name)) if data is None else len(data)


FILES: dict[str, Callable[..., Any]] = {
    "save": hold_save,
    "delete": hold_delete,
    "open": hold_open,
    "exists": hold_exists,
    "size": hold_size,
}


def key_of(storage: Any, name: str) -> Any:
    """The same for two instances that keep their files in one place."""
    return type(storage), getattr(storage, "location", None), name
