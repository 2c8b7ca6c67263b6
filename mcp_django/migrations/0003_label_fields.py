from __future__ import annotations

from django.db import migrations, models

import mcp_django.models.exposure


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_django", "0002_follow_relations"),
    ]

    operations = [
        migrations.AddField(
            model_name="exposedmodel",
            name="label_fields",
            field=models.JSONField(
                blank=True,
                null=True,
                validators=[mcp_django.models.exposure.validate_names],
                verbose_name="fields that stand for a record where others refer to it",
            ),
        ),
    ]
