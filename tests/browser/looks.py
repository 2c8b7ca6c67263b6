"""The looks that pages are tested in: the stock admin's, and one of a skin."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

#: Django's own: links of breadcrumbs by their colour alone, two inputs under one label.
DJANGO = {
    "link-in-text-block": ".breadcrumbs a",
    "label": ".datetime input",
    # Its name is an icon, and its help text the only words.
    "label-title-only": "#searchbar",
}
#: Its links are Bootstrap's blue on a grey that is a little too dark for them.
JAZZMIN = {
    "aria-input-field-name": ".select2-selection",
    "color-contrast": "a, .breadcrumb *",
    "label": ".datetime input, #searchbar",
    "link-name": "[data-lte-toggle], [href='?o=']",
    "listitem": ".app-header li, #jazzy-navigation li",
}


@dataclass(frozen=True, kw_only=True)
class Look:
    name: str
    #: Options of Playwright's `new_context`.
    context: dict[str, Any] = field(default_factory=dict)
    #: The app whose templates take the place of the admin's.
    skin: str = ""
    #: What axe-core finds in markup that is not ours to mend: rules, and what they speak of.
    known: dict[str, str] = field(default_factory=lambda: DJANGO)

    def templates(self, templates: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The setting TEMPLATES. A skin's are found first, as if it stood before the admin."""
        templates = deepcopy(templates)
        if self.skin:
            (folder,) = find_spec(self.skin).submodule_search_locations
            templates[0]["DIRS"] = [Path(folder) / "templates"]
        return templates


LIGHT = Look(name="light", context={"color_scheme": "light"})
DARK = Look(name="dark", context={"color_scheme": "dark"})
NARROW = Look(name="narrow", context={"viewport": {"width": 390, "height": 844}})
SKIN = Look(name="jazzmin", skin="jazzmin", known=JAZZMIN)

every_look = pytest.mark.parametrize(
    "look",
    [LIGHT, DARK, NARROW, pytest.param(SKIN, marks=pytest.mark.needs("jazzmin"))],
    indirect=True,
    ids=lambda look: look.name,
)
