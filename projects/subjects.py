"""Subjects of access rules as people type them.

Users and groups are named, service accounts by name or client id.
"""

from collections.abc import Sequence

from django.contrib.auth.models import Group
from django.db import models

from console.errors import UserError
from projects.models import ServiceAccount, User

MAX_SUBJECTS = 10
"""Subjects that get the same rule at once."""
MAX_NAME = 150
"""Characters of a subject's name."""

USER, GROUP, SERVICE_ACCOUNT = "user", "group", "service-account"
KINDS = {USER: "User", GROUP: "Group", SERVICE_ACCOUNT: "Service account"}

Subject = User | Group


def kind_of(subject: Subject) -> str:
    """Return the subject's kind, one of KINDS."""
    if isinstance(subject, Group):
        return GROUP
    return SERVICE_ACCOUNT if subject.is_service else USER


def parse_subjects(kind: str, text: str, by: User) -> Sequence[Subject]:
    """Return the subjects of a comma-separated list.

    Raises UserError for the field "subjects" where one is not found, and for too many.
    """
    names = list(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))
    if not names:
        raise UserError(
            "Say for whom the rule is: a name, or several with commas between them.",
            field="subjects",
        )
    if len(names) > MAX_SUBJECTS:
        raise UserError(
            f"A rule can be made for {MAX_SUBJECTS} at once; take some away.", field="subjects"
        )
    if any(len(name) > MAX_NAME or "\x00" in name for name in names):
        raise UserError(f"A name has at most {MAX_NAME} letters.", field="subjects")
    return [get_subject(kind, name, by) for name in names]


def unknown_kind_error(kind: str) -> UserError:
    """Return the error for an unknown kind of subject."""
    return UserError(
        f"There is no subject of the type {kind[:40]}: there are {', '.join(KINDS)}.",
        field="subjectType",
    )


def get_subject(kind: str, name: str, by: User) -> Subject:
    """Return the subject of this name. Raises UserError where there is none."""
    if kind == GROUP:
        # The name as the single sign-on tells it: the rule may be made before the first of the
        # group has signed in.
        return Group.objects.filter(name=name).first() or Group(name=name)
    if kind == SERVICE_ACCOUNT:
        accounts = ServiceAccount.objects.visible_to(by).select_related("user")
        # A name can be what the client id of another one is.
        by_name = models.Q(name=name) | models.Q(user__username=name)
        matches = list(accounts.filter(client_id=name)) or list(accounts.filter(by_name)[:2])
        if len(matches) > 1:
            raise UserError(
                f"There are several service accounts {name}. Give its client id instead.",
                field="subjects",
            )
        if not matches:
            raise UserError(
                (
                    f"There is no service account {name} that you may see. Check the name, or "
                    "give its client id."
                ),
                field="subjects",
            )
        user: User = matches[0].user
        return user
    person = User.objects.filter(username__iexact=name, is_active=True, is_service=False).first()
    if person is None:
        raise UserError(
            (
                f"There is no user {name} who can sign in. Check the spelling, or ask a system "
                "administrator."
            ),
            field="subjects",
        )
    return person
