from __future__ import annotations

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import mcp_django.models.uploads


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_django", "0007_untrusted_fields"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Upload",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "reference",
                    models.CharField(
                        default=mcp_django.models.uploads.new_reference,
                        editable=False,
                        max_length=32,
                        unique=True,
                    ),
                ),
                (
                    "filename",
                    models.CharField(editable=False, max_length=200, verbose_name="name"),
                ),
                ("data", models.BinaryField()),
                ("size", models.PositiveIntegerField(editable=False)),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False, verbose_name="uploaded"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="mcp_uploads",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "file for assistants",
                "verbose_name_plural": "files for assistants",
                "ordering": ("-created_at", "-pk"),
            },
        ),
    ]
