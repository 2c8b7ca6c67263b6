"""What writes and actions meet: every kind of field, relations of every kind, and rules."""

from __future__ import annotations

import uuid

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models


class AddressField(models.URLField):  # type: ignore[type-arg]
    def formfield(self, **kwargs):
        # Django 5.2 warns of what it will do.
        return super().formfield(**{"assume_scheme": "https", **kwargs})


class Author(models.Model):
    name = models.CharField(max_length=50)
    country = models.CharField(max_length=2, blank=True)
    is_retired = models.BooleanField(default=False)
    salary = models.IntegerField(default=0)  # hidden

    def __str__(self):
        return f"{self.name} earns {self.salary}"


class Genre(models.Model):
    """Found by a key that is not its primary one."""

    code = models.SlugField(unique=True)

    def __str__(self):
        return self.code


class Book(models.Model):
    STATES = [("open", [("new", "New"), ("lent", "Lent")]), ("closed", [("gone", "Gone")])]

    title = models.CharField(max_length=50)
    summary = models.TextField(blank=True, help_text="Two\n  <b>lines</b> at most")
    author = models.ForeignKey(
        Author, models.CASCADE, related_name="books", limit_choices_to={"is_retired": False}
    )
    editor = models.ForeignKey(
        Author, models.SET_NULL, null=True, blank=True, related_name="edited"
    )
    genre = models.ForeignKey(Genre, models.PROTECT, null=True, blank=True, to_field="code")
    keywords = models.ManyToManyField(Genre, blank=True, related_name="+")
    state = models.CharField(max_length=8, choices=STATES, default="new")
    shelf = models.IntegerField(choices=[(1, "Top"), (2, "Bottom")], null=True, blank=True)
    pages = models.PositiveSmallIntegerField(default=0)
    price = models.DecimalField(max_digits=8, decimal_places=2, null=True, blank=True)
    weight = models.FloatField(default=0.0)
    is_bound = models.BooleanField(default=False)
    is_rare = models.BooleanField(null=True, blank=True)
    printed_on = models.DateField(null=True, blank=True)
    bought_at = models.DateTimeField(null=True, blank=True)
    opens_at = models.TimeField(null=True, blank=True)
    lent_for = models.DurationField(null=True, blank=True)
    details = models.JSONField(default=dict, blank=True)
    reference = models.UUIDField(default=uuid.uuid4)
    contact = models.EmailField(blank=True)
    homepage = AddressField(blank=True)
    address = models.GenericIPAddressField(null=True, blank=True)
    code = models.CharField(max_length=10, blank=True, validators=[RegexValidator(r"\A[A-Z]+\Z")])
    stars = models.IntegerField(
        default=1, validators=[MinValueValidator(1), MaxValueValidator(lambda: 5)]
    )
    scan = models.FileField(blank=True)
    secret_note = models.CharField(max_length=50, blank=True)  # hidden

    def __str__(self):
        return f"{self.title} {self.secret_note}"


class Copy(models.Model):
    """A row in a form of its book."""

    book = models.ForeignKey(Book, models.CASCADE, related_name="copies")
    number = models.IntegerField()
    remark = models.CharField(max_length=20, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["book", "number"], name="one_copy")]


class Loan(models.Model):
    """Keeps its copy from being deleted."""

    copy = models.ForeignKey(Copy, models.PROTECT)
