"""Somebody stays in charge who can sign in, also where two change rules or roles at the same
moment.
"""

from collections.abc import Callable

import pytest
from allauth.socialaccount.models import SocialAccount
from django.conf import LazySettings
from django.contrib.auth.models import Group
from django.http import Http404
from django.test import Client

from console.errors import Clash, NotAllowed, UserError
from projects import custom_roles, granting, system_administrators, user_actions
from projects.models import AccessRule, AuditEntry, CustomRole, User
from projects.permissions import SYSTEM, VIEWER
from projects.scopes import TENANT, project_scope
from tests.api.calling import Caller
from tests.at_once import at_once
from tests.cast import PASSWORD, Cast, make_cast

ISSUER = "https://sso.example.com/realms/main"
ROUNDS = 8


@pytest.fixture
def by_rule(cast: Cast) -> AccessRule:
    """Alice is a system administrator by a rule, and Bob is one by the rule that comes back."""
    User.objects.filter(pk=cast.alice.pk).update(is_superuser=False)
    AccessRule.objects.create(user=cast.alice, role=SYSTEM)
    return AccessRule.objects.create(user=cast.bob, role=SYSTEM)


def connect_to_sign_on(user: User, issuer: str = ISSUER) -> None:
    user.set_unusable_password()
    user.save()
    SocialAccount.objects.create(
        user=user,
        provider="oidc",
        uid=f"{issuer} {user.pk}",
        extra_data={"iss": issuer, "sub": str(user.pk)},
    )


def set_issuer(settings: LazySettings, issuer: str) -> None:
    settings.OPTIONS = settings.OPTIONS.model_copy(
        update={"oidc_issuer": issuer, "oidc_client_id": "muster"}
    )


CANNOT: dict[str, Callable[[User], object]] = {
    "deactivated": lambda bob: User.objects.filter(pk=bob.pk).update(is_active=False),
    "a program": lambda bob: User.objects.filter(pk=bob.pk).update(is_service=True),
    "without any password": lambda bob: User.objects.filter(pk=bob.pk).update(password=""),
    "by a single sign-on that is off": connect_to_sign_on,
}


@pytest.mark.parametrize("state", sorted(CANNOT))
def test_an_administrator_who_cannot_sign_in_is_nobody_in_charge(
    cast: Cast, by_rule: AccessRule, state: str
) -> None:
    CANNOT[state](cast.bob)
    alice = User.objects.get(pk=cast.alice.pk)
    with pytest.raises(UserError, match="only system administrator who can sign in"):
        granting.revoke_rule(alice.access_rules.get(), alice)
    with pytest.raises(UserError, match="only system administrator who can sign in"):
        user_actions.set_active(alice, False, User.objects.get(pk=cast.bob.pk))
    granting.revoke_rule(by_rule, alice)


@pytest.mark.parametrize(
    ("set_up", "theirs", "counts"),
    [
        (ISSUER, ISSUER, True),
        (ISSUER, f"{ISSUER}/", True),
        (f"{ISSUER}/.well-known/openid-configuration", ISSUER, True),
        (ISSUER, "https://sso.example.com/realms/old", False),
        ("", ISSUER, False),
    ],
)
def test_who_comes_by_single_sign_on_counts_while_it_leads_to_them(
    cast: Cast, by_rule: AccessRule, settings: LazySettings, set_up: str, theirs: str, counts: bool
) -> None:
    connect_to_sign_on(cast.bob, theirs)
    set_issuer(settings, set_up)
    assert cast.alice in system_administrators.list_people_who_can_sign_in()
    assert (cast.bob in system_administrators.list_people_who_can_sign_in()) == counts


def test_one_of_a_group_is_in_charge_and_the_group_is_not_taken_from_the_last(cast: Cast) -> None:
    User.objects.filter(pk=cast.alice.pk).update(is_superuser=False)
    group = Group.objects.create(name="admins")
    cast.bob.groups.add(group)
    AccessRule.objects.create(group=group, role=SYSTEM)
    bob = User.objects.get(pk=cast.bob.pk)
    with pytest.raises(UserError, match="only system administrator"):
        granting.revoke_rule(AccessRule.objects.get(group=group), bob)
    granting.grant_role(SYSTEM, to=cast.vera, scope=TENANT, by=bob)
    granting.revoke_rule(AccessRule.objects.get(group=group), bob)


def test_somebody_else_is_deactivated_although_nobody_in_charge_can_sign_in_again(
    cast: Cast,
) -> None:
    """Who is in by a session may still keep somebody out: that takes nobody in charge away."""
    connect_to_sign_on(cast.alice)
    user_actions.set_active(cast.bob, False, cast.alice)
    assert not User.objects.get(pk=cast.bob.pk).is_active


def test_only_a_system_administrator_takes_that_role_away(
    client: Client, cast: Cast, by_rule: AccessRule
) -> None:
    alice = User.objects.get(pk=cast.alice.pk)
    role = custom_roles.create("Warden", "", ["access-rules:delete"], by=alice)
    granting.grant_role(f"custom:{role.pk}", to=cast.vera, scope=TENANT, by=alice)
    client.force_login(cast.vera)
    assert client.post(f"/access-rules/{by_rule.pk}/delete").status_code == 403
    answer = Caller(cast.vera)("DELETE", f"/authorization/access-rules/{by_rule.pk}", status=403)
    assert "only another one can take that away" in answer["message"]
    lesser = AccessRule.objects.get(user=cast.mallory)
    assert client.post(f"/access-rules/{lesser.pk}/delete").status_code == 302
    assert AccessRule.objects.filter(pk=by_rule.pk).exists()


def test_who_came_by_a_single_sign_on_that_is_gone_gets_a_password(
    client: Client, cast: Cast, settings: LazySettings
) -> None:
    connect_to_sign_on(cast.bob)
    client.force_login(cast.alice)
    set_issuer(settings, ISSUER)
    assert "It is reset there" in client.post(f"/users/{cast.bob.pk}/reset").content.decode()
    set_issuer(settings, "")
    assert client.post(f"/users/{cast.bob.pk}/reset").status_code == 200
    assert cast.bob.__class__.objects.get(pk=cast.bob.pk).has_usable_password()


def test_a_new_password_lets_nobody_in_who_was_kept_out_meanwhile(cast: Cast) -> None:
    read_before = User.objects.get(pk=cast.bob.pk)
    user_actions.set_active(cast.bob, False, cast.alice)
    user_actions.reset_password(read_before, cast.alice)
    assert not User.objects.get(pk=cast.bob.pk).is_active


def test_a_name_that_was_taken_a_moment_ago_is_a_clash(client: Client, cast: Cast) -> None:
    with pytest.raises(Clash, match="a user of this name already"):
        user_actions.create_user(User(username="bob"), cast.alice)
    assert User.objects.get(username="bob").check_password(PASSWORD)


# At the same moment.


def two_in_charge() -> tuple[User, User]:
    cast = make_cast()
    User.objects.filter(pk=cast.alice.pk).update(is_superuser=False)
    return cast.alice, cast.bob


def in_charge_by_rules(*people: User) -> list[AccessRule]:
    AccessRule.objects.filter(role=SYSTEM).delete()
    User.objects.filter(pk__in=[each.pk for each in people]).update(is_active=True)
    return [AccessRule.objects.create(user=each, role=SYSTEM) for each in people]


def attempt(act: Callable[[], object], outcomes: list[str]) -> Callable[[], None]:
    """Return a function that acts and records the outcome; only refusals in words are expected."""

    def run() -> None:
        try:
            act()
            outcomes.append("done")
        except UserError as refusal:
            outcomes.append(refusal.text)
        except Http404:
            outcomes.append("not there")

    return run


def reload_user(user: User) -> User:
    return User.objects.get(pk=user.pk)


WAYS: dict[str, Callable[[User, User, AccessRule], Callable[[], object]]] = {
    "take": lambda by, of, rule: lambda: granting.revoke_rule(rule, by),
    "deactivate": lambda by, of, rule: lambda: user_actions.set_active(of, False, by),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("one", "other"), [("take", "take"), ("deactivate", "deactivate"), ("take", "deactivate")]
)
def test_two_administrators_who_put_one_another_out_leave_one_in_charge(
    one: str, other: str
) -> None:
    alice, bob = two_in_charge()
    for _ in range(ROUNDS):
        of_alice, of_bob = in_charge_by_rules(alice, bob)
        first, second = reload_user(alice), reload_user(bob)
        assert first.rights.grants
        assert second.rights.grants
        outcomes: list[str] = []
        works = (
            WAYS[one](first, reload_user(bob), of_bob),
            WAYS[other](second, reload_user(alice), of_alice),
        )
        at_once(*(attempt(work, outcomes) for work in works))
        left = system_administrators.list_people_who_can_sign_in().filter(
            pk__in=AccessRule.objects.filter(role=SYSTEM).values("user")
        )
        assert (outcomes.count("done"), left.count()) == (1, 1), outcomes


@pytest.mark.django_db(transaction=True)
def test_a_custom_role_that_is_deleted_while_it_is_given_is_one_or_the_other() -> None:
    cast = make_cast()
    alice = reload_user(cast.alice)
    for number in range(ROUNDS):
        role = custom_roles.create(f"Passing {number}", "", ["projects:view"], by=alice)
        outcomes: list[str] = []

        def give(key: str = f"custom:{role.pk}") -> object:
            return granting.grant_role_to_all(
                key, to=[cast.vera], scope=project_scope(cast.team_a), by=alice
            )

        def delete(role: CustomRole = role) -> None:
            custom_roles.delete(role, alice)

        at_once(attempt(give, outcomes), attempt(delete, outcomes))
        assert outcomes.count("done") == 1, outcomes
        assert (
            AccessRule.objects.filter(custom_role=role.pk).count()
            == CustomRole.objects.filter(pk=role.pk).count()
        )


@pytest.mark.django_db(transaction=True)
def test_a_custom_role_that_grows_while_it_is_given_is_not_given_by_who_may_not() -> None:
    cast = make_cast()
    alice, mallory = reload_user(cast.alice), reload_user(cast.mallory)
    assert mallory.rights.grants
    for number in range(ROUNDS):
        role = custom_roles.create(f"Growing {number}", "", ["workloads:view"], by=alice)
        outcomes: list[str] = []

        def give(pk: int = role.pk) -> object:
            rule = granting.grant_role(
                f"custom:{pk}", to=cast.vera, scope=project_scope(cast.team_b), by=mallory
            )
            entry = AuditEntry.objects.get(event="grant", entity_id=str(rule.pk))
            grown = AuditEntry.objects.filter(
                event="update", entity="role", entity_id=str(pk), pk__lt=entry.pk
            )
            assert not grown.exists()
            return rule

        def grow(pk: int = role.pk, number: int = number) -> object:
            return custom_roles.edit(pk, f"Growing {number}", "", ["clusters:delete"], by=alice)

        at_once(attempt(give, outcomes), attempt(grow, outcomes))
        assert outcomes.count("done") >= 1


def test_nobody_gives_what_is_no_role(cast: Cast) -> None:
    for key in (
        "",
        "custom:",
        "custom:0",
        "custom:999999",
        "custom:-1",
        "custom:٣",
        "system",
        f"{VIEWER} ",
    ):
        with pytest.raises(UserError, match="no such role"):
            granting.grant_role(key, to=cast.vera, scope=project_scope(cast.team_a), by=cast.alice)
    with pytest.raises(NotAllowed):
        granting.grant_role(
            SYSTEM, to=cast.mallory, scope=project_scope(cast.team_b), by=cast.mallory
        )
