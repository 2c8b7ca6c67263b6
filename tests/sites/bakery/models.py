"""Fields and models of other people's packages, and columns that sites get wrong."""

from __future__ import annotations

from django.db import models
from django_countries.fields import CountryField
from djmoney.models.fields import MoneyField
from polymorphic.models import PolymorphicModel
from taggit.managers import TaggableManager
from treebeard.mp_tree import MP_Node
from treebeard.ns_tree import NS_Node
from wagtail.blocks import CharBlock, ListBlock
from wagtail.fields import StreamField


class NullCharField(models.CharField):
    """As django-oscar has it: nothing is NULL in the table and an empty text in Python."""

    def from_db_value(self, value, expression, connection):
        return "" if value is None else value

    def get_prep_value(self, value):
        return super().get_prep_value(value) or None


class Page(models.Model):
    """Its content is a list of blocks of wagtail."""

    title = models.CharField(max_length=50)
    body = StreamField([("heading", CharBlock()), ("list", ListBlock(CharBlock()))], blank=True)

    def __str__(self):
        return self.title


class Tour(models.Model):
    """Of django-countries and django-money."""

    name = models.CharField(max_length=50)
    start = CountryField(blank=True)
    stops = CountryField(multiple=True, blank=True)
    price = MoneyField(max_digits=10, decimal_places=2, default_currency="EUR", null=True)

    def __str__(self):
        return self.name


class Fee(models.Model):
    """Money in a model that only an admin has."""

    name = models.CharField(max_length=50)
    amount = MoneyField(max_digits=10, decimal_places=2, default_currency="EUR")
    margin = MoneyField(max_digits=10, decimal_places=2, default_currency="EUR", default=0)

    def __str__(self):
        return self.name


class Cake(PolymorphicModel):
    """The parent of django-polymorphic: what is made is always one of its children."""

    name = models.CharField(max_length=50)

    def __str__(self):
        return self.name


class Pie(Cake):
    filling = models.CharField(max_length=50)


class Tart(Cake):
    diameter = models.IntegerField(default=20)


class Category(MP_Node):
    """A tree of django-treebeard."""

    name = models.CharField(max_length=50)

    def __str__(self):
        return self.name


class Region(NS_Node):
    name = models.CharField(max_length=50)

    def __str__(self):
        return self.name


class Product(models.Model):
    title = models.CharField(max_length=50)
    upc = NullCharField(max_length=20, unique=True, null=True, blank=True)
    note = models.CharField(max_length=20, unique=True, null=True, blank=True)

    def __str__(self):
        return self.title


class Notice(models.Model):
    """Its form in the admin has a widget that leads to a page which the site does not have, and
    tags of django-taggit.
    """

    title = models.CharField(max_length=50)
    text = models.CharField(max_length=50, blank=True)
    tags = TaggableManager(blank=True)

    def __str__(self):
        return self.title
