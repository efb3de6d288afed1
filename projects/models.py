"""Who may do what: users, departments, projects, roles, service accounts."""

from decimal import Decimal

from django.contrib.auth.models import AbstractUser
from django.core.validators import MinValueValidator
from django.db import models
from django.utils import timezone

from projects.querysets import ProjectQuerySet


class User(AbstractUser):
    """A person, or the subject behind a service account. `is_superuser` is the administrator of the whole installation."""

    is_service = models.BooleanField(default=False)
    """Behind a service account; cannot sign in to a page."""
    must_change_password = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.username


class Role(models.TextChoices):
    """What somebody is in one project."""

    ADMINISTRATOR = "administrator", "Administrator"
    MEMBER = "member", "Member"
    VIEWER = "viewer", "Viewer"


class Department(models.Model):
    """Projects that share a quota; a Queue above theirs on each cluster."""

    name = models.CharField(max_length=40, unique=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Project(models.Model):
    """A team's place on a cluster: a namespace, a Queue, a quota. Its id is an integer that the REST API shows as text."""

    name = models.CharField(max_length=40, unique=True)
    department = models.ForeignKey(Department, models.PROTECT, related_name="projects")
    cluster = models.ForeignKey("clusters.Cluster", models.PROTECT, related_name="projects")
    namespace = models.CharField(max_length=63)
    queue = models.CharField(max_length=63)
    gpu_quota = models.DecimalField(
        max_digits=10, decimal_places=2, null=True, blank=True, default=Decimal(0), validators=[MinValueValidator(0)]
    )
    """GPUs that are its own; None is without limit."""
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    synced_at = models.DateTimeField(null=True, editable=False)
    sync_error = models.TextField(blank=True, editable=False)
    """Why its namespace and Queue are not as they should be; empty when they are."""

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "namespace"], name="project_namespace_once_a_cluster")]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One role of one user in one project."""

    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    project = models.ForeignKey(Project, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "project"], name="membership_one_role_a_project")]

    def __str__(self) -> str:
        return f"{self.user_id} is {self.role} of {self.project_id}"


class ServiceAccount(models.Model):
    """A program's way in: client id and secret for `POST /api/v1/token`. Its user has one role in one project."""

    name = models.CharField(max_length=40)
    project = models.ForeignKey(Project, models.CASCADE, related_name="service_accounts")
    user = models.OneToOneField(User, models.CASCADE, related_name="service_account")
    client_id = models.CharField(max_length=64, unique=True)
    secret_hash = models.CharField(max_length=256)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="service_account_name_once_a_project")]

    def __str__(self) -> str:
        return self.name


class FailedSignIns(models.Model):
    """Attempts to sign in that failed lately, from one address or for one name there: what `throttle` counts. The key is a digest."""

    key = models.CharField(max_length=64, primary_key=True)
    failures = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField(default=timezone.now, db_index=True)

    def __str__(self) -> str:
        return f"{self.failures} since {self.last_at}"
