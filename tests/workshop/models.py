"""What forms of the admin have to survive: every kind of field, and rules over several."""

from __future__ import annotations

import uuid

from django.contrib.contenttypes.fields import GenericForeignKey
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone


class AddressField(models.URLField):  # type: ignore[type-arg]
    def formfield(self, **kwargs):
        # Django 5.2 warns of what it will do.
        return super().formfield(**{"assume_scheme": "https", **kwargs})


class Tag(models.Model):
    name = models.CharField(max_length=30)
    is_active = models.BooleanField(default=True)

    def __str__(self):
        return f"str of {self.name}"


STATES = [
    ("open", [("new", "New"), ("paid", "Paid")]),
    ("closed", [("done", "Done"), ("void", "Void")]),
]


class Thing(models.Model):
    title = models.CharField(max_length=50)
    note = models.TextField(blank=True)
    slug = models.SlugField(blank=True)
    count = models.IntegerField(default=0)
    ratio = models.FloatField(default=0.0)
    price = models.DecimalField(max_digits=12, decimal_places=3, default=0)
    local_price = models.DecimalField(max_digits=12, decimal_places=3, default=0)
    is_on = models.BooleanField(default=False)
    is_odd = models.BooleanField(null=True, blank=True)
    day = models.DateField(null=True, blank=True)
    day_in_parts = models.DateField(null=True, blank=True)
    at = models.DateTimeField(null=True, blank=True)
    at_in_one = models.DateTimeField(null=True, blank=True)
    made_at = models.DateTimeField(default=timezone.now)
    clock = models.TimeField(null=True, blank=True)
    span = models.DurationField(null=True, blank=True)
    data = models.JSONField(default=dict, blank=True)
    data_or_null = models.JSONField(null=True, blank=True)
    reference = models.UUIDField(default=uuid.uuid4)
    mail = models.EmailField(blank=True)
    link = AddressField(blank=True)
    address = models.GenericIPAddressField(null=True, blank=True)
    state = models.CharField(max_length=8, choices=STATES, default="new")
    radio = models.CharField(max_length=8, choices=[("a", "A"), ("b", "B")], blank=True)
    rank = models.IntegerField(choices=[(1, "One"), (2, "Two")], default=1)
    tag = models.ForeignKey(Tag, models.CASCADE, related_name="+", null=True, blank=True)
    tag_active = models.ForeignKey(
        Tag,
        models.CASCADE,
        related_name="+",
        null=True,
        blank=True,
        limit_choices_to={"is_active": True},
    )
    tag_raw = models.ForeignKey(Tag, models.CASCADE, related_name="+", null=True, blank=True)
    tag_searched = models.ForeignKey(Tag, models.CASCADE, related_name="+", null=True, blank=True)
    tags = models.ManyToManyField(Tag, related_name="+", blank=True)
    tags_raw = models.ManyToManyField(Tag, related_name="+", blank=True)
    tags_searched = models.ManyToManyField(Tag, related_name="+", blank=True)
    tags_aside = models.ManyToManyField(Tag, related_name="+", blank=True)
    tags_boxes = models.ManyToManyField(Tag, related_name="+", blank=True)
    tags_active = models.ManyToManyField(
        Tag, related_name="+", blank=True, limit_choices_to={"is_active": True}
    )
    paper = models.FileField(blank=True, upload_to="papers")
    picture = models.ImageField(blank=True, upload_to="pictures")
    pair = models.CharField(max_length=50, blank=True)  # a widget with two inputs
    locked = models.CharField(max_length=10, default="ro", blank=True)  # read-only in the admin
    unseen = models.CharField(max_length=10, default="h", editable=False)
    secret_code = models.CharField(max_length=20, blank=True)
    low = models.IntegerField(default=0)
    high = models.IntegerField(default=9)
    group = models.CharField(max_length=10, blank=True)
    number = models.IntegerField(default=0)
    newlines = models.TextField(blank=True)
    modified_at = models.DateTimeField(auto_now=True)

    class Meta:
        unique_together = [("group", "number")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(low__lte=models.F("high")), name="workshop_low_below_high"
            )
        ]

    def __str__(self):
        return f"str of {self.title}"

    def clean(self):
        if None not in (self.low, self.high) and self.high - self.low > 100:
            raise ValidationError({"high": "The range is too wide."})


class Part(models.Model):
    # Its model as a text, which most sites write.
    thing = models.ForeignKey("Thing", models.CASCADE, related_name="parts")
    name = models.CharField(max_length=20)
    quantity = models.IntegerField(default=1)
    at = models.DateTimeField(null=True, blank=True)
    pin = models.CharField(max_length=8, blank=True)  # looks secret

    def __str__(self):
        return f"str of {self.name}"


class Keeper(models.Model):
    thing = models.ForeignKey(Thing, models.PROTECT, related_name="keepers")


class Scrap(models.Model):
    """Exposed to nobody."""

    thing = models.ForeignKey("workshop.Thing", models.CASCADE, related_name="scraps")
    text = models.CharField(max_length=20)


class Remark(models.Model):
    """About anything. The form of no record has these unless a test says so."""

    # Apps without migrations get their tables before those that have some.
    content_type = models.ForeignKey(ContentType, models.CASCADE, db_constraint=False)
    object_id = models.PositiveBigIntegerField()
    target = GenericForeignKey("content_type", "object_id")
    text = models.CharField(max_length=20)
    is_hidden = models.BooleanField(default=False)


class Comment(Remark):
    """The same with a page of its own."""

    class Meta:
        proxy = True


class Job(models.Model):
    """Rows of several tenants."""

    tenant = models.CharField(max_length=10, default="a")
    name = models.CharField(max_length=20)
    # As after a row was deleted past Django: the key may lead nowhere.
    tag = models.ForeignKey(
        Tag, models.CASCADE, related_name="jobs", null=True, blank=True, db_constraint=False
    )

    def __str__(self):
        return self.name


class Team(models.Model):
    """Whose rows between have more than two keys."""

    name = models.CharField(max_length=20)
    tags = models.ManyToManyField(Tag, through="Membership", blank=True)


class Membership(models.Model):
    team = models.ForeignKey(Team, models.CASCADE)
    tag = models.ForeignKey(Tag, models.CASCADE)
    role = models.CharField(max_length=20, default="member")


class Rack(models.Model):
    """Whose key a person writes."""

    code = models.CharField(max_length=20, primary_key=True)
    note = models.CharField(max_length=20, blank=True)
