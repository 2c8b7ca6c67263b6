"""What mypy must accept: each store is one."""

from __future__ import annotations

from mcp_django.stores import Store
from mcp_django.stores.database import DatabaseStore
from mcp_django.stores.memory import MemoryStore
from mcp_django.stores.redis import RedisStore

STORES: list[type[Store]] = [MemoryStore, DatabaseStore, RedisStore]
