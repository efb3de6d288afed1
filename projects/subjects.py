"""Whom an access rule is for, as somebody types them: users and groups by name, service accounts by
name or client id.
"""

from collections.abc import Sequence

from django.contrib.auth.models import Group
from django.db import models

from console.errors import UserError
from projects.models import ServiceAccount, User

MAX_SUBJECTS = 10
"""Subjects that get the same rule at once."""
MAX_NAME = 150

USER, GROUP, SERVICE_ACCOUNT = "user", "group", "service-account"
KINDS = {USER: "User", GROUP: "Group", SERVICE_ACCOUNT: "Service account"}

Subject = User | Group


def kind_of(subject: Subject) -> str:
    """One of KINDS."""
    if isinstance(subject, Group):
        return GROUP
    return SERVICE_ACCOUNT if subject.is_service else USER


def parse_subjects(kind: str, text: str, by: User) -> Sequence[Subject]:
    """The subjects of a list with commas. Raises UserError, naming the field "subjects", for one
    that cannot be found, and for too many.
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
    return UserError(
        f"There is no subject of the type {kind[:40]}: there are {', '.join(KINDS)}.",
        field="subjectType",
    )


def get_subject(kind: str, name: str, by: User) -> Subject:
    """The subject of this name. Raises UserError where there is none."""
    if kind == GROUP:
        # The name as the single sign-on tells it: the rule may be made before the first of the
        # group has signed in.
        return Group.objects.filter(name=name).first() or Group(name=name)
    if kind == SERVICE_ACCOUNT:
        seen = ServiceAccount.objects.visible_to(by).select_related("user")
        # A name can be what the client id of another one is.
        named = models.Q(name=name) | models.Q(user__username=name)
        found = list(seen.filter(client_id=name)) or list(seen.filter(named)[:2])
        if len(found) > 1:
            raise UserError(
                f"There are several service accounts {name}. Give its client id instead.",
                field="subjects",
            )
        if not found:
            raise UserError(
                (
                    f"There is no service account {name} that you may see. Check the name, or "
                    "give its client id."
                ),
                field="subjects",
            )
        user: User = found[0].user
        return user
    user_found = User.objects.filter(
        username__iexact=name, is_active=True, is_service=False
    ).first()
    if user_found is None:
        raise UserError(
            (
                f"There is no user {name} who can sign in. Check the spelling, or ask a system "
                "administrator."
            ),
            field="subjects",
        )
    return user_found
