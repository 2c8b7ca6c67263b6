from __future__ import annotations

# docs: start tests
from django.contrib.auth.models import Permission, User
from django.test import TestCase

from mcp_django.testing import Client, ProtocolFailure


class AssistantTests(TestCase):
    fixtures = ["orders"]

    def setUp(self):
        self.clerk = User.objects.create_user("clerk", is_staff=True)
        self.clerk.user_permissions.add(Permission.objects.get(codename="view_order"))

    def test_clerks_see_orders_without_margins(self):
        client = Client(user=self.clerk)

        page = client.call_tool("find_records", model="shop.order", filters={"status": "paid"})

        self.assertEqual([one["number"] for one in page.records], ["A-3", "A-1"])
        self.assertNotIn("margin", page.records[0])

    def test_a_filter_on_a_hidden_column_is_refused(self):
        client = Client(user=self.clerk)

        answer = client.call_tool("find_records", model="shop.order", filters={"margin__gt": 0})

        self.assertTrue(answer.is_error)
        self.assertIn("cannot be used in filters", answer.text)

    def test_clerks_cannot_mark_orders_as_paid(self):
        client = Client(user=self.clerk)

        self.assertNotIn("mark_paid", [tool["name"] for tool in client.list_tools()])
        with self.assertRaises(ProtocolFailure):
            client.call_tool("mark_paid", number="A-2")

    def test_a_read_only_token_changes_nothing(self):
        admin = User.objects.create_superuser("ada")
        client = Client(user=admin, read_only=True)

        self.assertNotIn("mark_paid", [tool["name"] for tool in client.list_tools()])


# docs: end tests


# docs: start session_tests
class SessionTests(TestCase):
    fixtures = ["orders"]

    def test_an_older_client_subscribes(self):
        client = Client(user=User.objects.create_superuser("ada"), revision="2025-11-25")

        client.initialize()

        uri = "django://objects/shop.order"
        self.assertEqual(client.request("resources/subscribe", {"uri": uri}), {})


# docs: end session_tests
# docs: start question_tests
from mcp_django.testing import DECLINE


class QuestionTests(TestCase):
    fixtures = ["orders"]

    def setUp(self):
        self.admin = User.objects.create_superuser("ada")

    def test_orders_are_shipped_as_the_person_says(self):
        client = Client(user=self.admin, answers={"shipping": {"carrier": "post"}})

        answer = client.call_tool("ship_order", number="A-2")

        self.assertEqual(answer.text, "A-2 went by post in 1 parcels.")
        self.assertEqual(
            client.questions["shipping"]["params"]["message"], "How was order A-2 sent?"
        )

    def test_orders_stay_when_the_person_says_no(self):
        client = Client(user=self.admin, answers={"confirm": DECLINE})

        self.assertTrue(client.call_tool("remove_order", number="A-2").is_error)


# docs: end question_tests


# docs: start change_tests
from shop.models import Order


class ChangeTests(TestCase):
    fixtures = ["orders"]

    def test_a_paid_order_is_announced(self):
        client = Client(user=User.objects.create_superuser("ada"))

        with client.listen("django://objects/shop.order", lists=["tools"]) as events:
            with self.captureOnCommitCallbacks(execute=True):
                Order.objects.get(number="A-2").save()

            self.assertEqual(next(events), "django://objects/shop.order")


# docs: end change_tests


# docs: start leak_tests
from mcp_django.testing.leaks import check_leaks


class LeakTests(TestCase):
    fixtures = ["orders"]

    def test_assistants_get_no_more_than_the_admin_shows(self):
        clerk = User.objects.create_user("clerk", is_staff=True)

        check_leaks(users=[clerk], budget=200)


# docs: end leak_tests
