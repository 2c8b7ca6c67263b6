"""When a change goes out, and what becomes of too many."""

from __future__ import annotations

import pytest

from mcp_django.subscriptions.outbox import Gathering, collapse
from mcp_django.subscriptions.topics import ANSWER, EVERYTHING, LOG, TOOLS, Change, control_topic
from tests.changed import list_changed

ORDERS = "django://objects/shop.order"


def order(number, **options):
    return Change(topic=f"{ORDERS}/{number}", **options)


@pytest.fixture
def gathering(clock):
    return Gathering(clock=clock, gather=0.25, most=10)


def test_the_first_change_goes_out_at_once(gathering):
    gathering.add([order(1), order(1)])

    assert gathering.wait() == 0
    assert gathering.take() == {order(1)}
    assert gathering.wait() is None


def test_repeats_within_the_time_become_one(gathering, clock):
    is_news = [gathering.add([order(1)]), gathering.add([order(2)])]
    gathering.take()

    for _ in range(5):
        clock.now += 0.04
        is_news.append(gathering.add([order(1), order(3)]))

    assert is_news == [True, False, True, False, False, False, False]
    assert gathering.take() == {order(3)}
    assert gathering.wait() == pytest.approx(0.05)
    clock.now += 0.06
    assert gathering.take() == {order(1)}
    assert not gathering
    clock.now += 0.25
    gathering.add([order(1)])
    assert gathering.take() == {order(1)}


def test_nothing_is_remembered_of_what_went_out_long_ago(gathering, clock):
    for number in range(100):
        gathering.add([order(number)])
        gathering.take()
        clock.now += 0.1

    assert len(gathering._gone) <= 4


def test_too_many_records_become_their_collection_and_all_below_it(gathering):
    gathering.add([order(number) for number in range(11)])

    (change,) = gathering.take()
    assert change == Change(topic=ORDERS, is_whole=True)
    assert all(change.touches(order(number).topic) for number in range(11))
    assert change.touches(ORDERS)
    assert not change.touches("django://objects/shop.orders/1")


def test_hidden_changes_stay_hidden_and_servers_apart_and_users_become_all():
    found = collapse(
        [
            *(order(1), order(2, is_hidden=True), order(3, server="b")),
            *(order(number, users=frozenset(str(number))) for number in range(20)),
            *(list_changed(TOOLS, users=frozenset(str(number))) for number in range(20)),
        ],
        most=10,
    )

    assert found == {
        Change(topic=ORDERS, is_whole=True),
        Change(topic=ORDERS, is_whole=True, is_hidden=True),
        Change(topic=ORDERS, is_whole=True, server="b"),
        list_changed(TOOLS),
    }


def test_what_has_no_collection_becomes_everything(gathering):
    gathering.add([Change(topic=f"shop://reports/{year}") for year in range(11)])

    assert gathering.take() == {EVERYTHING}
    assert EVERYTHING.touches("shop://reports/3")
    assert EVERYTHING.touches(TOOLS)
    assert EVERYTHING.concerns(server="any", user="1")


def test_what_processes_tell_each_other_never_waits_and_is_never_left_out(gathering):
    log = Change(topic=control_topic(LOG, "a"))
    for _ in range(3):
        gathering.add([log])
        assert gathering.take() == {log}

    answers = {Change(topic=control_topic(ANSWER, str(number))) for number in range(11)}
    gathering.add(answers)
    gathering.add(Change(topic=f"shop://{number}") for number in range(11))

    assert gathering.take() == {EVERYTHING, *answers}
