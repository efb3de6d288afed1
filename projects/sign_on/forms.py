"""Forms of the sign-in and of the second factor."""

from typing import Any

from django import forms

from projects.models import User

_CODE = {
    "autocomplete": "one-time-code",
    "inputmode": "numeric",
    "autocapitalize": "none",
    "spellcheck": "false",
}


class CodeForm(forms.Form):
    """The second factor at the sign-in; a recovery code goes into the same field."""

    code = forms.CharField(
        max_length=32,
        widget=forms.TextInput(_CODE | {"autofocus": True}),
        help_text=(
            "The six digits that your authenticator app shows now, or one of your recovery codes."
        ),
    )


class PresentPasswordForm(forms.Form):
    """The password once more, which proves that it is not somebody at an open session."""

    present = forms.CharField(
        label="Present password",
        max_length=4096,
        strip=False,
        widget=forms.PasswordInput({"autocomplete": "current-password"}),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        # The dialog opens above a page that may have a field of the same name.
        super().__init__(*args, **kwargs | {"auto_id": "proof_%s"})
        self.user = user

    def clean_present(self) -> str:
        present: str = self.cleaned_data["present"]
        if not self.user.check_password(present):
            raise forms.ValidationError("This is not your present password.")
        return present


class SetUpForm(PresentPasswordForm):
    """The set-up of a second factor; the first code shows that the app and Muster agree."""

    code = forms.CharField(
        max_length=32,
        widget=forms.TextInput(_CODE),
        help_text="The six digits that the app shows once it knows the secret.",
    )
    field_order = ("code", "present")
