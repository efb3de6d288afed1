"""The forms of a named view of the workload table."""

from typing import Any

from django import forms


class SavedViewForm(forms.Form):
    """A new view: `query` is the table's address when the form was opened."""

    name = forms.CharField(max_length=40, help_text="You alone see it, above the table.")
    is_default = forms.BooleanField(label="Begin with this view", required=False)
    query = forms.CharField(widget=forms.HiddenInput, required=False, max_length=8000)

    def clean_name(self) -> str:
        return " ".join(str(self.cleaned_data["name"]).split())


class SavedViewChangeForm(SavedViewForm):
    """A view's new name, and whether it shows from now on what the table shows."""

    replace = forms.BooleanField(
        label="Replace its columns, filters and order with those of the table now", required=False
    )

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.order_fields(["name", "is_default", "replace", "query"])
