from __future__ import annotations

# docs: start models
from django.db import models


class Customer(models.Model):
    name = models.CharField(max_length=100)
    country = models.CharField(max_length=2)
    credit_limit = models.DecimalField(max_digits=10, decimal_places=2, default=0)

    def __str__(self):
        return self.name


class Order(models.Model):
    class Status(models.TextChoices):
        NEW = "new", "New"
        PAID = "paid", "Paid"
        SHIPPED = "shipped", "Shipped"

    number = models.CharField(max_length=20, unique=True)
    customer = models.ForeignKey(Customer, models.PROTECT, related_name="orders")
    status = models.CharField(max_length=10, choices=Status, default=Status.NEW)
    total = models.DecimalField(max_digits=10, decimal_places=2)
    margin = models.DecimalField(max_digits=10, decimal_places=2, default=0)
    placed_at = models.DateTimeField()

    def __str__(self):
        return self.number


# docs: end models


class Product(models.Model):
    sku = models.CharField(max_length=20, unique=True)
    name = models.CharField(max_length=100)
    price = models.DecimalField(max_digits=10, decimal_places=2)
    purchase_price = models.DecimalField(max_digits=10, decimal_places=2, default=0)
    discontinued = models.BooleanField(default=False)

    def __str__(self):
        return self.name


class Ticket(models.Model):
    customer_login = models.ForeignKey("auth.User", models.CASCADE)
    subject = models.CharField(max_length=100)
    is_open = models.BooleanField(default=True)

    def __str__(self):
        return self.subject
