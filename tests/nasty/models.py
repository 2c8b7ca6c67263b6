"""A schema that collects what breaks naive guards of queries. Comments say what nobody exposes."""

from __future__ import annotations

from django.conf import settings
from django.contrib.contenttypes.fields import GenericForeignKey, GenericRelation
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.db.models.functions import Lower


class Tenant(models.Model):
    name = models.CharField(max_length=50)


class Region(models.Model):
    name = models.CharField(max_length=50)
    budget = models.IntegerField(default=0)  # hidden


class Person(models.Model):
    username = models.CharField(max_length=50)
    password = models.CharField(max_length=128)  # hidden
    salary = models.IntegerField(default=0)  # hidden
    manager = models.ForeignKey("self", models.SET_NULL, null=True, blank=True)

    class Meta:
        ordering = ("salary",)  # what order_by("owner") would follow

    def __str__(self):
        return f"{self.username} {self.password}"


class Customer(models.Model):
    tenant = models.ForeignKey(Tenant, models.CASCADE)
    name = models.CharField(max_length=50)
    country = models.CharField(max_length=2)
    credit_rating = models.IntegerField(default=0)  # hidden
    account_manager = models.ForeignKey(Person, models.SET_NULL, null=True)
    region = models.ForeignKey(Region, models.SET_NULL, null=True)


class Tag(models.Model):
    slug = models.SlugField()
    internal_note = models.CharField(max_length=50, blank=True)  # hidden
    parent = models.ForeignKey("self", models.SET_NULL, null=True)


class Note(models.Model):
    # Apps without migrations get their tables before those that have some.
    content_type = models.ForeignKey(ContentType, models.CASCADE, db_constraint=False)
    object_id = models.PositiveBigIntegerField()
    target = GenericForeignKey("content_type", "object_id")
    text = models.TextField()
    author = models.ForeignKey(Person, models.CASCADE, null=True)


class OrderQuerySet(models.QuerySet):  # type: ignore[type-arg]
    def filter(self, *args, **kwargs):
        """Rewrites lookups, as translation packages do: it must not run behind our back."""
        if "number" in kwargs:
            kwargs["api_token"] = kwargs.pop("number")
        return super().filter(*args, **kwargs)


class Money:
    """A value that no JSON encoder knows."""

    def __init__(self, cents):
        self.cents = cents

    def __str__(self):
        if self.cents < 0:
            raise ValueError
        return f"EUR {self.cents / 100:.2f}"


class MoneyField(models.IntegerField):  # type: ignore[type-arg]
    def from_db_value(self, value, expression, connection):
        return None if value is None else Money(value)


class WordField(models.Field):  # type: ignore[type-arg]
    """Of no class that anybody knows."""

    def db_type(self, connection):
        return "varchar(30)"

    def to_python(self, value):
        if value == "explode":
            raise RuntimeError
        return value


class Order(models.Model):
    STATUS = (("new", "New"), ("paid", "Paid"), ("void", "Void"))

    owner = models.ForeignKey(Person, models.CASCADE, related_name="orders")
    customer = models.ForeignKey(Customer, models.CASCADE, null=True, related_name="orders")
    number = models.CharField(max_length=20, db_index=True, help_text="As printed")
    status = models.CharField(max_length=10, choices=STATUS, default="new")
    total = models.DecimalField(max_digits=10, decimal_places=2, null=True)
    quantity = models.IntegerField(default=0)
    weight = models.FloatField(null=True)
    gift = models.BooleanField(null=True)
    placed_at = models.DateTimeField(null=True)
    due = models.DateField(null=True)
    at = models.TimeField(null=True)
    took = models.DurationField(null=True)
    ref = models.UUIDField(null=True)
    ip = models.GenericIPAddressField(null=True)
    payload = models.JSONField(default=dict, blank=True)
    blob = models.BinaryField(null=True)
    attachment = models.FileField(blank=True)
    remark = models.TextField(blank=True)
    price = MoneyField(null=True)
    word = WordField(null=True)
    big = models.BigIntegerField(null=True)
    api_token = models.CharField(max_length=64, blank=True)  # hidden
    margin = models.DecimalField(max_digits=10, decimal_places=2, null=True)  # hidden
    double = models.GeneratedField(
        expression=models.F("quantity") * 2, output_field=models.IntegerField(), db_persist=True
    )
    tags = models.ManyToManyField(Tag, related_name="+", blank=True)
    watchers = models.ManyToManyField(Person, through="Watch", related_name="watched")
    notes = GenericRelation(Note)

    objects = OrderQuerySet.as_manager()

    class Meta:
        ordering = (Lower("api_token"), "-margin")


class Watch(models.Model):
    order = models.ForeignKey(Order, models.CASCADE)
    person = models.ForeignKey(Person, models.CASCADE)
    secret_reason = models.CharField(max_length=50, blank=True)  # hidden


class Line(models.Model):
    order = models.ForeignKey(Order, models.CASCADE, related_name="lines")
    sku = models.CharField(max_length=20)
    amount = models.DecimalField(max_digits=10, decimal_places=2)
    cost = models.DecimalField(max_digits=10, decimal_places=2, default=0)  # hidden


class RushOrder(Order):
    """Inherits over a parent_ptr."""

    courier = models.CharField(max_length=20)


class PaidOrder(Order):
    class Meta:
        proxy = True


class Seat(models.Model):
    pk = models.CompositePrimaryKey("hall", "number")
    hall = models.IntegerField()
    number = models.IntegerField()
    label = models.CharField(max_length=20, null=True)
    price = models.DecimalField(max_digits=8, decimal_places=2, null=True)
    pin = models.CharField(max_length=8, blank=True)  # hidden


class Tricky(models.Model):
    """Fields that are called like lookups, and a key that is a text."""

    key = models.CharField(max_length=300, primary_key=True)
    year = models.IntegerField(default=0)
    contains = models.CharField(max_length=20)
    order = models.ForeignKey(Order, models.CASCADE, related_name="tricky")


class Odd(models.Model):
    """A key of a class that nobody knows."""

    word = WordField(primary_key=True)


class Application(models.Model):
    """As packages for OAuth have it."""

    # Apps without migrations get their tables before those that have some.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, db_constraint=False, related_name="applications"
    )
    name = models.CharField(max_length=50)
    client_id = models.CharField(max_length=64)
    client_secret = models.CharField(max_length=128)  # hidden
    options = models.JSONField(default=dict)  # hidden, and so are its keys
    logo = models.FileField(blank=True)
    manifest = models.FileField(blank=True)  # hidden


class AccessToken(models.Model):
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, db_constraint=False, related_name="tokens"
    )
    application = models.ForeignKey(Application, models.CASCADE, related_name="tokens")
    token = models.CharField(max_length=64)  # hidden
    scope = models.TextField(blank=True)
    expires = models.DateTimeField(null=True)
