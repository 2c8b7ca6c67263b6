from __future__ import annotations

import re

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import mcp_django.models.exposure
import mcp_django.models.tokens
import mcp_django.models.uploads


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
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
            name="ServerSettings",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "server",
                    models.CharField(
                        default="default", editable=False, max_length=50, unique=True
                    ),
                ),
                (
                    "instructions",
                    models.TextField(
                        blank=True,
                        help_text="Told to every client. Empty: as in the settings.",
                        max_length=8000,
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
                    "closed",
                    models.BooleanField(
                        default=False,
                        help_text="Every call is refused. Streams and sessions end at once.",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "server settings",
            },
        ),
        migrations.CreateModel(
            name="SpentConfirmation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("expires_at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="CallRecord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("server", models.CharField(default="default", max_length=50)),
                (
                    "at",
                    models.DateTimeField(default=django.utils.timezone.now, verbose_name="time"),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("tool", "tool"),
                            ("resource", "resource"),
                            ("prompt", "prompt"),
                            ("other", "other"),
                        ],
                        max_length=10,
                    ),
                ),
                ("principal", models.CharField(max_length=200)),
                ("client", models.CharField(blank=True, max_length=100)),
                ("method", models.CharField(max_length=60)),
                ("target", models.CharField(blank=True, max_length=300)),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("done", "done"),
                            ("asked", "asked"),
                            ("refused", "refused"),
                            ("failed", "failed"),
                            ("denied", "denied"),
                            ("limited", "limited"),
                            ("invalid", "invalid"),
                            ("crashed", "crashed"),
                            ("cancelled", "cancelled"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "reason",
                    models.CharField(blank=True, db_default="", default="", max_length=200),
                ),
                ("milliseconds", models.PositiveIntegerField(default=0)),
                ("rows", models.PositiveIntegerField(null=True)),
                (
                    "model",
                    models.CharField(blank=True, db_default="", default="", max_length=200),
                ),
                (
                    "keys",
                    models.CharField(blank=True, db_default="", default="", max_length=1000),
                ),
                ("bytes", models.PositiveBigIntegerField(default=0)),
                ("correlation_id", models.CharField(blank=True, max_length=32)),
                ("arguments", models.JSONField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-at", "-pk"),
            },
        ),
        migrations.CreateModel(
            name="Assistants",
            fields=[],
            options={
                "verbose_name": "assistants",
                "verbose_name_plural": "assistants",
                "permissions": [
                    ("view_session", "Can view sessions"),
                    ("delete_session", "Can end sessions"),
                    ("view_livestream", "Can view streams"),
                    ("delete_livestream", "Can end streams"),
                ],
                "proxy": True,
                "default_permissions": (),
                "indexes": [],
                "constraints": [],
            },
            bases=("mcp_django.callrecord",),
        ),
        migrations.CreateModel(
            name="ExposedModel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("server", models.CharField(default="default", editable=False, max_length=50)),
                (
                    "label",
                    models.CharField(
                        help_text='Such as "shop.order".', max_length=150, verbose_name="model"
                    ),
                ),
                (
                    "level",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        choices=[
                            (0, "hidden"),
                            (1, "definition: what fields there are"),
                            (2, "aggregates: numbers about groups of records"),
                            (3, "read: records"),
                            (4, "act: records, and actions of the admin"),
                            (5, "write: records, actions, and to create, change and delete"),
                        ],
                        help_text="Empty: as in code.",
                        null=True,
                    ),
                ),
                (
                    "fields",
                    models.JSONField(
                        blank=True,
                        null=True,
                        validators=[mcp_django.models.exposure.validate_names],
                        verbose_name="fields that records show",
                    ),
                ),
                (
                    "write_fields",
                    models.JSONField(
                        blank=True,
                        null=True,
                        validators=[mcp_django.models.exposure.validate_names],
                        verbose_name="fields that may be set",
                    ),
                ),
                (
                    "filter_fields",
                    models.JSONField(
                        blank=True,
                        null=True,
                        validators=[mcp_django.models.exposure.validate_names],
                        verbose_name="fields that filters may use",
                    ),
                ),
                (
                    "order_fields",
                    models.JSONField(
                        blank=True,
                        null=True,
                        validators=[mcp_django.models.exposure.validate_names],
                        verbose_name="fields that records may be ordered by",
                    ),
                ),
                (
                    "group_fields",
                    models.JSONField(
                        blank=True,
                        null=True,
                        validators=[mcp_django.models.exposure.validate_names],
                        verbose_name="fields that aggregates may group by",
                    ),
                ),
                (
                    "label_fields",
                    models.JSONField(
                        blank=True,
                        null=True,
                        validators=[mcp_django.models.exposure.validate_names],
                        verbose_name="fields that stand for a record where others refer to it",
                    ),
                ),
                (
                    "untrusted_fields",
                    models.JSONField(
                        blank=True,
                        null=True,
                        validators=[mcp_django.models.exposure.validate_names],
                        verbose_name="fields that people outside the site fill in",
                    ),
                ),
                (
                    "follow_relations",
                    models.BooleanField(
                        blank=True,
                        help_text=(
                            "Paths like customer__name, from or through here. Unknown: as in code."
                        ),
                        null=True,
                    ),
                ),
                (
                    "notes",
                    models.TextField(
                        blank=True,
                        help_text='What assistants should know, such as "state 7 means refunded".',
                        max_length=1000,
                    ),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Only people in these groups have it. None chosen: everybody.",
                        related_name="+",
                        to="auth.group",
                    ),
                ),
            ],
            options={
                "ordering": ("label",),
                "permissions": (("inspect_as", "Can see what assistants of other people see"),),
            },
        ),
        migrations.CreateModel(
            name="ExposedPrompt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("server", models.CharField(default="default", editable=False, max_length=50)),
                ("name", models.CharField(max_length=100)),
                (
                    "enabled",
                    models.BooleanField(blank=True, help_text="Unknown: as in code.", null=True),
                ),
                (
                    "title",
                    models.CharField(blank=True, help_text="Empty: as in code.", max_length=100),
                ),
                (
                    "description",
                    models.TextField(
                        blank=True, help_text="Empty: as in code. People read it.", max_length=1000
                    ),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Only people in these groups have it. None chosen: everybody.",
                        related_name="+",
                        to="auth.group",
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="ExposedTool",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("server", models.CharField(default="default", editable=False, max_length=50)),
                ("name", models.CharField(max_length=40)),
                (
                    "enabled",
                    models.BooleanField(blank=True, help_text="Unknown: as in code.", null=True),
                ),
                (
                    "title",
                    models.CharField(blank=True, help_text="Empty: as in code.", max_length=100),
                ),
                (
                    "description",
                    models.TextField(
                        blank=True,
                        help_text="Empty: as in code. Models follow it.",
                        max_length=1000,
                    ),
                ),
                (
                    "annotations",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        validators=[mcp_django.models.exposure.validate_annotations],
                    ),
                ),
                (
                    "needs_confirmation",
                    models.BooleanField(
                        default=False, help_text="Ask before it runs, also where code does not."
                    ),
                ),
                (
                    "calls_per_minute",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="For each user. Empty: only the limit over all tools.",
                        null=True,
                    ),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Only people in these groups have it. None chosen: everybody.",
                        related_name="+",
                        to="auth.group",
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
                "permissions": (("try_tools", "Can try tools in the admin"),),
            },
        ),
        migrations.CreateModel(
            name="IdempotentAnswer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("principal", models.CharField(max_length=200)),
                ("tool", models.CharField(max_length=40)),
                ("key", models.CharField(max_length=64)),
                ("digest", models.CharField(max_length=64)),
                ("answer", models.JSONField()),
                (
                    "created_at",
                    models.DateTimeField(db_index=True, default=django.utils.timezone.now),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("principal", "tool", "key"), name="mcp_one_answer_per_key"
                    )
                ],
            },
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
                    models.CharField(
                        editable=False, max_length=10, verbose_name="first characters"
                    ),
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
        migrations.CreateModel(
            name="PromptTemplate",
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
                    models.CharField(
                        help_text=(
                            "What people type in their client, such as reply_to_customer: "
                            "small letters, digits and underscores, beginning with a letter."
                        ),
                        max_length=40,
                        validators=[
                            django.core.validators.RegexValidator(
                                re.compile("^[a-z][a-z0-9_]{0,39}\\Z"),
                                "Use small letters, digits and underscores.",
                            )
                        ],
                    ),
                ),
                ("title", models.CharField(blank=True, max_length=100)),
                ("description", models.TextField(blank=True, max_length=1000)),
                ("enabled", models.BooleanField(default=True)),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Only people in these groups have it. None chosen: everybody.",
                        related_name="+",
                        to="auth.group",
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
                "permissions": (("preview_as_user", "Can preview prompts as another user"),),
            },
        ),
        migrations.CreateModel(
            name="PromptVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("arguments", models.JSONField(blank=True, default=list)),
                ("messages", models.JSONField(default=list)),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False, verbose_name="saved"
                    ),
                ),
                ("comment", models.CharField(blank=True, max_length=200)),
                (
                    "created_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "template",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="mcp_django.prompttemplate",
                    ),
                ),
            ],
            options={
                "ordering": ("-number",),
            },
        ),
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
        migrations.CreateModel(
            name="UserRestriction",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("server", models.CharField(default="default", editable=False, max_length=50)),
                (
                    "read_only",
                    models.BooleanField(
                        default=True, help_text="Nothing can be changed.", verbose_name="read-only"
                    ),
                ),
                (
                    "blocked",
                    models.BooleanField(
                        default=False,
                        help_text="All credentials are refused. Streams and sessions end at once.",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="callrecord",
            index=models.Index(fields=["at"], name="mcp_call_at"),
        ),
        migrations.AddIndex(
            model_name="callrecord",
            index=models.Index(fields=["user", "at"], name="mcp_call_user"),
        ),
        migrations.AddConstraint(
            model_name="exposedmodel",
            constraint=models.UniqueConstraint(
                fields=("server", "label"), name="mcp_one_row_per_model"
            ),
        ),
        migrations.AddConstraint(
            model_name="exposedmodel",
            constraint=models.CheckConstraint(
                condition=models.Q(("level", None), ("level__lte", 5), _connector="OR"),
                name="mcp_model_level",
            ),
        ),
        migrations.AddConstraint(
            model_name="exposedprompt",
            constraint=models.UniqueConstraint(
                fields=("server", "name"), name="mcp_one_row_per_prompt"
            ),
        ),
        migrations.AddConstraint(
            model_name="exposedtool",
            constraint=models.UniqueConstraint(
                fields=("server", "name"), name="mcp_one_row_per_tool"
            ),
        ),
        migrations.AddConstraint(
            model_name="prompttemplate",
            constraint=models.UniqueConstraint(
                fields=("server", "name"), name="mcp_one_prompt_per_name"
            ),
        ),
        migrations.AddConstraint(
            model_name="promptversion",
            constraint=models.UniqueConstraint(
                fields=("template", "number"), name="mcp_one_version_per_number"
            ),
        ),
        migrations.AddConstraint(
            model_name="userrestriction",
            constraint=models.UniqueConstraint(
                fields=("server", "user"), name="mcp_one_restriction_per_user"
            ),
        ),
    ]
