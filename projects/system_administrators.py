"""Somebody stays in charge: a system administrator who can sign in, as this installation is set up
now.
"""

from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.db.models import Q, QuerySet

from projects.models import AccessRule, User
from projects.permissions import SYSTEM
from projects.sign_on import accounts


def has_others(excluded: AccessRule | User) -> bool:
    """Whether a system administrator who can sign in is left without this rule, or without this
    user.

    In a transaction, which holds what it counts: of two that take one another's role away at once,
    the second counts what the first left. To be asked before any other rule is locked: whoever asks
    locks the same rows in the same order.
    """
    rules = AccessRule.objects.filter(role=SYSTEM)
    list(rules.select_for_update().order_by("pk").values_list("pk", flat=True))
    list(
        User.objects.select_for_update()
        .filter(is_superuser=True)
        .order_by("pk")
        .values_list("pk", flat=True)
    )
    people = list_people_who_can_sign_in()
    if isinstance(excluded, User):
        people = people.exclude(pk=excluded.pk)
    else:
        rules = rules.exclude(pk=excluded.pk)
    return people.filter(
        Q(is_superuser=True) | Q(pk__in=rules.values("user")) | Q(groups__in=rules.values("group"))
    ).exists()


def list_people_who_can_sign_in() -> QuerySet[User]:
    """Active people with a password, or whom the single sign-on of the settings leads to."""
    by_password = ~Q(password="") & ~Q(password__startswith=UNUSABLE_PASSWORD_PREFIX)
    ways_in = by_password | Q(pk__in=accounts.list_identities().values("user"))
    return User.objects.filter(ways_in, is_active=True, is_service=False)
