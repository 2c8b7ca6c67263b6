"""A REST API over the models of the shop, as a site writes it."""

from __future__ import annotations

from django.http import Http404, StreamingHttpResponse
from django.utils.translation import gettext_lazy
from rest_framework import filters, generics, permissions, serializers, viewsets
from rest_framework.decorators import action, api_view, permission_classes
from rest_framework.exceptions import ParseError
from rest_framework.pagination import PageNumberPagination
from rest_framework.response import Response
from rest_framework.routers import DefaultRouter

from tests.shop.models import Customer, Order


class OrderSerializer(serializers.ModelSerializer):
    class Meta:
        model = Order
        fields = ["id", "number", "customer", "status", "total"]
        read_only_fields = ["status"]

    def validate_total(self, value):
        if value > 1000:
            raise serializers.ValidationError("Too dear.")
        return value


class RefundSerializer(serializers.Serializer):
    # A word that Django translates.
    reason = serializers.CharField(max_length=20, help_text=gettext_lazy("Password"))
    receipt = serializers.FileField(required=False)


class NobodyClosed(permissions.BasePermission):
    message = "This order is closed."

    def has_object_permission(self, request, view, obj):
        return obj.number != "closed"


class Pages(PageNumberPagination):
    page_size = 2


class OrderViewSet(viewsets.ModelViewSet):
    queryset = Order.objects.order_by("number")
    serializer_class = OrderSerializer
    permission_classes = [permissions.DjangoModelPermissions, NobodyClosed]
    pagination_class = Pages
    filter_backends = [filters.SearchFilter, filters.OrderingFilter]
    search_fields = ["number"]

    def get_queryset(self):
        queryset = super().get_queryset()
        user = self.request.user
        return queryset if user.is_superuser else queryset.exclude(number__startswith="secret")

    def perform_create(self, serializer):
        order = serializer.save()
        order.margin = self.request.user.pk
        order.save()

    @action(detail=True, methods=["post"], serializer_class=RefundSerializer)
    def refund(self, request, pk=None):
        """Pay an order back."""
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        order = self.get_object()
        Order.objects.filter(pk=order.pk).update(status=Order.Status.NEW)
        return Response({"number": order.number, **serializer.validated_data})

    @action(detail=False)
    def newest(self, request):
        """The number of the newest order."""
        return Response(Order.objects.latest("pk").number)


class CustomerList(generics.ListCreateAPIView):
    queryset = Customer.objects.order_by("pk")
    serializer_class = type(
        "CustomerSerializer",
        (serializers.ModelSerializer,),
        {"Meta": type("Meta", (), {"model": Customer, "fields": ["name", "country"]})},
    )
    permission_classes = [permissions.IsAdminUser]


@api_view(["POST"])
@permission_classes([permissions.IsAuthenticated])
def half_done(request):
    """Write, and fail."""
    Customer.objects.create(name="half", country="DE")
    raise ParseError("Not like this.")


@api_view(["GET"])
@permission_classes([permissions.IsAuthenticated])
def echo_path(request, word):
    """Say where this is."""
    if word == "nowhere":
        raise Http404
    return Response(
        {
            "path": request.build_absolute_uri(),
            "user": request.user.get_username(),
            "version": request.version,
        }
    )


@api_view(["GET"])
def stream(request):
    """Stream."""
    return StreamingHttpResponse(iter([b"x"]))


router = DefaultRouter()
router.register("orders", OrderViewSet)
