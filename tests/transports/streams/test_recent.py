from __future__ import annotations

from mcp_django.subscriptions.topics import Change
from mcp_django.transports.streams import hub
from mcp_django.transports.streams.hub import RecentChanges


def test_only_what_is_recent_is_kept():
    kept = RecentChanges()
    kept.add(Change(topic="a"), at=1)
    kept.add(Change(topic="a"), at=2)
    kept.add(Change(topic="b"), at=3)

    assert len(list(kept.of("a", since=2))) == 1
    kept.add(Change(topic="b"), at=3 + hub.KEPT)
    assert list(kept.of("a", since=0)) == []
    assert len(list(kept.of("b", since=0))) == 2


def test_of_more_changes_than_are_kept_anything_may_have_changed(monkeypatch):
    monkeypatch.setattr(hub, "MOST", 2)
    kept = RecentChanges()
    for number in range(3):
        kept.add(Change(topic=str(number)), at=number)

    assert [one.is_whole for one in kept.of("unknown", since=0)] == [True]
    assert list(kept.of("unknown", since=1)) == []
