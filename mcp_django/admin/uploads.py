"""The page on which people put files that their assistants are to write into records."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.formats import localize
from django.utils.html import format_html
from django.utils.http import content_disposition_header

from mcp_django.admin.pages import AnyModelAdmin, AnyModelForm, found_object, missing, url_of
from mcp_django.admin.tokens import is_active_staff
from mcp_django.conf import get_config
from mcp_django.exposure.forms.schemas import InvalidValue
from mcp_django.exposure.forms.values import named_file
from mcp_django.models import Upload
from mcp_django.models.uploads import MOST


class AssistantFileForm(AnyModelForm):
    file = forms.FileField(
        help_text=(
            "Your assistant can write it into a record. It is kept for a day, and the newest "
            f"{MOST} of your files. Nobody else sees it."
        )
    )

    class Meta:
        model = Upload
        fields = ()

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        most = get_config().max_upload
        if file.size > most:
            raise forms.ValidationError(
                f"This file has {filesizeformat(file.size)}. At most {filesizeformat(most)} fit."
            )
        try:
            named_file(file.name, b"")
        except InvalidValue as error:
            raise forms.ValidationError(str(error)) from None
        return file


class UploadAdmin(AnyModelAdmin):
    """Active staff see, add and delete files of their own, and nobody sees those of others."""

    form = AssistantFileForm
    list_display = ("filename", "address", "download", "bytes", "created_at", "expires")
    list_display_links = ("filename",)
    fields = readonly_fields = list_display

    @admin.display(description="what to tell your assistant", ordering="reference")
    def address(self, upload: Upload) -> str:
        return upload.address

    @admin.display(description="file")
    def download(self, upload: Upload) -> str:
        return format_html('<a href="{}">Download</a>', url_of(self, "download", upload.pk))

    @admin.display(description="size", ordering="size")
    def bytes(self, upload: Upload) -> str:
        return filesizeformat(upload.size)

    @admin.display(description="expires", ordering="created_at")
    def expires(self, upload: Upload) -> str:
        at = upload.expires_at()
        return localize(timezone.localtime(at) if timezone.is_aware(at) else at)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.download_view)
        name = "mcp_django_upload_download"
        return [path("<path:object_id>/download/", view, name=name), *super().get_urls()]

    def download_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The file, for its person alone, and never as a page that a browser would run. Raises
        Http404 for one that has expired, too.
        """
        upload = found_object(self, request, object_id)
        if upload.expires_at() <= timezone.now():
            missing(self)
        response = HttpResponse(upload.data, content_type="application/octet-stream")
        disposition = content_disposition_header(as_attachment=True, filename=upload.filename)
        response["Content-Disposition"] = disposition or "attachment"
        response["X-Content-Type-Options"] = "nosniff"
        return response

    def get_queryset(self, request: HttpRequest) -> QuerySet[Upload]:
        return super().get_queryset(request).filter(user=request.user.pk).defer("data")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_active_staff(request)

    def has_view_permission(self, request: HttpRequest, obj: Upload | None = None) -> bool:
        return is_active_staff(request) and (obj is None or obj.user_id == request.user.pk)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_active_staff(request)

    def has_change_permission(self, request: HttpRequest, obj: Upload | None = None) -> bool:
        # Another content has another address, or what a person agreed to could be replaced.
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Upload | None = None) -> bool:
        return self.has_view_permission(request, obj)

    def get_fields(self, request: HttpRequest, obj: Upload | None = None) -> Any:
        return ("file",) if obj is None else self.fields

    def save_model(
        self,
        request: HttpRequest,
        obj: Upload,
        form: Any,
        change: bool,  # noqa: FBT001  Django's signature
    ) -> None:
        file = form.cleaned_data["file"]
        obj.user = request.user  # type: ignore[assignment]  # nobody anonymous comes here
        obj.filename, obj.data, obj.size = file.name, file.read(), file.size
        super().save_model(request, obj, form, change)
        Upload.drop_oldest(request.user)
