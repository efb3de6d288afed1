"""What forms say of a value that they refuse, in place of Django's own words.

Django's are one English text for every console in the world, and some do not say what to do. A
field with something better to say has its own `error_messages`; this is for all others.
"""

from collections.abc import Mapping

from django import forms
from django.core import validators

CHOOSE_ONE = "Choose one: it cannot be empty."
NOT_A_CHOICE = "There is no such one, or it is not for you to choose. Choose another one."
FIELD_MESSAGES: Mapping[type[forms.Field], Mapping[str, str]] = {
    forms.Field: {"required": "Fill this in: it cannot be empty."},
    forms.IntegerField: {"invalid": "It must be a whole number, such as 4."},
    forms.DecimalField: {"invalid": "It must be a number, such as 2 or 0.5."},
    # A value that a list does not have is no word that somebody has read: it is not repeated.
    forms.ChoiceField: {"required": CHOOSE_ONE, "invalid_choice": NOT_A_CHOICE},
    forms.MultipleChoiceField: {
        "required": "Choose at least one.",
        "invalid_choice": (
            "There is no “%(value)s”, or it is not for you to choose. Take it away."
        ),
        "invalid_list": "It must be a list. Choose from what is there.",
    },
    forms.ModelChoiceField: {"required": CHOOSE_ONE, "invalid_choice": NOT_A_CHOICE},
}
"""The messages by the class of a field; classes below one have them, too."""
VALIDATOR_MESSAGES: Mapping[type[validators.BaseValidator], str] = {
    validators.MinValueValidator: "It must be at least %(limit_value)s.",
    validators.MaxValueValidator: "It must be at most %(limit_value)s.",
    validators.MaxLengthValidator: (
        "It has %(show_value)d characters, and at most %(limit_value)d are kept. Shorten it."
    ),
}
DIGITS_MESSAGES: Mapping[str, str] = {
    "invalid": "It must be a number, such as 2 or 0.5.",
    "max_digits": "Digits, those after the point included: at most %(max)s.",
    "max_decimal_places": "Digits after the point: at most %(max)s.",
    "max_whole_digits": "Digits before the point: at most %(max)s.",
}
EMAIL_MESSAGE = "Give an email address, such as ada@example.com."
NULL_MESSAGE = "It has a null character, which cannot be kept. Take it away."


def replace_messages() -> None:
    """Put the messages in place of Django's; fields that were made before keep theirs."""
    for field, messages in FIELD_MESSAGES.items():
        field.default_error_messages = {**vars(field)["default_error_messages"], **messages}
    for validator, message in VALIDATOR_MESSAGES.items():
        validator.message = message
    validators.DecimalValidator.messages = {
        **validators.DecimalValidator.messages,
        **DIGITS_MESSAGES,
    }
    # The one of the module is what email fields have.
    validators.validate_email.message = validators.EmailValidator.message = EMAIL_MESSAGE
    validators.ProhibitNullCharactersValidator.message = NULL_MESSAGE
