from __future__ import annotations

from django.db import models


class Author(models.Model):
    name = models.CharField(max_length=80)

    def __str__(self) -> str:
        return self.name


class Book(models.Model):
    title = models.CharField(max_length=120)
    author = models.ForeignKey(Author, models.CASCADE)
    year = models.IntegerField(db_index=True)
    pages = models.IntegerField()
    price = models.DecimalField(max_digits=8, decimal_places=2)
    added = models.DateTimeField()

    def __str__(self) -> str:
        return self.title
