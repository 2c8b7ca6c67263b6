"""Tools of the flight desk that ask, for the official client to answer."""

from __future__ import annotations

from django import forms
from django.http import HttpRequest

import mcp_django as mcp


def traveller(request: HttpRequest) -> bool:
    """Nobody else has them: other tests call and read whatever they find."""
    return request.user.get_username() == "traveller"


class SeatForm(forms.Form):
    seat = forms.RegexField(r"[1-9]\d?[A-F]", label="Seat", help_text="Such as 12A.")
    meal = forms.ChoiceField(choices=[("none", "None"), ("vegan", "Vegan")], initial="none")
    window = forms.BooleanField(required=False)
    bags = forms.MultipleChoiceField(choices=[("s", "Small"), ("l", "Large")], required=False)


@mcp.tool(asks=True, destructive=False, permission=traveller)
def choose_seat(ctx: mcp.Context) -> dict[str, str]:
    """Choose a seat. The person is asked which."""
    found = ctx.ask("seat", SeatForm, "Where would you like to sit?")
    return {name: str(value) for name, value in found.items()}


@mcp.tool(asks=True, read_only=True, permission=traveller)
async def write_postcard(ctx: mcp.Context) -> dict[str, str]:
    """Write a postcard with the client's own model."""
    with ctx.together():
        found = await ctx.aask("seat", SeatForm, "Where do you sit?")
        said = ctx.sample("text", "Greet somebody.", max_tokens=20)
        roots = ctx.roots()
    return {"seat": found["seat"], "text": said.text, "folder": roots[0].uri}


@mcp.tool(asks=True, permission=traveller)
def close_desk(ctx: mcp.Context) -> dict[str, bool]:
    """Close the desk for good. The person has to agree."""
    ctx.confirm("Close the desk for good?")
    return {"closed": True}
