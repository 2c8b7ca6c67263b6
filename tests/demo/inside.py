"""What the tests ask, run within the demo by `__main__`.

Whatever is changed is rolled back, but for logins, and for what a docstring says will stay.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, timedelta
from io import StringIO
from time import process_time

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.core import mail
from django.core.management import call_command
from django.db import transaction
from django.test import Client, RequestFactory
from django.utils import timezone

from demo_project.flights import mcp as tools
from demo_project.flights import models
from demo_project.flights.rights import visible
from demo_project.flights.seeding import people, traffic
from demo_project.state import read_json
from demo_project.tokens import TOKENS
from mcp_django.models import PersonalToken
from mcp_django.testing import Client as AssistantClient
from mcp_django.testing import ProtocolFailure
from mcp_django.testing.client import rows_as_objects
from tests.costs import cost_of
from tests.demo.tasks import solve_tasks as solve_tasks
from tests.same_as_admin import compare

NAMES = ["Country", "Airport", "Airline", "Flight", "Passenger", "Booking", "Incident"]
FLIGHTS = "/admin/flights/flight/"
INCIDENT = "flights.incident"


def request_by(username):
    request = RequestFactory().get("/")
    request.user = User.objects.get(username=username)
    return request


def browser_of(username):
    client = Client()
    client.force_login(User.objects.get(username=username))
    return client


def assistant_of(username):
    """With the token that was printed, and no more rights than that."""
    return AssistantClient(token=read_json(TOKENS)[username]["secret"])


def counts():
    return {name: getattr(models, name).objects.count() for name in NAMES}


def run(*command):
    """What a management command writes."""
    written = StringIO()
    call_command(*command, stdout=written)
    return written.getvalue()


def digests():
    flights = traffic.flights()
    return {
        "flights": traffic.digest(flights),
        "incidents": traffic.digest(traffic.incidents(flights)),
        "passengers": traffic.digest(people.passengers()),
        "bookings": traffic.digest(people.bookings(flights)),
    }


def seconds_to_seed_again():
    """Of the processor: what else a machine does costs it none."""
    started = process_time()
    call_command("seed")
    return process_time() - started


def unreadable_reports():
    return [one.pk for one in models.Incident.objects.all() if not one.report.read()]


def rights(username):
    """For each model, what the admin lets the user do, and how many rows it shows."""
    request = request_by(username)
    found = {}
    for name in NAMES:
        model_admin = admin.site.get_model_admin(getattr(models, name))
        perms = [word for word, may in model_admin.get_model_perms(request).items() if may]
        found[name] = [perms, visible(model_admin.model, request).count()]
    return found


def rows_outside(username, code):
    """How many of the rows that the user sees have nothing to do with a country."""
    request = request_by(username)
    airports = visible(models.Airport, request).exclude(country__code=code)
    flights = visible(models.Flight, request).exclude(origin__country__code=code)
    return airports.count() + flights.exclude(destination__country__code=code).count()


def logged_after(earlier):
    """The messages of the admin's log that came after so many others."""
    return [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")[earlier:]]


def action_tools_of(username):
    with transaction.atomic():
        client = AssistantClient(user=User.objects.get(username=username))
        names = [tool["name"] for tool in client.list_tools()]
        transaction.set_rollback(True)
    return sorted(name for name in names if name.startswith("flights_"))


def act(username, action, statuses, answer=None):
    """Have an assistant run an action on the first flight in each status, and undo it."""
    mail.outbox = []
    earlier = LogEntry.objects.count()
    flights = [models.Flight.objects.filter(status=status).first() for status in statuses]
    before = [[one.status, one.delay_minutes] for one in flights]
    arguments = {"pks": [one.pk for one in flights]}
    params = {"name": f"flights_flight_{action}", "_meta": {"progressToken": 1}}
    with transaction.atomic():
        client = AssistantClient(user=User.objects.get(username=username))
        params["arguments"] = arguments
        *told, final = client.exchange("tools/call", params)
        asked = json.loads(final["result"]["content"][0]["text"])
        if answer is not None:
            params["arguments"] = arguments = {**arguments, "answer": answer}
            *told, final = client.exchange("tools/call", params)
        shown = json.loads(final["result"]["content"][0]["text"])
        if "confirmation" in shown:
            params["arguments"] = {**arguments, "confirmation": shown["confirmation"]}
            *told, final = client.exchange("tools/call", params)
        for one in flights:
            one.refresh_from_db()
        found = {
            "asked": asked,
            "result": final["result"],
            "progress": [one["params"]["progress"] for one in told],
            "before": before,
            "after": [[one.status, one.delay_minutes] for one in flights],
            "log": logged_after(earlier),
            "mails": len(mail.outbox),
        }
        transaction.set_rollback(True)
    return found


def close_incidents_by_assistant(username):
    """Through a filter, which shows how many there are before it closes them."""
    name, filters = "flights_incident_close_incidents", {"closed": False}
    still_open = models.Incident.objects.filter(closed=False)
    count = still_open.count()
    with transaction.atomic():
        client = AssistantClient(user=User.objects.get(username=username))
        shown = client.call_tool(name, filters=filters)
        between = still_open.count()
        token = shown.data["confirmation"]
        client.call_tool(name, filters=filters, confirmation=token)
        left = still_open.count()
        transaction.set_rollback(True)
    return [count, shown.data["records"], between, left]


def punctuality(username):
    report = tools.on_time_performance(
        request_by(username), since=date(2026, 11, 2), until=date(2026, 11, 8)
    )
    return sum(one.flights + one.cancelled for one in report.airlines)


def end_token(username, how):
    """It stays ended, so this is to be asked of a demo of the test's own."""
    token = PersonalToken.objects.get(user__username=username, name="Demo", revoked_at=None)
    if how == "revoked":
        token.revoke()
    else:
        token.expires_at = timezone.now() - timedelta(days=1)
        token.save()


def token_scopes():
    tokens = PersonalToken.objects.filter(name="Demo")
    return {token.user.username: token.scopes for token in tokens}


WRITES = ("create_record", "update_record", "delete_record")


def seen_by_assistant(username):
    """The names of tools, and of the fields of each model, that an assistant gets to see."""
    with transaction.atomic():
        client = AssistantClient(user=User.objects.get(username=username))
        tool_names = [tool["name"] for tool in client.list_tools()]
        fields = {}
        for model in client.call_tool("list_models").data["models"]:
            label = model["model"]
            page = client.call_tool("find_records", model=label, limit=1)
            fields[label] = sorted(page.data["columns"])
        transaction.set_rollback(True)
    return [sorted(tool_names), fields]


def costs_of(username):
    """For three tools, how often a flight is read, the number of statements, and calls of ours."""
    client, pk = assistant_of(username), keys_of(models.Flight, status="scheduled")[0]
    calls = {
        "find_records": {"filters": {"status": "scheduled", "origin__iata": "FRA"}, "limit": 10},
        "get_record": {"pk": pk},
        "update_record": {"pk": pk, "values": {"gate": "Z9"}},
    }
    found = {}
    for tool, arguments in calls.items():
        with transaction.atomic():
            sent, walked = cost_of(client, tool, {"model": "flights.flight", **arguments})
            transaction.set_rollback(True)
        sent = [sql for sql in sent if sql.startswith(("SELECT", "INSERT", "UPDATE"))]
        reads = [sql for sql in sent if 'FROM "flights_flight"' in sql and "SELECT 1" not in sql]
        found[tool] = [len(reads), len(sent), walked]
    return found


def prompts_of(username):
    """The names of an assistant's prompts, and what two of them say on a shift in Frankfurt."""
    with transaction.atomic():
        client = AssistantClient(user=User.objects.get(username=username))
        names = [prompt["name"] for prompt in client.list_prompts()]
        handover = client.get_prompt("shift_handover", airport="FRA", day="2026-11-19")
        flight = handover[1]["content"]["text"].split()[1]
        announcement = client.get_prompt("delay_announcement", flight=flight, audience="crew")
        airports = client.complete("shift_handover", "airport")
        transaction.set_rollback(True)
    return {
        "names": names,
        "handover": handover,
        "flight": flight,
        "announcement": announcement,
        "airports": airports,
    }


def start_page():
    return Client().get("/").content.decode()


def timetable(username, day):
    """The lines of the timetable, or the refusal; and the days that are offered for a month."""
    uri = f"flightdesk://timetable/{day}"
    with transaction.atomic():
        client = AssistantClient(user=User.objects.get(username=username))
        try:
            text = client.request("resources/read", {"uri": uri})["contents"][0]["text"]
        except ProtocolFailure as failure:
            text = failure.message
        offered = client.complete("flightdesk://timetable/{day}", "day", day[:7])
        transaction.set_rollback(True)
    return [text.splitlines(), offered]


def texts_for(username):
    """What an assistant reads, by what it is."""
    with transaction.atomic():
        client = AssistantClient(user=User.objects.get(username=username))
        tools = {one["name"]: written(one) for one in client.list_tools()}
        found = {
            "page": client.call_tool("find_records", model="flights.flight").text,
            "description": client.call_tool("describe_model", model="flights.flight").text,
            "tools": f"[{','.join(tools.values())}]",
            "action": tools["flights_flight_cancel_flights"],
        }
        transaction.set_rollback(True)
    return found


def written(definition):
    return json.dumps(definition, separators=(",", ":"), ensure_ascii=False)


def counted_by_assistant(username):
    """How many records of each model an assistant counts, with the token that was printed."""
    client = assistant_of(username)
    found = {}
    for model in client.call_tool("list_models").data["models"]:
        (total,) = client.call_tool("aggregate_records", model=model["model"]).records
        found[model["model"]] = total["count"]
    return found


def writing_of(username):
    """Which tools change records of which model, as an assistant is told."""
    client = assistant_of(username)
    found = {}
    for model in client.call_tool("list_models").data["models"]:
        described = client.call_tool("describe_model", model=model["model"]).data
        if "writing" in described:
            found[model["model"]] = sorted(set(WRITES) & set(described["writing"]))
    return found


def airport_key(code):
    return models.Airport.objects.get(iata=code).pk


def jet_bridge(code="FRA"):
    """What an assistant sends to report an incident."""
    return {
        "airport": airport_key(code),
        "kind": "technical",
        "severity": 4,
        "reported_at": "2026-11-18T11:40:00Z",
        "description": "A jet bridge is stuck.",
    }


def incident_by_assistant(username):
    """Have an assistant report an incident, correct it and close it, and undo it all."""
    earlier = LogEntry.objects.count()
    with transaction.atomic():
        client = assistant_of(username)
        created = client.call_tool("create_record", model=INCIDENT, values=jet_bridge())
        at = {"model": INCIDENT, "pk": created.data["pk"]}
        client.call_tool("update_record", **at, values={"severity": 3, "closed": True})
        incident = models.Incident.objects.select_related("airport").get(pk=at["pk"])
        found = {
            "answer": created.text,
            "stored": {
                "airport": incident.airport.iata,
                "severity": incident.severity,
                "closed": incident.closed,
                "reported_by": incident.reported_by,
            },
            "log": logged_after(earlier),
        }
        transaction.set_rollback(True)
    return found


def lives_by_assistant(username):
    """For some models, what became of a record that an assistant created, changed and deleted:
    whether it was there, with which new value, and whether it is there now.
    """
    with transaction.atomic():
        client = assistant_of(username)
        flight = models.Flight.objects.order_by("pk").first()
        passenger = models.Passenger.objects.order_by("pk").first()
        country = models.Country.objects.get(code="DE").pk
        lives = {}
        for name, values, (field, value) in (
            (
                "Airline",
                {"iata": "0X", "icao": "0XX", "name": "Zero", "country": country},
                ("name", "None"),
            ),
            (
                "Booking",
                {
                    "flight": flight.pk,
                    "passenger": passenger.pk,
                    "seat": "99Z",
                    "price": "10.00",
                    "reference": "ZZZZZ0",
                },
                ("seat", "98Z"),
            ),
            ("Incident", jet_bridge(), ("closed", True)),
        ):
            model, label = getattr(models, name), f"flights.{name.lower()}"
            created = client.call_tool("create_record", model=label, values=values)
            at = {"model": label, "pk": created.data["pk"]}
            client.call_tool("update_record", **at, values={field: value})
            changed = model.objects.filter(pk=at["pk"], **{field: value}).exists()
            asked = client.call_tool("delete_record", **at)
            client.call_tool("delete_record", **at, confirmation=asked.data["confirmation"])
            lives[name] = [changed, model.objects.filter(pk=at["pk"]).exists()]
        transaction.set_rollback(True)
    return lives


def take_away_right(group, codename):
    """As in a database that an older demo made. It stays away until the demo is run again."""
    group = Group.objects.get(name=group)
    group.permissions.remove(group.permissions.get(codename=codename))


def answers_of_start_page(username):
    """To the questions of the start page: what an assistant answers, and what the ORM does."""
    with transaction.atomic():
        client = assistant_of(username)
        flights = client.call_tool(
            "find_records", model="flights.flight", filters={"origin": "MUC", "status": "delayed"}
        )
        incidents = client.call_tool(
            "find_records", model=INCIDENT, filters={"airport": "MUC", "closed": False}
        )
        week = client.call_tool("on_time_performance", since="2026-11-02", until="2026-11-08")
        client.call_tool("report_delay", flight="RF100", day="2026-11-19", minutes=40)
        delayed = models.Flight.objects.get(
            number="RF100", scheduled_departure__date=date(2026, 11, 19)
        )
        found = {
            "flights": [one["id"] for one in flights.records],
            "incidents": [one["id"] for one in incidents.records],
            "airline": week.data["airlines"][-1]["airline"],
            "delayed": [delayed.status, delayed.delay_minutes],
        }
        transaction.set_rollback(True)
    expected = {
        "flights": keys_of(models.Flight, origin__iata="MUC", status="delayed"),
        "incidents": keys_of(models.Incident, airport__iata="MUC", closed=False),
        "airline": least_punctual(),
        "delayed": ["delayed", 40],
    }
    return [found, expected]


def keys_of(model, **conditions):
    return list(model.objects.filter(**conditions).values_list("pk", flat=True))


def least_punctual():
    """Of the flights that left in the first week: counted one by one, and not in the database."""
    late, left = Counter(), Counter()
    for flight in models.Flight.objects.select_related("airline").filter(
        scheduled_departure__date__range=(date(2026, 11, 2), date(2026, 11, 8))
    ):
        if flight.status != "cancelled":
            left[flight.airline.name] += 1
            late[flight.airline.name] += flight.delay_minutes > 15
    return max(left, key=lambda name: late[name] / left[name])


def ends_of_clock():
    """When the last flight left that has left, and when the first is planned that has not."""
    gone = models.Flight.objects.filter(status__in=["departed", "landed", "diverted"])
    waiting = models.Flight.objects.filter(status__in=models.Flight.WAITING)
    last = max(one.expected_departure for one in gone.order_by("-scheduled_departure")[:500])
    first = min(one.expected_departure for one in waiting.order_by("scheduled_departure")[:500])
    return [last.isoformat(), first.isoformat()]


def logs_in(username, password):
    """Whether a password of the demo opens the index of the admin."""
    client = Client()
    data = {"username": username, "password": password, "next": "/admin/"}
    answer = client.post("/admin/login/", data, follow=True)
    return answer.request["PATH_INFO"] == "/admin/" and answer.status_code == 200


#: Columns of lists that `mcp.py` gives no assistant.
NOT_EXPOSED = [
    "flights.incident where",
    *(f"flights.passenger {name}" for name in ("email", "passport_number", "notes")),
]


def admin_and_assistant(username):
    """The lists of the admin and the answers of the tools, which are to be the same."""
    client = AssistantClient(user=User.objects.get(username=username))
    shown = [getattr(models, name) for name in NAMES]
    return compare(browser_of(username), client, shown, by_design=NOT_EXPOSED)


def bookings_of(username):
    """Those of the first flight that has some, on its page in the admin and by the tools."""
    booking = models.Booking.objects.order_by("flight_id", "pk").first()
    page = browser_of(username).get(f"{FLIGHTS}{booking.flight_id}/change/")
    on_page = []
    if page.status_code == 200:
        for formset in page.context["inline_admin_formsets"]:
            on_page += [[form.instance.pk, form.instance.seat] for form in formset.formset]
    client = AssistantClient(user=User.objects.get(username=username))
    call = {"model": "flights.flight", "pk": booking.flight_id, "fields": ["id"]}
    answer = client.call_tool("get_record", **call, include=["bookings"])
    if answer.is_error:
        return [sorted(one for one in on_page if one[0]), None]
    bookings = answer.data["bookings"]
    by_tool = [[one["id"], one["seat"]] for one in rows_as_objects(bookings)]
    return [sorted(one for one in on_page if one[0]), sorted(by_tool)]
