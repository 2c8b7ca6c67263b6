"""Calls of actions of the depot, one after the other."""

from __future__ import annotations


def call(client, name, *parcels, **arguments):
    """Call an action on these parcels, or else on those that the arguments name."""
    if parcels:
        arguments["pks"] = [parcel.pk for parcel in parcels]
    return client.call_tool(f"depot_parcel_{name}", **arguments)


def go_through(client, name, parcel, *answers):
    """Call with the first answer, and then each time with the token that the last call gave."""
    result, token = None, None
    for answer in answers:
        given = {"answer": answer, "confirmation": token}
        result = call(client, name, parcel, **{key: one for key, one in given.items() if one})
        token = result.data.get("confirmation")
    return result


def state(parcel):
    parcel.refresh_from_db()
    return parcel.status, parcel.carrier


UNTOUCHED = ("waiting", "")
