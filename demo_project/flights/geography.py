from __future__ import annotations

from math import asin, cos, radians, sin, sqrt
from typing import TypeAlias

#: Mean radius of the earth (IUGG).
EARTH_RADIUS_KM = 6371.0088

#: Latitude and longitude in degrees.
Position: TypeAlias = tuple[float, float]


def great_circle_km(start: Position, end: Position) -> float:
    """The shortest way over a sphere, by the haversine formula."""
    latitude, longitude = radians(start[0]), radians(start[1])
    other_latitude, other_longitude = radians(end[0]), radians(end[1])
    half_chord = (
        sin((other_latitude - latitude) / 2) ** 2
        + cos(latitude) * cos(other_latitude) * sin((other_longitude - longitude) / 2) ** 2
    )
    return 2 * EARTH_RADIUS_KM * asin(sqrt(half_chord))
