"""What the tests ask, run within the demo by `__main__`.

Whatever is changed is rolled back, but for logins, and for what a docstring says will stay.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from io import StringIO

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.core import mail
from django.core.management import call_command
from django.db import transaction
from django.db.models import Count, F, Q
from django.test import Client, RequestFactory
from django.utils import timezone

from demo_project.flights import models
from demo_project.flights.rights import visible
from demo_project.flights.seeding import people, traffic
from demo_project.state import read_json
from demo_project.tokens import TOKENS
from mcp_django.models import PersonalToken
from mcp_django.testing import Client as AssistantClient
from mcp_django.testing.client import rows_as_objects
from mcp_django.testing.leaks import find_leaks
from tests.costs import cost_of
from tests.same_as_admin import compare
from tests.sites.browsing import save_in_browser

NAMES = [name for name in models.__all__ if name != "Profile"]
WRITES = ("create_record", "update_record", "delete_record")
INCIDENT = "flights.incident"
WEEK = {"since": "2026-11-11", "until": "2026-11-17"}
TOMORROW = "2026-11-19"
ON_FLIGHTS = "flights_flight"
INCIDENT_VALUES = {
    "kind": "technical",
    "severity": 4,
    "reported_at": "2026-11-18T11:40:00Z",
    "description": "A jet bridge is stuck.",
}


def browser_of(username):
    client = Client()
    client.force_login(User.objects.get(username=username))
    return client


@contextmanager
def assistant(username, **options):
    """Its client has the token that was printed. What it changes is undone."""
    with transaction.atomic():
        yield AssistantClient(token=read_json(TOKENS)[username]["secret"], **options)
        transaction.set_rollback(True)


def counts():
    return {name: getattr(models, name).objects.count() for name in NAMES}


def run(*command):
    """Return what a management command writes."""
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


def request_by(username):
    request = RequestFactory().get("/")
    request.user = User.objects.get(username=username)
    return request


def counted_in_admin(username):
    """Return how many rows of each model the admin shows to the user."""
    request = request_by(username)
    found = {}
    for name in NAMES:
        model_admin = admin.site.get_model_admin(getattr(models, name))
        if any(model_admin.get_model_perms(request).values()):
            rows = visible(model_admin.model, request).count()
            found[model_admin.model._meta.label_lower] = rows
    return found


def rows_outside(username, code):
    """Return how many of the rows that the user sees have nothing to do with a country."""
    request = request_by(username)
    airports = visible(models.Airport, request).exclude(country__code=code)
    flights = visible(models.Flight, request).exclude(origin__country__code=code)
    return airports.count() + flights.exclude(destination__country__code=code).count()


def seen_by_assistant(username):
    """Return the names of tools, and by model its fields, its count and the tools that write."""
    models_seen = {}
    with assistant(username) as client:
        tools = [tool["name"] for tool in client.list_tools()]
        for model in client.call_tool("list_models").data["models"]:
            asked = {"model": model["model"]}
            (total,) = client.call_tool("aggregate_records", **asked).records
            described = client.call_tool("describe_model", **asked).data
            models_seen[model["model"]] = {
                "fields": client.call_tool("find_records", **asked, limit=1).data["columns"],
                "count": total["count"],
                "writes": sorted(set(WRITES) & set(described.get("writing", ()))),
            }
    return [tools, models_seen]


def act(username, action, statuses, answer=None):
    """Have an assistant run an action on the last flight in each status, and undo it."""
    mail.outbox = []
    earlier = LogEntry.objects.count()
    flights = [models.Flight.objects.filter(status=status).last() for status in statuses]
    before = [[one.status, one.delay_minutes] for one in flights]
    arguments = {"pks": [one.pk for one in flights]}
    params = {"name": f"flights_flight_{action}", "_meta": {"progressToken": 1}}
    with assistant(username) as client:
        answers = [{}, {"answer": answer}] if answer else [{}]
        replies = []
        for more in answers:
            arguments |= more
            *told, final = client.exchange("tools/call", {**params, "arguments": arguments})
            replies.append(json.loads(final["result"]["content"][0]["text"]))
            if more is answers[-1] and "confirmation" in replies[-1]:
                answers.append({"confirmation": replies[-1]["confirmation"]})
        for one in flights:
            one.refresh_from_db()
        return {
            "asked": replies[0],
            "result": final["result"],
            "progress": [one["params"]["progress"] for one in told],
            "before": before,
            "after": [[one.status, one.delay_minutes] for one in flights],
            "log": [
                entry.get_change_message() for entry in LogEntry.objects.order_by("pk")[earlier:]
            ],
            "mails": len(mail.outbox),
        }


def end_token(username, how):
    """It stays ended, so this is to be asked of a demo of the test's own."""
    token = demo_token(username)
    if how == "revoked":
        token.revoke()
    else:
        token.expires_at = timezone.now() - timedelta(days=1)
        token.save()


def demo_token(username):
    return PersonalToken.objects.get(user__username=username, name="Demo", revoked_at=None)


def token_scopes():
    tokens = PersonalToken.objects.filter(name="Demo")
    return {token.user.username: token.scopes for token in tokens}


def costs_of(username):
    """For three tools, how often a flight is read, the number of statements, and calls of ours."""
    pk = models.Flight.objects.filter(status="scheduled").first().pk
    calls = {
        "find_records": {"filters": {"status": "scheduled", "origin__iata": "FRA"}, "limit": 10},
        "get_record": {"pk": pk},
        "update_record": {"pk": pk, "values": {"gate": "Z9"}},
    }
    found = {}
    for tool, arguments in calls.items():
        with assistant(username) as client:
            sent, walked = cost_of(client, tool, {"model": "flights.flight", **arguments})
        sent = [sql for sql in sent if sql.startswith(("SELECT", "INSERT", "UPDATE"))]
        reads = [sql for sql in sent if 'FROM "flights_flight"' in sql and "SELECT 1" not in sql]
        found[tool] = [len(reads), len(sent), walked]
    return found


def leaks_of(username):
    return find_leaks(User.objects.get(username=username), budget=400)


def prompts_of(username):
    """Return the names of prompts, and what two of them say on a shift in Frankfurt."""
    with assistant(username) as client:
        handover = client.get_prompt("shift_handover", airport="FRA", day=TOMORROW)
        flight = handover[1]["content"]["text"].split()[1]
        return {
            "names": [prompt["name"] for prompt in client.list_prompts()],
            "handover": handover,
            "flight": flight,
            "announcement": client.get_prompt(
                "delay_announcement", flight=flight, audience="crew"
            ),
            "airports": client.complete("shift_handover", "airport"),
        }


def start_page():
    return Client().get("/").content.decode()


def timetable(username, day):
    """Return the lines of the timetable, and the days that are offered for a month."""
    uri = f"flightdesk://timetable/{day}"
    with assistant(username) as client:
        text = client.request("resources/read", {"uri": uri})["contents"][0]["text"]
        offered = client.complete("flightdesk://timetable/{day}", "day", day[:7])
    return [text.splitlines(), offered]


def texts_for(username):
    """Return what an assistant reads, by what it is."""
    with assistant(username) as client:
        tools = {
            one["name"]: json.dumps(one, separators=(",", ":"), ensure_ascii=False)
            for one in client.list_tools()
        }
        return {
            "page": client.call_tool("find_records", model="flights.flight").text,
            "description": client.call_tool("describe_model", model="flights.flight").text,
            "tools": f"[{','.join(tools.values())}]",
            "action": tools["flights_flight_cancel_flights"],
        }


def incident_by_assistant(username):
    """Have an assistant report an incident, correct it, tag and close it, and undo it all."""
    values = {**INCIDENT_VALUES, "airport": models.Airport.objects.get(iata="FRA").pk}
    with assistant(username) as client:
        created = client.call_tool("create_record", model=INCIDENT, values=values)
        at = {"model": INCIDENT, "pk": created.data["pk"]}
        values = {"severity": 3, "closed": True, "tags": {"add": ["press"]}}
        client.call_tool("update_record", **at, values=values)
        found = client.call_tool("find_records", model=INCIDENT, filters={"tags": "press"})
        incident = models.Incident.objects.select_related("airport").get(pk=at["pk"])
    saved = [incident.airport.iata, incident.severity, incident.closed, incident.reported_by]
    return [*saved, incident.pk in keys(found.records)]


def write_of_task(username, task):
    """Write as one of the tasks of the desk does, and take it back, by `undo_change` or else on
    the page of the admin. Return where the admin names the write, how it was taken back, and
    whether all is as before.
    """
    flight = models.Flight.objects.get(number="RF107", scheduled_departure__date=TOMORROW)
    pks, incident = {"pks": [flight.pk]}, {**INCIDENT_VALUES, "airport": "FRA"}
    tool, arguments = {
        "gate": ("update_record", {**about(flight), "values": {"gate": "Z9"}}),
        "function": ("report_delay", {"flight": "RF107", "day": TOMORROW, "minutes": 30}),
        "action": (f"{ON_FLIGHTS}_delay_flights", {**pks, "answer": {"minutes": 30}}),
        "cancel": (f"{ON_FLIGHTS}_cancel_flights", {**pks, "answer": {}}),
        "incident": ("create_record", {"model": INCIDENT, "values": incident}),
    }[task]
    before = rows_of_desk()
    with assistant(username, record=True) as client:
        answer = agreed(client, tool, **arguments)
        written = (
            models.Incident.objects.get(pk=answer.data["pk"]) if task == "incident" else flight
        )
        is_written = rows_of_desk() != before
        places = places_in_admin(username, written, tool)
        entries = client.call_tool("get_history", **about(written)).data["history"]
        url = f"/admin/{written._meta.label_lower.replace('.', '/')}/{written.pk}"
        if "undo" in entries[0]:
            agreed(client, "undo_change", **about(written), change=entries[0]["undo"])
        elif written == flight:
            values = {"status": flight.status, "delay_minutes": flight.delay_minutes}
            save_in_browser(browser_of(username), f"{url}/change/", values)
        else:
            browser_of("admin").post(f"{url}/delete/", {"post": "yes"})
        return [places, "undo" in entries[0], is_written and rows_of_desk() == before]


def about(record):
    return {"model": record._meta.label_lower, "pk": record.pk}


def agreed(client, tool, **arguments):
    """The answer of a tool, once the person has agreed."""
    answer = client.call_tool(tool, **arguments)
    if "confirmation" in answer.text:
        agreement = {"confirmation": answer.data["confirmation"]}
        answer = client.call_tool(tool, **arguments, **agreement)
    return answer


def rows_of_desk():
    return [[*model.objects.order_by("pk").values()] for model in (models.Flight, models.Incident)]


def places_in_admin(username, record, tool):
    """Return by what the admin finds the call of a tool that wrote a record."""
    token, boss = demo_token(username), browser_of("admin")
    label = record._meta.label_lower
    history = boss.get(f"/admin/{label.replace('.', '/')}/{record.pk}/history/").content.decode()
    page = boss.get(f"/admin/mcp_django/personaltoken/{token.pk}/change/")
    queries = {
        "record": {"record": f"{label}:{record.pk}"},
        "user": {"user": token.user_id},
        "token": {"principal": page.context["calls_of"]},
    }
    places = ["history"] if "hrough an assistant: mcp_django.testing" in history else []
    for name, query in queries.items():
        calls = boss.get("/admin/mcp_django/callrecord/", query).context["cl"].result_list
        if any(call.target.startswith(tool) and call.outcome == "done" for call in calls):
            places.append(name)
    return places


def take_away_right(group, codename):
    """As in a database that an older demo made. It stays away until the demo is run again."""
    group = Group.objects.get(name=group)
    group.permissions.remove(group.permissions.get(codename=codename))


def answers_of_start_page(username):
    """Return pairs of what an assistant answers to the questions there, and what the ORM does."""
    with assistant(username) as client:
        find = partial(client.call_tool, "find_records", model="flights.flight")
        late = find(filters={"origin": "MUC", "status": "delayed"}).records
        waiting = find(model=INCIDENT, filters={"airport": "MUC", "closed": False}).records
        count = {"metrics": {"n": {"count": "bookings"}}, "order_by": ["-n"]}
        count["group_by"] = ["number", "scheduled_departure"]
        (most, *_) = client.call_tool("aggregate_records", model="flights.flight", **count).records
        rf100 = {"number": "RF100", "scheduled_departure__date": TOMORROW}
        full = {**count, "filters": rf100, "group_by": ["aircraft__seats"]}
        (load,) = client.call_tool("aggregate_records", model="flights.flight", **full).records
        week = client.call_tool("on_time_performance", **WEEK)
        longest = find(order_by=["-delay_minutes"], fields=["id", "incidents"], limit=5).records
        client.call_tool("report_delay", flight="RF100", day=TOMORROW, minutes=40)
        delayed = models.Flight.objects.select_related("aircraft").get(**rf100)
        flights = models.Flight.objects.order_by("-delay_minutes").values()
        booked = Counter(models.Booking.objects.values_list("flight", flat=True))
        incidents = models.Incident.objects.filter(airport__iata="MUC", closed=False).values()
        return [
            [keys(late), keys(flights.filter(origin__iata="MUC", status="delayed"))],
            [keys(waiting), keys(incidents)],
            [most["n"], max(booked.values())],
            [[load["n"], load["aircraft__seats"]], [booked[delayed.pk], delayed.aircraft.seats]],
            [week.data["airlines"][-1]["airline"], least_punctual()],
            [keys(longest), keys(flights[:5])],
            [[delayed.status, delayed.delay_minutes], ["delayed", 40]],
        ]


def keys(rows):
    return sorted(row["id"] for row in rows)


def oddities():
    """Count delays without a reason and flights with too few seats, and return broken reports."""
    late = models.Flight.objects.filter(delay_minutes__gt=traffic.EXPLAINED, incidents=None)
    crowded = Q(booked__gt=F("aircraft__seats")) | Q(boarded__gt=F("aircraft__seats"))
    flights = models.Flight.objects.alias(booked=Count("bookings")).filter(crowded)
    unreadable = [one.pk for one in models.Incident.objects.all() if not one.report.read()]
    return [late.count(), flights.count(), unreadable]


def times():
    """Return when incidents were reported, and when their flights leave and arrive."""
    columns = ["reported_at", "flight__scheduled_departure", "flight__scheduled_arrival"]
    rows = models.Incident.objects.order_by("pk").values_list(*columns)
    return [moment.timestamp() for row in rows for moment in row]


def refusals():
    """Return what an assistant reads that breaks rules of flights, bookings and airports."""
    flight = models.Flight.objects.filter(bookings__isnull=False).first()
    first, second = flight.bookings.all()[:2]
    changes = [
        ("flights.flight", flight.pk, {"destination": flight.origin_id}),
        ("flights.flight", flight.pk, {"scheduled_arrival": "2026-11-01T00:00:00Z"}),
        ("flights.booking", first.pk, {"seat": second.seat}),
        ("flights.airport", flight.origin_id, {"iata": flight.destination.iata}),
    ]
    with assistant("admin") as client:
        update = partial(client.call_tool, "update_record")
        return [update(model=name, pk=pk, values=values).text for name, pk, values in changes]


def least_punctual():
    """Of the flights that left in the last seven days: counted one by one, not by a database."""
    late, left = Counter(), Counter()
    flights = models.Flight.objects.filter(scheduled_departure__date__range=WEEK.values())
    for flight in flights.exclude(status="cancelled").select_related("airline"):
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
    """Return whether a password of the demo opens the index of the admin."""
    data = {"username": username, "password": password, "next": "/admin/"}
    answer = Client().post("/admin/login/", data, follow=True)
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
    """Those of the first passenger who has some, on their page in the admin and by the tools."""
    booking = models.Booking.objects.order_by("passenger_id", "pk").first()
    page = browser_of(username).get(f"/admin/flights/passenger/{booking.passenger_id}/change/")
    formsets = page.context["inline_admin_formsets"] if page.status_code == 200 else ()
    bookings = [form.instance for formset in formsets for form in formset.formset]
    on_page = sorted([one.pk, one.seat] for one in bookings if one.pk)
    call = {"model": "flights.passenger", "pk": booking.passenger_id, "fields": ["id"]}
    with assistant(username) as client:
        answer = client.call_tool("get_record", **call, include=["bookings"])
    if answer.is_error:
        return [on_page, []]
    by_tool = rows_as_objects(answer.data["bookings"])
    return [on_page, sorted([one["id"], one["seat"]] for one in by_tool)]
