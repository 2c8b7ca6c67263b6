"""What a festival keeps, each in the way of another package of the admin."""

from __future__ import annotations

from django.db import models
from mptt.models import MPTTModel, TreeForeignKey
from parler.models import TranslatableModel, TranslatedFields
from solo.models import SingletonModel


class Ticket(models.Model):
    """Its admin is that of django-unfold."""

    class Status(models.TextChoices):
        NEW = "new"
        PAID = "paid"
        VOID = "void"

    holder = models.CharField(max_length=50)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.NEW)
    price = models.DecimalField(max_digits=8, decimal_places=2, default=0)
    seats = models.PositiveIntegerField(default=1)
    is_invited = models.BooleanField(default=False)
    valid_from = models.DateTimeField(null=True, blank=True)
    notes = models.TextField(blank=True)

    class Meta:
        ordering = ["holder"]

    def __str__(self):
        return self.holder


class Extra(models.Model):
    """A row in the form of a ticket."""

    ticket = models.ForeignKey(Ticket, models.CASCADE, related_name="extras")
    name = models.CharField(max_length=50)
    count = models.IntegerField(default=1)

    def __str__(self):
        return self.name


class Area(MPTTModel):
    """A tree of django-mptt."""

    name = models.CharField(max_length=50, unique=True)
    parent = TreeForeignKey("self", models.CASCADE, null=True, blank=True, related_name="children")

    class MPTTMeta:
        order_insertion_by = ["name"]

    def __str__(self):
        return self.name


class Stage(models.Model):
    """Its rank is set by django-admin-sortable2."""

    name = models.CharField(max_length=50)
    rank = models.PositiveIntegerField(default=0, editable=False, db_index=True)

    class Meta:
        ordering = ["rank"]

    def __str__(self):
        return self.name


class Concert(models.Model):
    """A row in the form of a stage, with a rank of its own."""

    stage = models.ForeignKey(Stage, models.CASCADE, related_name="concerts")
    band = models.CharField(max_length=50)
    rank = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["rank"]

    def __str__(self):
        return self.band


class Article(models.Model):
    """Its texts are in two languages, by django-modeltranslation."""

    title = models.CharField(max_length=50)
    body = models.TextField(blank=True)
    is_published = models.BooleanField(default=False)

    def __str__(self):
        return self.title


class Caption(models.Model):
    """A row in the form of an article, in two languages as well."""

    article = models.ForeignKey(Article, models.CASCADE, related_name="captions")
    text = models.CharField(max_length=50)

    def __str__(self):
        return self.text


class Act(TranslatableModel):
    """Its texts are in a table of their own, by django-parler."""

    fee = models.IntegerField(default=0)
    translations = TranslatedFields(
        title=models.CharField(max_length=50), blurb=models.TextField(blank=True)
    )

    def __str__(self):
        return self.safe_translation_getter("title", any_language=True) or ""


class Song(TranslatableModel):
    """A row in the form of an act, with its text in such a table as well."""

    act = models.ForeignKey(Act, models.CASCADE, related_name="songs")
    minutes = models.IntegerField(default=3)
    translations = TranslatedFields(name=models.CharField(max_length=50))

    def __str__(self):
        return self.safe_translation_getter("name", any_language=True) or ""


class HouseRules(SingletonModel):
    """The one row that the page of django-solo makes when somebody opens it."""

    text = models.CharField(max_length=50, default="Be kind.")
    is_open = models.BooleanField(default=True)


class Banner(models.Model):
    """The one row that a page which the site wrote itself makes when somebody opens it."""

    text = models.CharField(max_length=50, default="Welcome")
    color = models.CharField(max_length=10, default="red")
