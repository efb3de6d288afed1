"""What forms say of a value that they refuse."""

from collections.abc import Iterator
from decimal import Decimal
from importlib import import_module
from typing import Any

import pytest
from django import forms
from django.conf import settings
from django.utils.functional import Promise

from projects.models import Department

CHOICES = [("a", "A"), ("b", "B")]
PRODUCT = ("console", "projects", "clusters", "environments", "workloads")
STOCK = ("Ensure", "This field", "Enter a", "Select a valid", "Null characters")
"""How Django's own words begin."""


class Everything(forms.Form):
    """A field of each class that Muster has, without messages of its own."""

    text = forms.CharField(max_length=4)
    count = forms.IntegerField(min_value=2, max_value=9)
    amount = forms.DecimalField(
        min_value=Decimal(0), max_value=Decimal(50), max_digits=4, decimal_places=1
    )
    one = forms.ChoiceField(choices=CHOICES)
    several = forms.MultipleChoiceField(choices=CHOICES)
    email = forms.EmailField()
    row = forms.ModelChoiceField(Department.objects.none())


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("text", "", "Fill this in: it cannot be empty."),
        ("text", "12345", "It has 5 characters, and at most 4 are kept. Shorten it."),
        ("text", "a\0b", "It has a null character, which cannot be kept. Take it away."),
        ("count", "", "Fill this in: it cannot be empty."),
        ("count", "many", "It must be a whole number, such as 4."),
        ("count", "1", "It must be at least 2."),
        ("count", "9" * 400, "It must be at most 9."),
        ("amount", "much", "It must be a number, such as 2 or 0.5."),
        ("amount", "NaN", "It must be a number, such as 2 or 0.5."),
        ("amount", "-1", "It must be at least 0."),
        ("amount", "51", "It must be at most 50."),
        ("amount", "1.25", "Digits after the point: at most 1."),
        ("one", "", "Choose one: it cannot be empty."),
        ("one", "c", "There is no such one, or it is not for you to choose."),
        ("several", "", "Choose at least one."),
        ("several", "c", "There is no “c”, or it is not for you to choose."),
        ("email", "nobody", "Give an email address, such as ada@example.com."),
        ("row", "", "Choose one: it cannot be empty."),
        ("row", "7", "There is no such one, or it is not for you to choose."),
    ],
)
def test_a_field_says_what_is_wrong_in_the_words_of_muster(
    field: str, value: str, words: str
) -> None:
    data: dict[str, Any] = {field: [value] if field == "several" and value else value}
    errors = " ".join(map(str, Everything(data).errors[field]))
    assert words in errors
    assert not any(stock in errors for stock in STOCK)


def list_subclasses(form: type[forms.Form]) -> Iterator[type[forms.Form]]:
    for each in form.__subclasses__():
        yield each
        yield from list_subclasses(each)


def list_stock_messages(field: forms.Field) -> Iterator[str]:
    """Yield what Django itself would say of a field's value; its words alone are translated."""
    messages = list(field.error_messages.values())
    for validator in field.validators:
        # The field's own message goes before that of a validator.
        if getattr(validator, "code", None) not in field.error_messages:
            messages.append(getattr(validator, "message", ""))
        messages += getattr(validator, "messages", {}).values()
    yield from (str(each) for each in messages if isinstance(each, Promise))


def test_no_form_keeps_the_words_of_django() -> None:
    import_module(settings.ROOT_URLCONF)
    product_forms = {
        each for each in list_subclasses(forms.Form) if each.__module__.startswith(PRODUCT)
    }
    assert len(product_forms) > 50
    stock = [
        f"{form.__qualname__}.{name}: {message}"
        for form in product_forms
        for name, field in form.base_fields.items()
        for message in list_stock_messages(field)
    ]
    assert stock == []
