from __future__ import annotations

from django.db import migrations, models

import mcp_django.models.exposure


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_django", "0006_pages_about_assistants"),
    ]

    operations = [
        migrations.AddField(
            model_name="exposedmodel",
            name="untrusted_fields",
            field=models.JSONField(
                blank=True,
                null=True,
                validators=[mcp_django.models.exposure.validate_names],
                verbose_name="fields that people outside the site fill in",
            ),
        ),
    ]
