"""Subscriptions of the modern era."""

from __future__ import annotations

from tests.spec.model import V26, Level, Requirement

SUBSCRIPTIONS: tuple[Requirement, ...] = (
    Requirement(
        "subscriptions:acknowledged",
        number=188,
        level=Level.MUST,
        sentence="The first message says what of the wish is granted.",
        chapter="basic/patterns/subscriptions",
        looks_at="subscriptions/listen",
        added_in=V26,
    ),
    Requirement(
        "subscriptions:id",
        number=189,
        level=Level.MUST,
        sentence="Each message of a subscription names it in the JSON type of the request's id.",
        chapter="basic/patterns/subscriptions",
        looks_at="subscriptions/listen",
        added_in=V26,
    ),
    Requirement(
        "subscriptions:requested-only",
        number=190,
        level=Level.MUST,
        sentence="Nothing arrives that was not asked for.",
        chapter="basic/patterns/subscriptions",
        looks_at="subscriptions/listen",
        added_in=V26,
    ),
    Requirement(
        "subscriptions:delivered",
        number=191,
        level=Level.SHOULD,
        sentence="What was asked for arrives at every open stream that asked.",
        chapter="basic/patterns/subscriptions",
        looks_at="subscriptions/listen",
        added_in=V26,
    ),
    Requirement(
        "subscriptions:ended",
        number=192,
        level=Level.SHOULD,
        sentence="A server that stops answers the request before it closes the stream.",
        chapter="basic/patterns/subscriptions",
        looks_at="subscriptions/listen",
        added_in=V26,
    ),
    Requirement(
        "subscriptions:stream",
        number=193,
        level=Level.PROJECT,
        sentence="A client that does not take streams cannot listen.",
        chapter="basic/patterns/subscriptions",
        looks_at="subscriptions/listen",
        added_in=V26,
    ),
    Requirement(
        "subscriptions:bounded",
        number=194,
        level=Level.PROJECT,
        sentence="Streams show signs of life, and their number and backlog have an end.",
        chapter="basic/patterns/subscriptions",
        looks_at="subscriptions/listen",
        added_in=V26,
    ),
    Requirement(
        "subscriptions:rights",
        number=195,
        level=Level.PROJECT,
        sentence="Nobody hears of what they may not see, also when rights change meanwhile.",
        chapter="basic/patterns/subscriptions",
        looks_at="subscriptions/listen",
        added_in=V26,
    ),
    Requirement(
        "subscriptions:processes",
        number=196,
        level=Level.PROJECT,
        sentence="A change in any process reaches the streams of all.",
        chapter="basic/patterns/subscriptions",
        looks_at="subscriptions/listen",
        added_in=V26,
    ),
)
