from __future__ import annotations

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import mcp_django.models.tokens


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ExposureGeneration",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("server", models.CharField(default="default", max_length=50, unique=True)),
                ("number", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="PersonalToken",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("server", models.CharField(default="default", editable=False, max_length=50)),
                (
                    "name",
                    models.CharField(help_text="The program that will use it.", max_length=100),
                ),
                ("digest", models.CharField(editable=False, max_length=64, unique=True)),
                (
                    "hint",
                    models.CharField(editable=False, max_length=10, verbose_name="begins with"),
                ),
                (
                    "scopes",
                    models.JSONField(
                        default=list, validators=[mcp_django.models.tokens.validate_scopes]
                    ),
                ),
                (
                    "read_only",
                    models.BooleanField(
                        default=False,
                        help_text="Nothing can be changed.",
                        verbose_name="read-only",
                    ),
                ),
                (
                    "models",
                    models.JSONField(
                        blank=True,
                        help_text="The only models that exist for it. None chosen: no such limit.",
                        null=True,
                        validators=[mcp_django.models.tokens.validate_models],
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False, verbose_name="created"
                    ),
                ),
                (
                    "expires_at",
                    models.DateTimeField(
                        default=mcp_django.models.tokens.default_expiry, verbose_name="expires"
                    ),
                ),
                (
                    "last_used_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="last used"),
                ),
                (
                    "revoked_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="revoked"),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="mcp_personal_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-created_at", "-pk"),
                "permissions": (
                    ("manage_all_tokens", "Can see and make personal tokens of other people"),
                ),
            },
        ),
    ]
