from __future__ import annotations

from demo_project.flights.admin import people, places, traffic

__all__ = ["people", "places", "traffic"]
