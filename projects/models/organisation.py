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
    """How long workloads may run, and leave their GPUs unused, in seconds; None is unlimited.

    A project may be stricter than its department, not laxer. A limit does not apply to workloads
    that were submitted before it was set.
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
    """Projects that share a quota; its Queue is above theirs on each cluster.

    Without a quota of its own it has the sum of theirs. A deleted one has `deleted_at`: it is shown
    nowhere, its name is free, and its row stays for projects that belonged to it.
    """

    name = models.CharField(max_length=40)
    description = models.CharField(max_length=250, blank=True)
    gpu_quota = models.DecimalField(
        max_digits=10, decimal_places=2, null=True, blank=True, validators=[MinValueValidator(0)]
    )
    """GPUs of its projects together; None: the sum of theirs."""
    gpu_limit = models.DecimalField(
        max_digits=12, decimal_places=2, null=True, blank=True, validators=[MinValueValidator(0)]
    )
    """GPUs that its projects may use at most, together; None: unlimited."""
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
    deleted_at = models.DateTimeField(null=True, editable=False)

    objects = DepartmentQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(deleted_at=None), name="department_name_once"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def shares(self) -> Shares:
        """Its quota, limit and weight of each resource: devices, cores, bytes.

        A quota of None is not unlimited but the sum of its projects'.
        """
        return Shares(
            gpu=Share(self.gpu_quota, self.gpu_limit, self.over_quota_weight),
            cpu=Share(self.cpu_quota, None, self.over_quota_weight),
            memory=Share(_to_decimal(self.memory_quota), None, self.over_quota_weight),
        )


def _amount_field(places: int = 2) -> "models.DecimalField[Decimal | None, Decimal | None]":
    """Build a field for GPUs or cores; None is unlimited."""
    return models.DecimalField(
        max_digits=12,
        decimal_places=places,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
    )


class Project(Limits):
    """A team's place on a cluster: a namespace, a Queue, a quota.

    Its id is an integer that the REST API shows as text. A deleted one has `deleted_at`: it is
    shown nowhere, its name is free, and its row stays for the history of its workloads. Its names
    in the cluster are free once the cluster has removed them (`removed_at`).
    """

    name = models.CharField(max_length=40)
    department = models.ForeignKey(Department, models.PROTECT, related_name="projects")
    cluster = models.ForeignKey("clusters.Cluster", models.PROTECT, related_name="projects")
    namespace = models.CharField(max_length=63)
    is_namespace_adopted = models.BooleanField(default=False)
    """Whether the namespace existed before: an administrator named it, and Muster does not delete
    it.
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
    """GPUs of its own; None is unlimited."""
    gpu_limit = _amount_field()
    """GPUs that it may use at most: its quota, and what others leave idle."""
    over_quota_weight = models.DecimalField(
        max_digits=6, decimal_places=2, default=Decimal(1), validators=[MinValueValidator(0)]
    )
    """Its share of what others leave idle, against the other projects that want it."""
    cpu_quota = _amount_field(3)
    cpu_limit = _amount_field(3)
    memory_quota = models.BigIntegerField(null=True, blank=True, validators=[MinValueValidator(0)])
    """Bytes."""
    memory_limit = models.BigIntegerField(null=True, blank=True, validators=[MinValueValidator(0)])
    description = models.CharField(max_length=250, blank=True)
    node_pools = models.ManyToManyField("clusters.NodePool", blank=True, related_name="projects")
    """The node pools that its workloads may use; none means all of its cluster's."""
    default_preemptible = models.BooleanField(default=True)
    """Whether a workload may be interrupted that does not say so itself."""
    version = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    synced_at = models.DateTimeField(null=True, editable=False)
    sync_error = models.TextField(blank=True, editable=False)
    """Why its namespace and Queue are not as they should be, or not removed yet; empty when fine.
    """
    sync_note = models.TextField(blank=True, editable=False)
    """Why its quota is not enforced on this cluster; empty where it is."""
    allocated = models.JSONField(default=dict, editable=False)
    """What its workloads use, as its Queue said last.

    {"gpu": devices, "cpu": cores, "memory": bytes}, decimal texts; {}: unknown.
    """
    deleted_at = models.DateTimeField(null=True, editable=False)
    deleted_by = models.ForeignKey(
        User, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    removed_at = models.DateTimeField(null=True, editable=False)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        indexes = [
            # The few that are being removed, which sweeps and the table of projects ask for.
            models.Index(
                fields=["deleted_at"],
                condition=models.Q(deleted_at__isnull=False, removed_at=None),
                name="project_leaving",
            ),
            models.Index(
                fields=["department"],
                condition=models.Q(deleted_at=None),
                name="project_of_department",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(deleted_at=None), name="project_name_once"
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
        """Its quota, limit and weight of each resource: devices, cores, bytes."""
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
        """Seconds a workload submitted now may run: the stricter of its own and its department's
        limit.
        """
        return _find_stricter(self.time_limit_seconds, self.department.time_limit_seconds)

    @property
    def idle_limit(self) -> int | None:
        """Seconds a workload submitted now may leave its GPUs unused, likewise."""
        return _find_stricter(self.idle_limit_seconds, self.department.idle_limit_seconds)

    @property
    def gpus_allocated(self) -> Decimal | None:
        """The GPUs that its workloads use; None where the cluster has not said."""
        return self.find_allocated("gpu")

    def find_allocated(self, resource: str) -> Decimal | None:
        """Return what its workloads use of "gpu", "cpu" or "memory": devices, cores, bytes.

        None where the cluster has not said.
        """
        text = self.allocated.get(resource)
        try:
            amount = None if text is None else Decimal(str(text))
        except InvalidOperation:
            return None
        return amount if amount is not None and amount.is_finite() else None


def _to_decimal(number: int | None) -> Decimal | None:
    return None if number is None else Decimal(number)


class Installation(models.Model):
    """This installation, told apart from others that use the same cluster.

    One row, whose key is on everything that it creates there.
    """

    key = models.UUIDField(default=uuid.uuid4, editable=False)

    @classmethod
    def own_key(cls) -> str:
        """Return the key of this installation, creating it at the first call."""
        return str(cls.objects.get_or_create(pk=1)[0].key)
