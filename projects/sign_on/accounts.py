"""The users and groups that identities of the provider have here.

An identity gets a user of its own, never somebody else's.
"""

import re
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from console.errors import Clash, NotAllowed
from projects import audit, present_password
from projects.audit import Event
from projects.models import User
from projects.sign_on import discovery

MAX_GROUPS = 200
"""Groups of one person; more are ignored."""
MAX_NAME_CHARS = 150
"""Characters of a group's or a user's name."""
_FORBIDDEN_CHARACTERS = re.compile(r"[^A-Za-z0-9@.+_-]+")


def get_username(claims: dict[str, Any]) -> str:
    """Return the user name for a first sign-in.

    Raises NotAllowed where the claims have none that could be one.
    """
    names = {"preferred_username": _get_text(claims, "preferred_username")}
    # Where nobody has checked the address, anybody could take the name of its owner.
    if claims.get("email_verified", True) in (True, "true"):
        names["email"] = _get_text(claims, "email")
    for claim in names.values():
        name = _FORBIDDEN_CHARACTERS.sub("-", claim).strip("@.+_-")
        if 0 < len(name) <= MAX_NAME_CHARS:
            return name
    raise NotAllowed(_describe_missing_name(claims))


def _describe_missing_name(claims: dict[str, Any]) -> str:
    provider = settings.OPTIONS.oidc_name
    if name := discovery.clean_text(claims.get("preferred_username"), 60):
        return (
            f"Your user name at {provider}, {name}, cannot be one of Muster: that has letters from "
            f"a to z or digits, and at most {MAX_NAME_CHARS} characters. There is no verified "
            "email address to take instead, so you cannot sign in. Ask an administrator of "
            f"{provider} to add one, or to change the name."
        )
    if _get_text(claims, "email"):
        return (
            f"{provider} does not tell your user name, and has not verified your email address, "
            "so you cannot sign in. Verify the address there, or ask an administrator of Muster "
            "to have the scope profile allowed there."
        )
    return (
        "The provider does not tell your user name or your email address, so you cannot sign in. "
        "Ask an administrator of Muster to have one of the scopes profile and email allowed there."
    )


def prepare_user(user: User, claims: dict[str, Any]) -> User:
    """Fill in a new, unsaved user for an identity. Raises Clash where the name is taken."""
    user.username = get_username(claims)
    if User.objects.filter(username__iexact=user.username).exists():
        raise Clash(
            f"There is a user {user.username} of Muster already, who is not connected with you "
            f"at {settings.OPTIONS.oidc_name}. "
            "If that is you, sign in with your password and connect the two on the account page; "
            "if not, ask an administrator of Muster."
        )
    user.email = parse_email(claims)
    user.first_name, user.last_name = (
        discovery.clean_text(claims.get(name), MAX_NAME_CHARS)
        for name in ("given_name", "family_name")
    )
    user.set_unusable_password()
    return user


def parse_email(claims: dict[str, Any]) -> str:
    """Return the email address of the claims, "" without a valid one."""
    address = _get_text(claims, "email")[:254]
    try:
        validate_email(address)
    except ValidationError:
        return ""
    return address


def _get_text(claims: dict[str, Any], name: str) -> str:
    """Return a claim that is text; "" for a list, a number or none."""
    value = claims.get(name)
    return value if isinstance(value, str) else ""


def parse_groups(claims: dict[str, Any]) -> set[str]:
    """Return the names of the groups in the claims.

    Without those that are too long or begin or end with a space: cut, they could be another's.
    """
    claim = claims.get(settings.OPTIONS.oidc_groups_claim)
    if isinstance(claim, str):
        claim = [claim]
    groups = claim if isinstance(claim, list) else []
    names = (name for name in groups[:MAX_GROUPS] if isinstance(name, str))
    return {
        name
        for name in names
        if 0 < len(name) <= MAX_NAME_CHARS and name.isprintable() and name == name.strip()
    }


def sync_groups(user: User, claims: dict[str, Any]) -> None:
    """Put the user in exactly the groups of the claims: `User.groups` has no others."""
    names = parse_groups(claims)
    with transaction.atomic():
        before = set(user.groups.values_list("name", flat=True))
        if before == names:
            return
        # Two people of a new group may sign in at once: one of them creates it.
        Group.objects.bulk_create(
            [Group(name=name) for name in sorted(names - before)], ignore_conflicts=True
        )
        user.groups.set(Group.objects.filter(name__in=names))
        audit.record(
            Event.UPDATE,
            "user",
            by=None,
            id=user.pk,
            name=user.username,
            before={"groups": sorted(before)},
            after={"groups": sorted(names)},
            text="The groups that single sign-on told.",
        )
    # The cached rights are those of the groups before.
    user.__dict__.pop("rights", None)


def list_identities() -> "QuerySet[SocialAccount]":
    """Return the identities that lead to a user now: those of the configured issuer.

    Those of an issuer that was configured before lead nowhere.
    """
    issuer = discovery.get_issuer()
    # Some issuers end with a slash, and say so in every token.
    issuers = [issuer, f"{issuer}/"] if issuer else []
    is_known = Q(extra_data__iss__in=issuers)
    if discovery.is_document_named():
        is_known |= Q(extra_data__document=discovery.get_discovery_url())
    accounts: QuerySet[SocialAccount] = SocialAccount.objects.filter(is_known)
    return accounts


def is_connected(user: User) -> bool:
    """Return whether the user can come in by single sign-on."""
    return bool(list_identities().filter(user=user).exists())


def connect_user(user: User, identity: SocialAccount, claims: dict[str, Any]) -> None:
    """Let a new identity lead to the user from now on, and set the groups.

    Raises NotAllowed where their password was changed meanwhile, and Clash where they are connected
    already or the identity is somebody else's.
    """
    try:
        with transaction.atomic():
            # The provider takes its time: the row of the request may be an old one by now.
            current = present_password.lock_user(user)
            if is_connected(current):
                raise Clash("Your user is connected already.")
            identity.user = current
            identity.save()
            audit.record(
                Event.UPDATE,
                "user",
                by=current,
                id=current.pk,
                name=current.username,
                text="Connected with single sign-on.",
            )
            sync_groups(current, claims)
    except IntegrityError:
        raise Clash(
            f"Who you are at {settings.OPTIONS.oidc_name} was connected with another user at the "
            "same moment. Sign in that way."
        ) from None


def disconnect_user(user: User, by: User) -> None:
    """Disconnect the user from single sign-on, if they are connected; its groups go with it."""
    with transaction.atomic():
        if not SocialAccount.objects.filter(user=user).delete()[0]:
            return
        sync_groups(user, {})
        audit.record(
            Event.UPDATE,
            "user",
            by=by,
            id=user.pk,
            name=user.username,
            text="Ended the connection with single sign-on.",
        )
