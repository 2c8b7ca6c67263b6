from __future__ import annotations

# docs: start admin
from django.contrib import admin

from shop.models import Customer, Order


@admin.register(Customer)
class CustomerAdmin(admin.ModelAdmin):
    list_display = ["name", "country"]


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    list_display = ["number", "customer", "status", "total"]


# docs: end admin


from shop.models import Product


# docs: start product_admin
@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):
    list_display = ["sku", "name", "price"]
    list_filter = ["discontinued"]
    search_fields = ["name"]

    mcp_expose = True
    mcp_exclude_fields = ["purchase_price"]

    def get_queryset(self, request):
        products = super().get_queryset(request)
        return products if request.user.is_superuser else products.filter(discontinued=False)


# docs: end product_admin
