"""Playwright in a thread of its own.

Its synchronous interface runs an event loop in the thread that uses it. There Django refuses the
ORM, and neither `async_to_sync` nor the tests of async code can work, so it gets another one.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

#: Seconds. Playwright's own limits are lower; this one ends a test that would hang.
LONGEST = 60


class PlaywrightThread:
    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="playwright")

    def run(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """What the function returns, or raises, there."""
        args = tuple(local(value) for value in args)
        kwargs = {name: local(value) for name, value in kwargs.items()}
        return self._remote(self._executor.submit(function, *args, **kwargs).result(LONGEST))

    def close(self) -> None:
        self._executor.shutdown()

    def _remote(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._remote(one) for one in value]
        is_theirs = type(value).__module__.startswith("playwright.")
        return Remote(self, value) if is_theirs or callable(value) else value


class Remote:
    """Something of Playwright's, used from here: each access happens in its thread."""

    def __init__(self, thread: PlaywrightThread, target: Any) -> None:
        self._thread = thread
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return self._thread.run(getattr, self._target, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._thread.run(self._target, *args, **kwargs)

    def __enter__(self) -> Any:
        return self._thread.run(self._target.__enter__)

    def __exit__(self, *raised: Any) -> Any:
        return self._thread.run(self._target.__exit__, *raised)


def local(value: Any) -> Any:
    return value._target if isinstance(value, Remote) else value
