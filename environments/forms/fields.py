"""Form fields of assets and workloads, and repeating rows."""

from decimal import Decimal
from typing import Any

from django import forms

from console.typed_forms import RowForm

HUNDRED = Decimal(100)


def text_field(label: str, help_text: str = "", **more: Any) -> forms.CharField:
    """Build a one-line text field that may be empty as far as the form goes."""
    return forms.CharField(label=label, help_text=help_text, required=False, **more)


def required_text_field(label: str, help_text: str = "", **more: Any) -> forms.CharField:
    """Build a one-line text field that must not be empty."""
    return forms.CharField(
        label=label,
        help_text=help_text,
        error_messages={"required": f"{label} must be given."},
        **more,
    )


def lines_field(label: str, help_text: str = "", **more: Any) -> forms.CharField:
    """Build a text field with several lines, which a one-line field would join."""
    return text_field(
        label, help_text, widget=forms.Textarea(attrs={"rows": 1, "spellcheck": "false"}), **more
    )


def whole_number_input() -> forms.NumberInput:
    """Build an input for whole numbers from 0."""
    return forms.NumberInput(attrs={"min": 0})


def percent_field(places: int) -> forms.DecimalField:
    """Build a field for a part of a device, in percent, with so many decimal places."""
    wrong = "The part of each device must be above 0 and at most 100 %%."
    return forms.DecimalField(
        label="Part of each device, in %",
        min_value=Decimal(1).scaleb(-places),
        max_value=HUNDRED,
        decimal_places=places,
        required=False,
        help_text="From above 0 to 100. 10 is a tenth of a device; others may use the rest.",
        error_messages={"min_value": wrong, "max_value": wrong},
    )


class VariableRow(RowForm):
    """A name and a value."""

    content_fields = ("name", "value")
    name = text_field("Name")
    value = lines_field("Value", strip=False)
