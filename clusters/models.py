"""Where things run: clusters and their nodes, as last seen."""

import uuid
from decimal import Decimal

from django.db import models
from django.utils import timezone

from clusters.querysets import ClusterQuerySet
from console.encryption import EncryptedTextField


class Cluster(models.Model):
    """One Kubernetes API and the credentials for it. What is known of it has an age: `last_seen_at`."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=63, unique=True)
    server = models.CharField(max_length=255)
    kubeconfig = EncryptedTextField()
    is_local = models.BooleanField(default=False)
    """The embedded one: pods run on this machine as the user who started it."""
    version = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_seen_at = models.DateTimeField(null=True, editable=False)
    unreachable_since = models.DateTimeField(null=True, editable=False)
    """Since when it does not answer; None while it does."""
    trouble = models.TextField(blank=True, editable=False)
    followed_by = models.CharField(max_length=64, blank=True, editable=False)
    """The follow process that has the lease, until `followed_until`."""
    followed_until = models.DateTimeField(null=True, editable=False)

    objects = ClusterQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def state(self) -> str:
        """As Run:ai's clients know it: WaitingToConnect, Connected or Disconnected."""
        if self.unreachable_since is not None:
            return "Disconnected"
        return "Connected" if self.last_seen_at else "WaitingToConnect"


class Node(models.Model):
    """A machine of a cluster. `used_*` is what pods that are not ours hold there; ours are counted from their rows."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="nodes")
    name = models.CharField(max_length=253)
    is_ready = models.BooleanField(default=False)
    is_schedulable = models.BooleanField(default=True)
    trouble = models.TextField(blank=True)
    gpu_type = models.CharField(max_length=128, blank=True)
    gpus = models.DecimalField(max_digits=10, decimal_places=2, default=Decimal(0))
    cpu = models.DecimalField(max_digits=14, decimal_places=3, default=Decimal(0))
    memory = models.BigIntegerField(default=0)
    used_gpus = models.DecimalField(max_digits=10, decimal_places=2, default=Decimal(0))
    used_cpu = models.DecimalField(max_digits=14, decimal_places=3, default=Decimal(0))
    used_memory = models.BigIntegerField(default=0)
    labels = models.JSONField(default=dict)
    seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="node_once_a_cluster")]

    def __str__(self) -> str:
        return self.name
