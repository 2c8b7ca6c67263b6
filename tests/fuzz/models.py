"""A shop in which each kind of thing can be hidden: rows, columns, models, members and files."""

from __future__ import annotations

from django.core import validators
from django.core.exceptions import ValidationError
from django.db import models

from tests.workshop.models import AddressField


class Hideable(models.Model):
    """Rows with `is_hidden` exist for those who may see them, and for nobody else."""

    is_hidden = models.BooleanField(default=False)

    class Meta:
        abstract = True


class Customer(Hideable):
    name = models.CharField(max_length=60)
    country = models.CharField(max_length=2, default="FR")
    logo = models.FileField(blank=True)
    rating = models.IntegerField(default=0)  # hidden

    class Meta:
        permissions = [("see_hidden", "Can see what is hidden")]

    def __str__(self):
        return f"{self.name} rated {self.rating}"


class Label(Hideable):
    name = models.CharField(max_length=60)
    parent = models.ForeignKey("self", models.SET_NULL, null=True, blank=True)

    def __str__(self):
        return self.name


class Order(Hideable):
    class Status(models.TextChoices):
        NEW = "new", "New"
        PAID = "paid", "Paid"

    number = models.CharField(max_length=60)
    customer = models.ForeignKey(Customer, models.CASCADE, related_name="orders")
    status = models.CharField(max_length=10, choices=Status, default=Status.NEW)
    total = models.DecimalField(max_digits=10, decimal_places=2, default=0)
    placed_at = models.DateTimeField(null=True, blank=True)
    details = models.JSONField(default=dict, blank=True)
    labels = models.ManyToManyField(Label, related_name="orders", blank=True)
    contract = models.FileField(blank=True)
    margin = models.IntegerField(default=0)  # hidden
    draft = models.FileField(blank=True)  # hidden

    class Meta:
        ordering = ["margin", "pk"]

    def __str__(self):
        return f"{self.number} with {self.margin}"


class Line(Hideable):
    """Cascades, and is a row in the form of its order. Its admin hides rows."""

    order = models.ForeignKey(Order, models.CASCADE, related_name="lines")
    sku = models.CharField(max_length=60)
    amount = models.IntegerField(default=1)
    cost = models.IntegerField(default=0)  # hidden

    def __str__(self):
        return f"{self.sku} at {self.cost}"


class Remark(models.Model):
    """Cascades."""

    order = models.ForeignKey(Order, models.CASCADE, related_name="%(class)ss")
    text = models.CharField(max_length=60)

    class Meta:
        abstract = True

    def __str__(self):
        return self.text


class Memo(Remark, Hideable):
    """A row in the form of its order. Only its exposure hides rows."""


class Payment(Hideable):
    """Keeps its order from being deleted."""

    order = models.ForeignKey(Order, models.PROTECT, related_name="payments")
    amount = models.IntegerField(default=1)

    def __str__(self):
        return f"payment of {self.amount}"


class Review(Remark, Hideable):
    """Judged row by row."""


class Vault(Remark):
    """In the admin, and exposed to nobody."""


class Parcel(models.Model):
    """Every kind of column that a form writes, and rules over several. Nothing of it is hidden."""

    title = models.CharField(
        max_length=30, validators=[validators.RegexValidator("#", inverse_match=True)]
    )
    code = models.SlugField(unique=True)
    note = models.TextField(blank=True)
    remark = models.CharField(max_length=10, null=True, blank=True)
    count = models.PositiveSmallIntegerField(validators=[validators.MinValueValidator(3)])
    big = models.BigIntegerField(null=True, blank=True)
    price = models.DecimalField(max_digits=8, decimal_places=2, default=0)
    weight = models.FloatField(
        null=True, blank=True, validators=[validators.MaxValueValidator(1e9)]
    )
    is_fragile = models.BooleanField(default=False)
    is_insured = models.BooleanField(null=True, blank=True)
    kind = models.CharField(max_length=4, choices=[("box", "Box"), ("bag", "Bag")], blank=True)
    size = models.IntegerField(choices=[(1, "Small"), (2, "Large")], null=True, blank=True)
    slot = models.IntegerField(choices=[(1, "One"), (2, "Two"), (3, "Three")], default=1)
    sent_on = models.DateField(null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    due_at = models.DateTimeField()
    opens = models.TimeField(null=True, blank=True)
    took = models.DurationField(null=True, blank=True)
    reference = models.UUIDField(null=True, blank=True)
    data = models.JSONField(default=dict, blank=True)
    extra = models.JSONField(null=True, blank=True)
    email = models.EmailField(blank=True)
    url = AddressField(blank=True)
    ip = models.GenericIPAddressField(null=True, blank=True)
    label = models.ForeignKey(Label, models.CASCADE, related_name="+")
    payer = models.ForeignKey(Customer, models.SET_NULL, related_name="+", null=True, blank=True)
    twin = models.OneToOneField("self", models.SET_NULL, null=True, blank=True)
    labels = models.ManyToManyField(Label, related_name="+", blank=True)
    owners = models.ManyToManyField(Customer, related_name="+")

    class Meta:
        unique_together = [("label", "slot")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(price__lte=5000) | models.Q(count__lte=50),
                name="fuzz_price_or_count",
            )
        ]

    def __str__(self):
        return self.title

    def clean(self):
        if self.title == self.note:
            raise ValidationError({"note": "Say more than the title."})
        if self.sent_on and self.sent_at and self.sent_on > self.sent_at.date():
            raise ValidationError("It was sent before.")


class Stamp(models.Model):
    """A row in the form of a parcel."""

    parcel = models.ForeignKey(Parcel, models.CASCADE, related_name="stamps")
    face = models.CharField(max_length=10)
    value = models.DecimalField(max_digits=5, decimal_places=2, default=1)
    printed_on = models.DateField(null=True, blank=True)
    is_used = models.BooleanField(default=True)

    class Meta:
        unique_together = [("parcel", "face")]

    def __str__(self):
        return self.face
