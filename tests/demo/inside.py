"""What the tests ask, run within the demo by `__main__`.

Whatever is changed is rolled back, but for logins, and for what a docstring says will stay.
"""

from __future__ import annotations

from datetime import date, timedelta
from io import StringIO
from time import process_time

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core import mail
from django.core.management import call_command
from django.db import transaction
from django.test import Client, RequestFactory
from django.utils import timezone

from demo_project.flights import mcp as tools
from demo_project.flights import models
from demo_project.flights.rights import visible
from demo_project.flights.seeding import people, traffic
from mcp_django.exceptions import ToolError
from mcp_django.models import PersonalToken
from mcp_django.testing import Client as AssistantClient
from mcp_django.testing import ProtocolFailure

NAMES = ["Country", "Airport", "Airline", "Flight", "Passenger", "Booking", "Incident"]
FLIGHTS = "/admin/flights/flight/"


def request_by(username):
    request = RequestFactory().get("/")
    request.user = User.objects.get(username=username)
    return request


def browser_of(username):
    client = Client()
    client.force_login(User.objects.get(username=username))
    return client


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


def report_status(username):
    incident = models.Incident.objects.first()
    return browser_of(username).get(incident.report.url).status_code


def offered_actions(username):
    request = request_by(username)
    return sorted(admin.site.get_model_admin(models.Flight).get_actions(request))


def logged_after(earlier):
    """The messages of the admin's log that came after so many others."""
    return [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")[earlier:]]


def run_action(username, action, *, statuses, pages=({},)):
    """Run an action on the first flight in each status, page by page, and undo it."""
    mail.outbox = []
    earlier = LogEntry.objects.count()
    client = browser_of(username)
    flights = [models.Flight.objects.filter(status=status).first() for status in statuses]
    before = [[one.status, one.delay_minutes] for one in flights]
    seats = models.Booking.objects.filter(flight__in=flights).count()
    data = {"action": action, "_selected_action": [one.pk for one in flights]}
    with transaction.atomic():
        answers = [client.post(FLIGHTS, {**data, **page}) for page in pages]
        final = client.get(FLIGHTS) if answers[-1].status_code == 302 else answers[-1]
        for one in flights:
            one.refresh_from_db()
        found = {
            "pages": [[answer.status_code, answer.headers["Content-Type"]] for answer in answers],
            "texts": [answer.content.decode() for answer in answers],
            "messages": [str(message) for message in (final.context or {}).get("messages", ())],
            "before": before,
            "after": [[one.status, one.delay_minutes] for one in flights],
            "log": logged_after(earlier),
            "mails": len(mail.outbox),
            "seats": seats,
        }
        transaction.set_rollback(True)
    return found


def delay(username, pages):
    return run_action(username, "delay_flights", statuses=["scheduled", "landed"], pages=pages)


def cancel(username, pages):
    return run_action(username, "cancel_flights", statuses=["scheduled"], pages=pages)


def manifest(username):
    return run_action(username, "passenger_manifest", statuses=["landed"])


def notify(username):
    return run_action(username, "notify_passengers", statuses=["delayed", "cancelled"])


def delay_all_scheduled():
    """With "select all" on a filtered list: the page names no flight, the filter does."""
    client = browser_of("dispatcher")
    scheduled = models.Flight.objects.filter(status="scheduled")
    some = scheduled.first().pk
    count = scheduled.count()
    data = {"action": "delay_flights", "select_across": "1", "_selected_action": [some]}
    with transaction.atomic():
        client.post(f"{FLIGHTS}?status__exact=scheduled", {**data, "post": "yes", "minutes": "10"})
        left = models.Flight.objects.filter(status="scheduled").count()
        transaction.set_rollback(True)
    return [count, left]


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
        asked = final["result"]["structuredContent"]
        if "confirmation" in asked:
            more = {} if answer is None else {"answer": answer}
            params["arguments"] = {**arguments, "confirmation": asked["confirmation"], **more}
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
        token = shown.structured["confirmation"]
        client.call_tool(name, filters=filters, confirmation=token)
        left = still_open.count()
        transaction.set_rollback(True)
    return [count, shown.structured["records"], between, left]


def close_incidents():
    client = browser_of("dispatcher")
    data = {"action": "close_incidents"}
    still_open = models.Incident.objects.filter(closed=False)
    selected = list(still_open.values_list("pk", flat=True))
    with transaction.atomic():
        client.post("/admin/flights/incident/", {**data, "_selected_action": selected})
        left = still_open.count()
        transaction.set_rollback(True)
    return [len(selected), left]


def punctuality(username):
    report = tools.on_time_performance(
        request_by(username), since=date(2026, 11, 2), until=date(2026, 11, 8)
    )
    return sum(one.flights + one.cancelled for one in report.airlines)


def report_delay(username, number, day, minutes):
    """The answer of the tool, the flight's state after it, and nothing of it is kept."""
    with transaction.atomic():
        try:
            answer = tools.report_delay(
                request_by(username), number, date.fromisoformat(day), minutes
            )
        except ToolError as error:
            answer = str(error)
        flight = models.Flight.objects.filter(number="RF100", scheduled_departure__date=day).get()
        transaction.set_rollback(True)
    return [answer, flight.status, flight.delay_minutes]


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
        for model in client.call_tool("list_models").structured["models"]:
            label = model["model"]
            page = client.call_tool("find_records", model=label, limit=1).structured
            fields[label] = sorted(page["records"][0])
        transaction.set_rollback(True)
    return [sorted(tool_names), fields]


def gate_by_assistant(username):
    """The gate of a flight before and after an assistant set it, and what else changed."""
    with transaction.atomic():
        client = AssistantClient(user=User.objects.get(username=username))
        flight = models.Flight.objects.filter(status="scheduled").order_by("pk").first()
        before = models.Flight.objects.values().get(pk=flight.pk)
        names = [tool["name"] for tool in client.list_tools()]
        if "update_record" in names:
            client.call_tool(
                "update_record", model="flights.flight", pk=flight.pk, values={"gate": "Z9"}
            )
        after = models.Flight.objects.values().get(pk=flight.pk)
        transaction.set_rollback(True)
    changed = {name: after[name] for name in after if after[name] != before[name]}
    return {"writes": sorted(name for name in names if name in WRITES), "changed": changed}


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
