"""Four people with different rights: what each of them may see is what their assistant may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from secrets import token_urlsafe

from django.contrib.auth.models import Group, Permission, User

from demo_project.flights.models import Country, Profile
from demo_project.state import read_json, write_json

PASSWORDS = "passwords.json"
LOOK = ["mcp:read"]
ACT = ["mcp:read", "mcp:write", "mcp:delete", "mcp:action"]
PLACES = ["view_country", "view_airport", "view_airline", "view_aircraft"]


@dataclass(frozen=True, kw_only=True)
class DemoUser:
    username: str
    sees: str
    scopes: Sequence[str]
    group: str = ""
    permissions: Sequence[str] = ()
    country: str = ""

    @property
    def is_superuser(self) -> bool:
        return not self.group


DEMO_USERS = [
    DemoUser(
        username="admin",
        sees="all records of the desk, and may create, change and delete them",
        scopes=ACT,
    ),
    DemoUser(
        username="dispatcher",
        sees="all records of the desk, may change flights, and may report and change incidents",
        scopes=ACT,
        group="Dispatch",
        permissions=[
            *PLACES,
            "view_flight",
            "change_flight",
            "view_incident",
            "add_incident",
            "change_incident",
            "view_tag",
            "view_booking",
            "view_passenger",
        ],
    ),
    DemoUser(
        username="analyst",
        sees="flights, airports, airlines and countries, but nothing of people",
        scopes=LOOK,
        group="Analysis",
        permissions=[*PLACES, "view_flight"],
    ),
    DemoUser(
        username="manager",
        sees="airports in Germany, the flights that touch them and their incidents",
        scopes=LOOK,
        group="Country management",
        permissions=[*PLACES, "view_flight", "view_incident", "view_tag"],
        country="DE",
    ),
]


def create_users() -> None:
    """Create whom we miss, and give the groups their permissions back.

    Passwords are made at random and kept in the state directory. Where that lost one, the user
    gets another.
    """
    passwords = read_json(PASSWORDS)
    known = {user.username: user for user in User.objects.all()}
    for demo_user in DEMO_USERS:
        name = demo_user.username
        user = known.get(name) or new_user(demo_user)
        if name not in passwords or not user.password:
            passwords.setdefault(name, token_urlsafe(12))
            user.set_password(passwords[name])
            user.save()
        give_rights(user, demo_user)
    if passwords != read_json(PASSWORDS):
        write_json(PASSWORDS, passwords)


def new_user(demo_user: DemoUser) -> User:
    return User(
        username=demo_user.username,
        email=f"{demo_user.username}@flights.example",
        is_staff=True,
        is_superuser=demo_user.is_superuser,
    )


def give_rights(user: User, demo_user: DemoUser) -> None:
    if demo_user.group:
        group, _ = Group.objects.get_or_create(name=demo_user.group)
        wanted = Permission.objects.filter(
            content_type__app_label="flights", codename__in=demo_user.permissions
        )
        group.permissions.set(wanted)
        user.groups.add(group)
    if demo_user.country:
        country = Country.objects.get(code=demo_user.country)
        Profile.objects.get_or_create(user=user, defaults={"country": country})
