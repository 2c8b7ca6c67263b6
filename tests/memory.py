"""What a process keeps between calls: `python -m tests.memory` prints the name of each."""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import threading
from collections import deque
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import mcp_django

KINDS = (functools._lru_cache_wrapper, threading.local, ContextVar, WeakKeyDictionary)


def memories() -> Iterator[str]:
    """Caches of functions, and containers of module-level objects that are empty after imports."""
    seen: set[int] = set()
    for found in pkgutil.walk_packages(mcp_django.__path__, "mcp_django."):
        if ".migrations" in found.name or found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        for node in ast.parse(Path(module.__file__).read_text()).body:
            for name in names_of(node):
                if hasattr(module, name):
                    where = f"{found.name.removeprefix('mcp_django.')}.{name}"
                    yield from look_into(getattr(module, name), where, seen)


def names_of(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a module assigns or defines."""
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def look_into(value: Any, where: str, seen: set[int]) -> Iterator[str]:
    if id(value) in seen or isinstance(value, type):
        return
    seen.add(id(value))
    if isinstance(value, KINDS) or (isinstance(value, dict | list | set | deque) and not value):
        yield where
    elif type(value).__module__.startswith("mcp_django"):
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        for name in (*getattr(value, "__dict__", ()), *slots):
            yield from look_into(getattr(value, name, None), f"{where}.{name}", seen)


if __name__ == "__main__":
    import django

    django.setup()
    print(*sorted(memories()), sep="\n")
