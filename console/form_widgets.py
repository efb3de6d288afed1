"""Controls of forms that Django does not have."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString


class SuggestingInput(forms.TextInput):
    """A typed value with some suggestions."""

    def __init__(self, suggestions: Sequence[str], **attributes: str) -> None:
        super().__init__({"autocomplete": "off", "spellcheck": "false"} | attributes)
        self.suggestions = suggestions

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        key = f"{name}-suggestions"
        control = super().render(name, value, {**(attrs or {}), "list": key}, renderer)
        options = format_html_join(
            "", '<option value="{}"></option>', [(each,) for each in self.suggestions]
        )
        return format_html('{}<datalist id="{}">{}</datalist>', control, key, options)
