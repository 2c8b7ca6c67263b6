"""Rows within rows: a menu has courses, and each course has dishes."""

from __future__ import annotations

from django.db import models


class Menu(models.Model):
    name = models.CharField(max_length=50)

    def __str__(self):
        return self.name


class Course(models.Model):
    menu = models.ForeignKey(Menu, models.CASCADE, related_name="courses")
    name = models.CharField(max_length=50)
    position = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["position"]

    def __str__(self):
        return self.name


class Dish(models.Model):
    course = models.ForeignKey(Course, models.CASCADE, related_name="dishes")
    name = models.CharField(max_length=50)
    price = models.DecimalField(max_digits=6, decimal_places=2, default=0)

    def __str__(self):
        return self.name
