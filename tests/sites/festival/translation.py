from __future__ import annotations

from modeltranslation.translator import TranslationOptions, register

from tests.sites.festival.models import Article, Caption


@register(Article)
class ArticleTranslation(TranslationOptions):
    fields = ("title", "body")
    required_languages = ("en",)


@register(Caption)
class CaptionTranslation(TranslationOptions):
    fields = ("text",)
