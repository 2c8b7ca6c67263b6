"""Classes with the two methods of a throttle, and without REST framework."""

from __future__ import annotations


class Never:
    def allow_request(self, request, view):
        return False

    def wait(self):
        return None


class OnlyReading:
    def allow_request(self, request, view):
        return view.action != "tools/call" or request.user.is_superuser

    def wait(self):
        return 12.2


class Broken:
    def allow_request(self, request, view):
        raise ConnectionError("The cache is away.")

    def wait(self):
        raise AssertionError("Nobody asks.")


class NoThrottle:
    pass
