"""The examples at work, in the project of the docs. Run by test_examples, in a process of its own.

Django's runner finds these by name; pytest does not collect them, since its settings are others.
"""

from __future__ import annotations

import json
from decimal import Decimal
from importlib import import_module

import pytest
from django.contrib.auth.models import Permission, User
from django.test import TestCase
from django.urls import reverse
from shop.models import Order, Ticket

from mcp_django.signals import call_denied
from mcp_django.testing import ACCEPT, CANCEL, DECLINE, Client, ProtocolFailure
from mcp_django.testing.client import rows_as_objects
from tests.docs.pages import ROOT, blocks_of


class ExampleTests(TestCase):
    fixtures = ["orders"]

    @classmethod
    def setUpTestData(cls):
        cls.ada = User.objects.create_superuser("ada")
        cls.clerk = User.objects.create_user("clerk", is_staff=True)
        names = ("view_order", "view_product")
        cls.clerk.user_permissions.set(Permission.objects.filter(codename__in=names))

    def records(self, client, **arguments):
        answer = client.call_tool("find_records", **arguments)
        assert not answer.is_error, answer.text
        return answer.records

    def text_of(self, user, name, **arguments):
        return Client(user=user).call_tool(name, **arguments).text

    # Querying

    def test_the_calls_of_the_page_about_queries_have_the_answers_that_it_shows(self):
        page, client = ROOT / "docs/topics/querying.md", Client(user=self.ada)
        blocks = [json.loads(one.text) for one in blocks_of(page) if one.language == "json"]
        (groups,) = (one for one in blocks if "group_by" in one)
        (shown,) = (one for one in blocks if "revenue" in one.get("columns", ()))
        (including,) = (one for one in blocks if "include" in one)
        finding = [one for one in blocks if "model" in one and one not in (groups, including)]

        found = [[one["number"] for one in self.records(client, **call)] for call in finding]
        customers = self.records(client, **including)

        assert found == [["A-3"], ["A-3", "A-2"], ["A-2"], ["A-1"]]
        numbers = {
            one["name"]: [order["number"] for order in rows_as_objects(one["orders"])]
            for one in customers
        }
        assert numbers == {"Lovelace Ltd": ["A-1"], "Ampère SA": ["A-2", "A-3"]}
        assert client.call_tool("aggregate_records", **groups).data == shown

    def test_the_uri_of_the_page_about_tools_works(self):
        client = Client(user=self.ada)
        page = (ROOT / "docs" / "reference" / "tools.md").read_text()
        uri = next(line for line in page.splitlines() if line.startswith("django://"))

        found = rows_as_objects(client.read_resource(uri))

        assert [one["number"] for one in found] == ["A-3", "A-1", "A-2"]
        assert set(found[0]) == {"number", "total"}

    def test_the_example_of_a_definition_works(self):
        client = Client(user=self.ada)
        models = client.call_tool("list_models").data["models"]

        for model in models:
            described = client.call_tool("describe_model", model=model["model"]).data
            self.records(client, **described["example"]["arguments"])

    # Rights

    def test_an_exposure_that_decides_itself_serves_people_who_are_not_staff(self):
        eve, bob = User.objects.create_user("eve"), User.objects.create_user("bob")
        Ticket.objects.create(customer_login=eve, subject="Lamp is broken")
        Ticket.objects.create(customer_login=bob, subject="Bell is silent")

        overview = Client(user=eve).call_tool("list_models").data["models"]

        # The rule looks at the user and at no ticket, so rows are counted.
        assert [(one["model"], one["records"]) for one in overview] == [("shop.ticket", 1)]
        found = self.records(Client(user=eve), model="shop.ticket")
        assert [one["subject"] for one in found] == ["Lamp is broken"]

    # Functions

    def test_revenue_counts_what_the_caller_may_see(self):
        client = Client(user=self.clerk)

        answer = client.call_tool("revenue", since="2026-03-01", until="2026-03-02")

        assert answer.data["orders"] == 2
        assert Decimal(answer.data["total"]) == Decimal("200.50")

    def test_functions_write_report_progress_and_await(self):
        assert self.text_of(self.ada, "mark_paid", number="A-2") == "A-2 is paid."
        assert "find_records" in self.text_of(self.ada, "mark_paid", number="A-9")
        assert Order.objects.get(number="A-2").status == "paid"
        assert self.text_of(self.clerk, "check_totals") == "Wrong totals: none."
        assert "A-1" in self.text_of(self.clerk, "parcel", number="A-1")

    def test_a_schema_of_the_site_is_told_and_enforced(self):
        client = Client(user=self.clerk)
        (told,) = [one for one in client.list_tools() if one["name"] == "order_status"]

        found = client.call_tool("order_status", number="A-1")
        refused = client.call_tool("order_status", number="A-1", customer="Ada")

        assert told["inputSchema"]["oneOf"]
        assert list(found.data) == ["A-1"]
        assert refused.is_error
        assert refused.text.endswith(' A valid call: order_status {"number":"A-1"}')

    def test_a_header_repeats_an_argument(self):
        client = Client(user=self.clerk)
        call = {"name": "orders_from", "arguments": {"country": "FR"}}
        message = client.message("tools/call", call)
        headers = client.routing_headers(message)

        answered = client.post(message, headers=headers).messages[0]
        refused = client.post(message, headers={**headers, "Mcp-Param-Country": "DE"})

        assert headers["Mcp-Param-Country"] == "FR"
        assert answered["result"]["structuredContent"] == {"result": 2}
        assert (refused.status, refused.messages[0]["error"]["code"]) == (400, -32020)

    def test_a_serializer_reads_and_writes_for_a_tool(self):
        client = Client(user=self.ada)
        (told,) = [one for one in client.list_tools() if one["name"] == "open_ticket"]

        opened = client.call_tool("open_ticket", subject="Lamp is broken").data
        refused = client.call_tool("open_ticket", subject="")

        assert list(told["inputSchema"]["properties"]) == ["subject", "is_open"]
        assert opened["subject"] == "Lamp is broken"
        assert Ticket.objects.get(pk=opened["id"]).customer_login == self.ada
        assert refused.text == "Argument subject: This field may not be blank."

    def test_a_token_held_to_a_model_has_only_functions_about_it(self):
        client = Client(user=self.ada, models=["shop.order"])

        names = {one["name"] for one in client.list_tools()}
        models = client.call_tool("list_models").data["models"]

        assert "mark_paid" in names
        assert [one["model"] for one in models] == ["shop.order"]

    # Resources

    def test_resources_of_the_page_are_listed_and_read(self):
        client = Client(user=self.clerk)
        (terms,) = client.request("resources/read", {"uri": "shop://terms"})["contents"]
        label = client.request("resources/read", {"uri": "shop://labels/A-1.txt"})["contents"][0]

        assert "shop://terms" in {one["uri"] for one in client.list_resources()}
        assert terms["mimeType"] == "text/markdown"
        report = client.read_resource("shop://reports/2026")
        assert (report["year"], report["orders"]) == (2026, 3)
        assert Decimal(report["total"]) == Decimal("510.50")
        assert client.complete("shop://reports/{year}", "year", "20") == ["2026"]
        assert label["text"] == "Lovelace Ltd\nGB"

    # Prompts

    def test_prompts_of_functions_and_of_files_are_there(self):
        client = Client(user=self.clerk)

        (message,) = client.get_prompt("reply", number="A-1")

        assert [one["name"] for one in client.list_prompts()] == [
            "late_order",
            "new_orders",
            "reply",
        ]
        assert message["content"]["text"] == "Draft a warm e-mail about order A-1, which is Paid."
        assert client.complete("reply", "number", "2") == ["A-2"]
        assert client.complete("late_order", "tone", "f") == ["formal"]
        assert [one["role"] for one in client.get_prompt("new_orders")] == [
            "user",
            "user",
            "assistant",
        ]
        with pytest.raises(ProtocolFailure, match="There is no such object"):
            client.get_prompt("reply", number="A-9")

    def test_a_prompt_in_a_file_reads_with_the_rights_of_the_caller(self):
        client = Client(user=self.clerk)

        messages = client.get_prompt("late_order", number="A-1", reason="{{ snow }}")

        assert [one["content"]["type"] for one in messages] == ["text", "resource", "text", "text"]
        assert '"A-1"' in messages[1]["content"]["resource"]["text"]
        assert "margin" not in messages[1]["content"]["resource"]["text"]
        assert "{{ snow }}</data-" in messages[2]["content"]["text"]

    # Audit

    def test_the_receiver_of_the_page_about_audit_tells_the_desk(self):
        tell_the_desk = import_module("shop.watching").tell_the_desk
        self.addCleanup(call_denied.disconnect, tell_the_desk)
        client = Client(user=self.clerk)

        with pytest.raises(ProtocolFailure), self.assertLogs("shop.refusals") as logged:
            client.call_tool("mark_paid", number="A-2")

        assert "clerk tried to mark an order as paid" in logged.output[0]

    # Switches

    def test_a_closed_server_refuses_calls_until_it_is_opened(self):
        close_server = import_module("shop.switches").close_server
        client = Client(user=self.clerk)

        close_server()
        with pytest.raises(ProtocolFailure, match="This server is closed for now"):
            client.list_tools()
        close_server(is_closed=False)

        assert client.list_tools()

    # Questions

    def test_what_nobody_can_be_asked_goes_by_post(self):
        answers = [
            {}, {"answers": {"shipping": CANCEL}}, {"answers": {"shipping": DECLINE}},
        ]  # fmt: skip

        said = [
            Client(user=self.ada, **one).call_tool("ship_by_post", number="A-2").text
            for one in answers
        ]

        no = "Not shipped: the person said no."
        assert said == ["A-2 went by post.", "A-2 went by post.", no]

    def test_an_order_is_removed_with_a_tick_or_with_a_token(self):
        plain = Client(user=self.ada)
        asked = Client(user=self.ada, answers={"confirm": {"confirm": True}})

        shown = plain.call_tool("remove_order", number="A-2").data
        token = shown["confirmation"]
        said = plain.call_tool("remove_order", number="A-2", confirmation=token).text

        assert shown["question"].startswith("Delete order A-2 of ")
        assert said == "A-2 is deleted."
        assert asked.call_tool("remove_order", number="A-1").text == "A-1 is deleted."

    def test_a_form_and_a_model_are_asked_together(self):
        client = Client(
            user=self.ada, answers={"tone": {"tone": "warm"}, "line": "Thanks for everything."}
        )

        said = client.call_tool("draft_thanks", number="A-2").text
        later = Client(user=self.ada, answers={"shipping": {"carrier": "courier"}})

        assert said == "Hello! Thanks for everything."
        assert client.questions.keys() == {"tone", "line"}
        shipped = later.call_tool("ship_later", number="A-2").text
        assert shipped == "A-2 will be fetched by courier."

    def test_a_person_is_sent_to_the_page_where_an_order_is_paid_for(self):
        Order.objects.filter(number="A-2").update(status=Order.Status.NEW)

        def pay(question):
            assert question["params"]["url"] == "https://shop.example.com/orders/A-2/pay"
            Order.objects.filter(number="A-2").update(status=Order.Status.PAID)
            return ACCEPT

        client = Client(user=self.ada, answers={"pay": pay})

        assert client.call_tool("take_payment", number="A-2").text == "Order A-2 is paid now."

    # Deployment

    def test_each_way_to_deploy_answers(self):
        for name, path in (
            ("asgi", "/mcp"),
            ("asgi", "/mcp/"),
            ("asgi_around", "/assistants/mcp"),
            ("asgi_router", "/mcp"),
        ):
            application = import_module(f"mysite.{name}").application
            client = Client(user=self.ada, application=application, path=path)
            names = {one["name"] for one in client.list_tools()}
            assert "find_records" in names, name
        assert reverse("mcp_django:endpoint") == "/mcp"
