"""An app that prints at every occasion."""

from __future__ import annotations

print("Loaded.")
