"""The guard that keeps at least one system administrator who can sign in.

What counts is who can sign in as this installation is configured now.
"""

from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.db.models import Q, QuerySet

from projects.models import AccessRule, User
from projects.permissions import SYSTEM
from projects.sign_on import accounts


def has_others(excluded: AccessRule | User) -> bool:
    """Tell whether a system administrator who can sign in remains without `excluded`.

    Call it in a transaction and before locking any other rule. It locks all rules and users that it
    counts, always in the same order: of two administrators who take one another's role away at
    once, the second counts what the first left.
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
    """Return active people with a password or with an identity at the configured single sign-on."""
    by_password = ~Q(password="") & ~Q(password__startswith=UNUSABLE_PASSWORD_PREFIX)
    can_sign_in = by_password | Q(pk__in=accounts.list_identities().values("user"))
    return User.objects.filter(can_sign_in, is_active=True, is_service=False)
