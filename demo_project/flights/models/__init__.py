from __future__ import annotations

from demo_project.flights.models.people import Booking, Passenger, Profile
from demo_project.flights.models.places import Airline, Airport, Country
from demo_project.flights.models.traffic import Aircraft, Flight, Incident, Tag

__all__ = [
    "Aircraft",
    "Airline",
    "Airport",
    "Booking",
    "Country",
    "Flight",
    "Incident",
    "Passenger",
    "Profile",
    "Tag",
]
