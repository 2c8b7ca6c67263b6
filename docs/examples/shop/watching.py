"""Receivers of the shop. Connected by import, as those in a site's `mcp.py` are."""

from __future__ import annotations

# docs: start watching
import logging

from django.dispatch import receiver

from mcp_django.signals import call_denied

logger = logging.getLogger("shop.refusals")


@receiver(call_denied)
def tell_the_desk(sender, record, context, **kwargs):
    if record.target == "mark_paid":
        user = context.principal.user.get_username()
        logger.warning("%s tried to mark an order as paid, with %s.", user, record.client)


# docs: end watching
