from __future__ import annotations

from django.db import models


class Customer(models.Model):
    name = models.CharField(max_length=50)
    country = models.CharField(max_length=2)
    credit_rating = models.IntegerField(default=0)

    def __str__(self):
        return f"{self.name} ({self.credit_rating})"


class Order(models.Model):
    class Status(models.TextChoices):
        NEW = "new", "New"
        PAID = "paid", "Paid"

    number = models.CharField(max_length=20, unique=True)
    customer = models.ForeignKey(Customer, models.CASCADE, null=True, related_name="orders")
    status = models.CharField(max_length=10, choices=Status, default=Status.NEW, db_index=True)
    total = models.DecimalField(max_digits=10, decimal_places=2, default=0)
    placed_at = models.DateTimeField(null=True)
    margin = models.IntegerField(default=0)

    def __str__(self):
        return self.number


class Memo(models.Model):
    """No admin has it, so `has_perm` decides."""

    text = models.TextField()
    code = models.SlugField(unique=True)
    scan = models.FileField(blank=True)
    draft = models.FileField(blank=True)  # not exposed


class Ledger(models.Model):
    """In the admin, and exposed by nobody."""

    amount = models.IntegerField()
    pin = models.CharField(max_length=8, blank=True)  # looks secret
