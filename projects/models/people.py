"""Users, service accounts and personal keys."""

from datetime import datetime
from functools import cached_property
from typing import Any

from django.apps import apps
from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils import timezone

from projects.permissions import EVERYTHING, ROLES, SYSTEM, Entity
from projects.querysets import GovernedQuerySet
from projects.rights import Grant, PermittedScopes, Place, Rights
from projects.scopes import TENANT, Scoped, make_one_scope_constraint


class User(AbstractUser):
    """A person, or the subject behind a service account.

    `is_superuser` is the administrator that an installation starts with: a system administrator
    without a rule, whom no rule takes away. `groups` are those that single sign-on sets; rules may
    be for them.
    """

    is_service = models.BooleanField(default=False)
    """Whether it is behind a service account; it cannot sign in to a page."""
    must_change_password = models.BooleanField(default=False)
    uses_key_shortcuts = models.BooleanField(default=True, db_default=True)
    """Whether single keys do something on pages with a table; each person may switch them off."""
    sign_outs = models.PositiveIntegerField(default=0, editable=False)
    """How often all of their sessions were ended; refresh tokens from before that are void."""
    personal_key: "PersonalKey | None" = None
    """The key behind the token of this request, where there is one."""

    class Meta(AbstractUser.Meta):
        # Each refusal names some of them.
        indexes = [
            models.Index(
                fields=["username"],
                condition=models.Q(is_superuser=True),
                name="administrator_in_name_order",
            )
        ]

    def __str__(self) -> str:
        return self.username

    @cached_property
    def rights(self) -> Rights:
        """What they may do where, loaded at the first use, and again after `refresh_from_db`."""
        return Rights(self._load_grants(), _load_places)

    def _load_grants(self) -> list[Grant]:
        if self.is_superuser:
            return [Grant(EVERYTHING, TENANT, ROLES[SYSTEM].label)]
        # The models of one package, each in its file, know one another by name.
        grants: list[Grant] = apps.get_model("projects", "AccessRule").objects.grants(self)
        return grants

    def refresh_from_db(self, *arguments: Any, **more: Any) -> None:
        self.__dict__.pop("rights", None)
        super().refresh_from_db(*arguments, **more)


def _load_places(where: PermittedScopes) -> list[Place]:
    below = (
        models.Q(cluster__in=where.clusters)
        | models.Q(department__in=where.departments)
        | models.Q(pk__in=where.projects)
    )
    projects = apps.get_model("projects", "Project").objects.there().filter(below)
    return [
        Place(*row) for row in projects.order_by().values_list("pk", "department_id", "cluster_id")
    ]


class ServiceAccount(Scoped):
    """A program's login: client id and secret for `POST /api/v1/token`.

    Its user has the access rules. It belongs to a scope; one of a project is deleted with it.
    """

    entity = Entity.SERVICE_ACCOUNTS

    name = models.CharField(max_length=40)
    project = models.ForeignKey(
        "projects.Project", models.CASCADE, null=True, blank=True, related_name="service_accounts"
    )
    user = models.OneToOneField(User, models.CASCADE, related_name="service_account")
    client_id = models.CharField(max_length=64, unique=True)
    secret_hash = models.CharField(max_length=256)
    expires_at = models.DateTimeField(null=True, blank=True)
    """From when on its secret gets no token; None: never."""
    rotated_at = models.DateTimeField(null=True, editable=False)
    is_enabled = models.BooleanField(default=True, db_default=True)
    """Whether its secret gets tokens, and tokens got with it open anything."""
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, editable=False)

    objects = GovernedQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        indexes = [models.Index(fields=["name", "id"], name="service_account_in_name_order")]
        constraints = [
            make_one_scope_constraint(),
            models.UniqueConstraint(
                fields=["project", "name"], name="service_account_name_once_a_project"
            ),
            models.UniqueConstraint(
                fields=["department", "name"], name="service_account_name_once_a_department"
            ),
            models.UniqueConstraint(
                fields=["cluster", "name"], name="service_account_name_once_a_cluster"
            ),
            models.UniqueConstraint(
                fields=["name"],
                condition=models.Q(cluster=None, department=None, project=None),
                name="service_account_name_once_for_all",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_expired(self) -> bool:
        """Whether its secret, and the tokens got with it, have expired."""
        return _is_past(self.expires_at)


class PersonalKey(models.Model):
    """A person's own client id and secret: a program with them may do what that person may.

    Its client id begins with `PREFIX`.
    """

    PREFIX = "pk-"

    user = models.ForeignKey(User, models.CASCADE, related_name="personal_keys")
    name = models.CharField(max_length=40)
    client_id = models.CharField(max_length=64, unique=True)
    secret_hash = models.CharField(max_length=256)
    expires_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["user", "name"], name="personal_key_name_once")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_expired(self) -> bool:
        """Whether its secret, and the tokens got with it, have expired."""
        return _is_past(self.expires_at)


def _is_past(moment: datetime | None) -> bool:
    return moment is not None and moment <= timezone.now()


class FailedSignIns(models.Model):
    """Failed attempts to sign in, from one address or for one name there, as `throttle` counts
    them.

    The key is a digest.
    """

    key = models.CharField(max_length=64, primary_key=True)
    failures = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField(default=timezone.now, db_index=True)

    def __str__(self) -> str:
        return f"{self.failures} since {self.last_at}"
