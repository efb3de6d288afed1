"""Forms about the user's own account, users, project roles and service accounts."""

from typing import Any

from django import forms
from django.contrib.auth import password_validation
from django.core.validators import RegexValidator

from projects.actions import LIFETIMES
from projects.models import CustomRole, User
from projects.permissions import L2, ROLES

USER_NAME = RegexValidator(
    r"^[A-Za-z0-9][A-Za-z0-9@.+_-]*$",
    "Use letters, digits and @ . + - _, and start with a letter or a digit.",
)


class SignInForm(forms.Form):
    """A user name and a password; the view checks whether they match."""

    username = forms.CharField(
        label="User name",
        max_length=150,
        widget=forms.TextInput(
            {"autocomplete": "username", "autocapitalize": "none", "autofocus": True}
        ),
    )
    password = forms.CharField(
        max_length=4096,
        strip=False,
        widget=forms.PasswordInput({"autocomplete": "current-password"}),
    )


class ProgramCodeForm(forms.Form):
    """The code that a program shows which asks to be signed in."""

    code = forms.CharField(
        label="The code that the program shows",
        max_length=20,
        widget=forms.TextInput({"autocomplete": "off", "autocapitalize": "characters"}),
    )


class PasswordForm(forms.Form):
    """A new password of the user's own; the present one proves who asks."""

    present = forms.CharField(
        label="Present password",
        max_length=4096,
        strip=False,
        widget=forms.PasswordInput({"autocomplete": "current-password"}),
    )
    new = forms.CharField(
        label="New password",
        max_length=4096,
        strip=False,
        widget=forms.PasswordInput({"autocomplete": "new-password"}),
        help_text="At least 10 characters; not your name, and not one that everybody uses.",
    )
    again = forms.CharField(
        label="New password again",
        max_length=4096,
        strip=False,
        widget=forms.PasswordInput({"autocomplete": "new-password"}),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_present(self) -> str:
        present: str = self.cleaned_data["present"]
        if not self.user.check_password(present):
            raise forms.ValidationError("This is not your present password.")
        return present

    def clean_new(self) -> str:
        new: str = self.cleaned_data["new"]
        password_validation.validate_password(new, self.user)
        # Compared with what was typed as the present one, so that this tells nothing to who does
        # not know it.
        if new == self.cleaned_data.get("present"):
            raise forms.ValidationError("This is your present password. Choose another one.")
        return new

    def clean(self) -> dict[str, Any]:
        cleaned_data = super().clean() or {}
        if (
            cleaned_data.get("new")
            and cleaned_data.get("again")
            and cleaned_data["new"] != cleaned_data["again"]
        ):
            self.add_error("again", "The two new passwords differ. Type the same one twice.")
        return cleaned_data


class UserForm(forms.Form):
    """A new local user. The password is generated."""

    username = forms.CharField(
        label="User name",
        max_length=150,
        validators=[USER_NAME],
        widget=forms.TextInput({"autocomplete": "off", "autocapitalize": "none"}),
        help_text="What they sign in with.",
    )
    email = forms.EmailField(label="Email address", required=False)
    is_superuser = forms.BooleanField(
        label="System administrator",
        required=False,
        help_text="May do everything everywhere, by an access rule that can be taken away.",
    )

    def __init__(self, *args: Any, may_make_administrator: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not may_make_administrator:
            del self.fields["is_superuser"]

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        # Names that differ by case only would be taken for one another.
        if User.objects.filter(username__iexact=name).exists():
            raise forms.ValidationError(
                "There is a user of this name already. Choose another name."
            )
        return name


MAX_CUSTOM_ROLES = 200
"""Custom roles that a list offers, by name."""


def list_role_choices() -> list[tuple[str, str]]:
    """Return all predefined and custom roles as form choices."""
    custom = CustomRole.objects.order_by("name").values_list("pk", "name")[:MAX_CUSTOM_ROLES]
    return [
        *((key, role.label) for key, role in ROLES.items()),
        *((f"custom:{pk}", name) for pk, name in custom),
    ]


def list_project_role_choices() -> list[tuple[str, str]]:
    """Return the role choices that can be given in a project."""
    return [
        (key, label)
        for key, label in list_role_choices()
        if key not in ROLES or not ROLES[key].tenant_only
    ]


class RoleForm(forms.Form):
    """A person's new role in a project."""

    role = forms.ChoiceField(choices=list_project_role_choices)


class PersonForm(RoleForm):
    """A person who gets a role in a project.

    The name is typed, not chosen: a project's administrator does not see all users.
    """

    username = forms.CharField(
        label="User name",
        max_length=150,
        widget=forms.TextInput({"autocomplete": "off", "autocapitalize": "none"}),
    )
    field_order = ("username", "role")

    def clean_username(self) -> User:
        name: str = self.cleaned_data["username"].strip()
        user = User.objects.filter(username__iexact=name, is_active=True, is_service=False).first()
        if user is None:
            raise forms.ValidationError(
                "There is no user of this name who can sign in. Check the spelling, or ask an "
                "administrator of Muster."
            )
        return user


class ServiceAccountForm(forms.Form):
    """A new service account of a project. `actions.create_service_account` checks the name."""

    name = forms.CharField(
        max_length=40,
        help_text="What it is for, e.g. nightly-training.",
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    role = forms.ChoiceField(
        choices=list_project_role_choices,
        initial=L2,
        help_text="A researcher launches and stops workloads; a viewer reads.",
    )
    expires = forms.ChoiceField(choices=list(LIFETIMES.items()), required=False)
