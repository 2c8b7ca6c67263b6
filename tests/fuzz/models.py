"""A shop in which each kind of thing can be hidden: rows, columns, models, members and files."""

from __future__ import annotations

from django.db import models


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


class Memo(Hideable):
    """Cascades, and is a row in the form of its order. Only its exposure hides rows."""

    order = models.ForeignKey(Order, models.CASCADE, related_name="memos")
    text = models.CharField(max_length=60)

    def __str__(self):
        return self.text


class Payment(Hideable):
    """Keeps its order from being deleted."""

    order = models.ForeignKey(Order, models.PROTECT, related_name="payments")
    amount = models.IntegerField(default=1)

    def __str__(self):
        return f"payment of {self.amount}"


class Review(Hideable):
    """Judged row by row."""

    order = models.ForeignKey(Order, models.CASCADE, related_name="reviews")
    text = models.CharField(max_length=60)

    def __str__(self):
        return self.text


class Vault(models.Model):
    """In the admin, and exposed to nobody."""

    order = models.ForeignKey(Order, models.CASCADE, related_name="vaults")
    text = models.CharField(max_length=60)

    def __str__(self):
        return self.text
