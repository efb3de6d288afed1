"""Roles of users and groups in scopes."""

from collections.abc import Sequence
from typing import Any, Self

from django.contrib.auth.models import Group
from django.db import models
from django.utils import timezone

from projects.models.people import User
from projects.permissions import ROLES, Entity, Permission, parse_permissions
from projects.querysets import GovernedQuerySet
from projects.rights import Grant
from projects.scopes import Scope, Scoped, make_one_scope_constraint


class CustomRole(models.Model):
    """A role that an administrator put together; `permissions` are texts as "workloads:view"."""

    name = models.CharField(max_length=63, unique=True)
    description = models.CharField(max_length=250, blank=True)
    permissions = models.JSONField(default=list)
    version = models.PositiveIntegerField(default=1, editable=False)
    created_by = models.ForeignKey(
        User, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class AccessRuleQuerySet(GovernedQuerySet):
    def of(self, user: User) -> Self:
        """Return the rules for a user, directly or as a member of a group."""
        return self.filter(models.Q(user=user) | models.Q(group__in=user.groups.values("pk")))

    def grants(self, user: User) -> list[Grant]:
        """Return what the user's rules permit, and where.

        One query, and no model instances: each page asks.
        """
        columns = (
            "role",
            "custom_role__name",
            "custom_role__permissions",
            "cluster",
            "department",
            "project",
        )
        return [
            Grant(
                _get_permissions(role, texts),
                Scope.from_columns(cluster=cluster, department=department, project=project),
                _describe_role(role, name),
            )
            for role, name, texts, cluster, department, project in self.of(user)
            .order_by()
            .values_list(*columns)
        ]

    def with_subject(self) -> Self:
        """Load the rules with their subject, role and scope."""
        return self.with_scope().select_related("user", "group", "custom_role", "created_by")


class AccessRule(Scoped):
    """One subject (a user, a service account's user, or a group), one role, one scope.

    It is never changed: created and deleted.
    """

    entity = Entity.ACCESS_RULES

    user = models.ForeignKey(
        User, models.CASCADE, null=True, blank=True, related_name="access_rules"
    )
    group = models.ForeignKey(
        Group, models.CASCADE, null=True, blank=True, related_name="access_rules"
    )
    role = models.CharField(max_length=40, blank=True)
    """The key of a built-in role; "" for a custom one."""
    custom_role = models.ForeignKey(
        CustomRole, models.PROTECT, null=True, blank=True, related_name="access_rules"
    )
    project = models.ForeignKey(
        "projects.Project", models.CASCADE, null=True, blank=True, related_name="access_rules"
    )
    key = models.CharField(max_length=160, unique=True, editable=False)
    """Subject, role and scope in one text, so that the same rule exists once.

    A unique constraint over nullable columns does not do it: null differs from null.
    """
    created_by = models.ForeignKey(
        User, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = AccessRuleQuerySet.as_manager()

    class Meta:
        ordering = ["created_at", "id"]
        indexes = [
            models.Index(fields=["created_at", "id"], name="access_rule_in_time_order"),
            # Most are for no group: by an index with those in it SQLite takes each group to have
            # thousands, and would read all rules.
            models.Index(
                fields=["group"],
                condition=models.Q(group__isnull=False),
                name="access_rule_of_group",
            ),
        ]
        constraints = [
            make_one_scope_constraint(),
            models.CheckConstraint(
                condition=models.Q(user__isnull=False, group__isnull=True)
                | models.Q(user__isnull=True, group__isnull=False),
                name="access_rule_of_one_subject",
            ),
            models.CheckConstraint(
                condition=models.Q(custom_role__isnull=True) & ~models.Q(role="")
                | models.Q(custom_role__isnull=False, role=""),
                name="access_rule_of_one_role",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject}: {self.role_label} in {self.scope}"

    def save(self, **more: Any) -> None:
        subject = f"group:{self.group_id}" if self.user_id is None else f"user:{self.user_id}"
        self.key = f"{subject} {self.role_key} {self.scope}"
        super().save(**more)

    @property
    def subject(self) -> User | Group:
        subject = self.user or self.group
        assert subject is not None
        return subject

    @property
    def permissions(self) -> frozenset[Permission]:
        """What it permits; a role that does not exist any more permits nothing."""
        return _get_permissions(
            self.role, self.custom_role.permissions if self.custom_role else None
        )

    @property
    def role_key(self) -> str:
        """The role as forms and the REST API name it: "viewer", "custom:3"."""
        return self.role or f"custom:{self.custom_role_id}"

    @property
    def role_label(self) -> str:
        return _describe_role(self.role, self.custom_role.name if self.custom_role else None)


def _get_permissions(role: str, texts: Sequence[str] | None) -> frozenset[Permission]:
    """Return what a role permits: a built-in one by its key, a custom one by its texts."""
    if texts is not None:
        return parse_permissions(texts)
    return ROLES[role].permissions if role in ROLES else frozenset()


def _describe_role(role: str, name: str | None) -> str:
    """Return the name of a role: a built-in one by its key, a custom one by its name."""
    if name is not None:
        return name
    return ROLES[role].label if role in ROLES else role
