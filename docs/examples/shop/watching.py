"""Receivers of the shop. Connected by import, as those in a site's `mcp.py` are."""

from __future__ import annotations

# docs: start watching
from django.core.mail import send_mail
from django.dispatch import receiver

from mcp_django.signals import call_denied


@receiver(call_denied)
def tell_admins(sender, record, context, **kwargs):
    if record.target == "mark_paid":
        user = context.principal.user.get_username()
        text = f"{user} tried to mark an order as paid, with {record.client}."
        send_mail("Refused", text, None, ["desk@shop.example.com"])


# docs: end watching
