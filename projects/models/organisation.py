"""Departments and projects with their quotas and limits."""

import uuid
from decimal import Decimal, InvalidOperation

from django.core.validators import MinValueValidator
from django.db import models
from django.utils import timezone

from projects.models.people import User
from projects.querysets import DepartmentQuerySet, ProjectQuerySet
from projects.shares import Share, Shares


class Limits(models.Model):
    """How long workloads may run, and hold GPUs that they do not use, in seconds; None is without
    limit.

    A project may be stricter than its department, not laxer. What was submitted before a limit was
    set is not touched by it.
    """

    time_limit_seconds = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(60)]
    )
    """Time in Running, over all attempts of one workload."""
    idle_limit_seconds = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(60)]
    )
    """Time without any use of its GPUs."""

    class Meta:
        abstract = True


def _find_stricter(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


class Department(Limits):
    """Projects that share a quota; a Queue above theirs on each cluster. Without a quota of its own
    it has the sum of theirs.

    One that was deleted has left (`left_at`): it is shown nowhere, its name is free, and its row
    stays for projects that left it.
    """

    name = models.CharField(max_length=40)
    description = models.CharField(max_length=250, blank=True)
    gpu_quota = models.DecimalField(
        max_digits=10, decimal_places=2, null=True, blank=True, validators=[MinValueValidator(0)]
    )
    """GPUs that are its projects' together; None: the sum of theirs."""
    gpu_limit = models.DecimalField(
        max_digits=12, decimal_places=2, null=True, blank=True, validators=[MinValueValidator(0)]
    )
    """GPUs that they may hold at most, together; None: without limit."""
    over_quota_weight = models.DecimalField(
        max_digits=6, decimal_places=2, default=Decimal(1), validators=[MinValueValidator(0)]
    )
    cpu_quota = models.DecimalField(
        max_digits=12, decimal_places=3, null=True, blank=True, validators=[MinValueValidator(0)]
    )
    memory_quota = models.BigIntegerField(null=True, blank=True, validators=[MinValueValidator(0)])
    """Bytes."""
    version = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    left_at = models.DateTimeField(null=True, editable=False)

    objects = DepartmentQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(left_at=None), name="department_name_once"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def shares(self) -> Shares:
        """What was set for it: devices, cores, bytes. A quota of None is not without limit but the
        sum of its projects'.
        """
        return Shares(
            gpu=Share(self.gpu_quota, self.gpu_limit, self.over_quota_weight),
            cpu=Share(self.cpu_quota, None, self.over_quota_weight),
            memory=Share(_to_decimal(self.memory_quota), None, self.over_quota_weight),
        )


def _amount_field(places: int = 2) -> "models.DecimalField[Decimal | None, Decimal | None]":
    """GPUs or cores; None is without limit."""
    return models.DecimalField(
        max_digits=12,
        decimal_places=places,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
    )


class Project(Limits):
    """A team's place on a cluster: a namespace, a Queue, a quota. Its id is an integer that the
    REST API shows as text.

    One that was deleted has left (`left_at`): it is shown nowhere, its name is free, and its row
    stays for the history of its workloads. Its names in the cluster are free once the cluster has
    let go of them (`removed_at`).
    """

    name = models.CharField(max_length=40)
    department = models.ForeignKey(Department, models.PROTECT, related_name="projects")
    cluster = models.ForeignKey("clusters.Cluster", models.PROTECT, related_name="projects")
    namespace = models.CharField(max_length=63)
    is_namespace_adopted = models.BooleanField(default=False)
    """The namespace was there before, and an administrator named it: it is not Muster's to delete.
    """
    queue = models.CharField(max_length=63)
    gpu_quota = models.DecimalField(
        max_digits=10,
        decimal_places=2,
        null=True,
        blank=True,
        default=Decimal(0),
        validators=[MinValueValidator(0)],
    )
    """GPUs that are its own; None is without limit."""
    gpu_limit = _amount_field()
    """GPUs that it may hold at most, its quota and what others leave idle together."""
    over_quota_weight = models.DecimalField(
        max_digits=6, decimal_places=2, default=Decimal(1), validators=[MinValueValidator(0)]
    )
    """Its part of what others leave idle, against the other projects that want it."""
    cpu_quota = _amount_field(3)
    cpu_limit = _amount_field(3)
    memory_quota = models.BigIntegerField(null=True, blank=True, validators=[MinValueValidator(0)])
    """Bytes."""
    memory_limit = models.BigIntegerField(null=True, blank=True, validators=[MinValueValidator(0)])
    description = models.CharField(max_length=250, blank=True)
    node_pools = models.ManyToManyField("clusters.NodePool", blank=True, related_name="projects")
    """Those that its workloads may use; none is all of its cluster's."""
    default_preemptible = models.BooleanField(default=True)
    """Whether a workload that says nothing of it may be interrupted."""
    version = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    synced_at = models.DateTimeField(null=True, editable=False)
    sync_error = models.TextField(blank=True, editable=False)
    """Why its namespace and Queue are not as they should be, or not gone yet; empty when they are.
    """
    sync_note = models.TextField(blank=True, editable=False)
    """Why its quota is not enforced on this cluster; empty where it is."""
    allocated = models.JSONField(default=dict, editable=False)
    """What its workloads hold, as its Queue told last: {"gpu": devices, "cpu": cores, "memory":
    bytes}, decimal texts; {}: not told.
    """
    left_at = models.DateTimeField(null=True, editable=False)
    left_by = models.ForeignKey(User, models.SET_NULL, null=True, editable=False, related_name="+")
    removed_at = models.DateTimeField(null=True, editable=False)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        indexes = [
            # The few that are being removed, which sweeps and the table of projects ask for.
            models.Index(
                fields=["left_at"],
                condition=models.Q(left_at__isnull=False, removed_at=None),
                name="project_leaving",
            ),
            models.Index(
                fields=["department"],
                condition=models.Q(left_at=None),
                name="project_of_department",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(left_at=None), name="project_name_once"
            ),
            models.UniqueConstraint(
                fields=["cluster", "namespace"],
                condition=models.Q(removed_at=None),
                name="project_namespace_once_a_cluster",
            ),
            models.UniqueConstraint(
                fields=["cluster", "queue"],
                condition=models.Q(removed_at=None),
                name="project_queue_once_a_cluster",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def shares(self) -> Shares:
        """What it may have of each resource: devices, cores, bytes."""
        return Shares(
            gpu=Share(self.gpu_quota, self.gpu_limit, self.over_quota_weight),
            cpu=Share(self.cpu_quota, self.cpu_limit, self.over_quota_weight),
            memory=Share(
                _to_decimal(self.memory_quota),
                _to_decimal(self.memory_limit),
                self.over_quota_weight,
            ),
        )

    @property
    def time_limit(self) -> int | None:
        """Seconds that what is submitted now may run: the stricter of its own limit and its
        department's.
        """
        return _find_stricter(self.time_limit_seconds, self.department.time_limit_seconds)

    @property
    def idle_limit(self) -> int | None:
        """Seconds for which what is submitted now may leave its GPUs unused, likewise."""
        return _find_stricter(self.idle_limit_seconds, self.department.idle_limit_seconds)

    @property
    def gpus_allocated(self) -> Decimal | None:
        """The GPUs that its workloads hold; None where the cluster has not told."""
        return self.find_allocated("gpu")

    def find_allocated(self, resource: str) -> Decimal | None:
        """What its workloads hold of "gpu", "cpu" or "memory": devices, cores, bytes; None where
        the cluster has not told.
        """
        told = self.allocated.get(resource)
        try:
            amount = None if told is None else Decimal(str(told))
        except InvalidOperation:
            return None
        return amount if amount is not None and amount.is_finite() else None


def _to_decimal(number: int | None) -> Decimal | None:
    return None if number is None else Decimal(number)


class Installation(models.Model):
    """This Muster, told apart from others that use the same cluster: one row, whose key is on
    everything that it makes there.
    """

    key = models.UUIDField(default=uuid.uuid4, editable=False)

    @classmethod
    def own_key(cls) -> str:
        """The key of this installation; it is made when it is asked for the first time."""
        return str(cls.objects.get_or_create(pk=1)[0].key)
