from __future__ import annotations

from constance.models import Constance
from django.contrib import admin
from reversion.models import Version

from tests.sites.vault.models import Account, PartnerKey

admin.site.register([Account, Constance, PartnerKey, Version])
