"""The rows of clusters, node pools and nodes, as last seen."""

import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from clusters import prerequisites
from clusters.capabilities import Capabilities
from clusters.findings import Findings
from clusters.querysets import ClusterQuerySet, NodePoolQuerySet
from console.encryption import EncryptedTextField

UNFOLLOWED_AFTER = timedelta(seconds=10)
"""After this time without a lease nobody seems to follow a cluster: another process would have
taken it over.
"""


class ConnectionWay(models.TextChoices):
    """How a cluster was added, which decides what its credentials consist of."""

    KUBECONFIG = "kubeconfig", "Kubeconfig"
    TOKEN = "token", "Address and token"
    INSIDE = "in-cluster", "In-cluster service account"


class Cluster(models.Model):
    """One Kubernetes API and the credentials for it. What is known of it has an age:
    `last_seen_at`, `probed_at`, `permissions_at`.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=63)
    server = models.CharField(max_length=255)
    way = models.CharField(max_length=16, choices=ConnectionWay, default=ConnectionWay.KUBECONFIG)
    kubeconfig = EncryptedTextField(blank=True)
    """Empty for the cluster that Muster itself runs in: the files of its service account are read
    each time.
    """
    prometheus_url = models.CharField(max_length=255, blank=True)
    """The Prometheus that has DCGM's figures of this cluster's GPUs; empty: their use is unknown.
    """
    prometheus_matcher = models.CharField(max_length=250, blank=True, default="", db_default="")
    """Label matchers of this cluster's series, where it has several clusters'; empty: all series.
    """
    measured_at = models.DateTimeField(null=True, editable=False)
    """The moment of the last sweep of what pods and nodes use, whatever it found."""
    metrics_at = models.DateTimeField(null=True, editable=False)
    """The moment of the last sweep that found any figure."""
    metrics_problem = models.CharField(
        max_length=500, blank=True, default="", db_default="", editable=False
    )
    """Why the last sweep found less than there should be; empty where it found all."""
    is_local = models.BooleanField(default=False)
    """Whether it is the embedded cluster: its pods run on this machine as the user who started it.
    """
    is_enabled = models.BooleanField(default=True)
    """While it is disabled, nothing is launched there, and it is neither followed nor asked."""
    disabled_at = models.DateTimeField(null=True, editable=False)
    removed_at = models.DateTimeField(null=True, editable=False)
    """When it was removed while it still had a history; no page shows it from then on."""
    version = models.CharField(max_length=64, blank=True)
    """Of Kubernetes, as its API server has it."""
    platform = models.CharField(max_length=128, blank=True)
    edit_version = models.PositiveIntegerField(default=1, db_default=1, editable=False)
    """Raised with each change of what its form sets; what Muster finds out of it does not count."""
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_seen_at = models.DateTimeField(null=True, editable=False)
    unreachable_since = models.DateTimeField(null=True, editable=False)
    """Since when it has not answered; None while it answers."""
    trouble = models.TextField(blank=True, editable=False)
    followed_by = models.CharField(max_length=64, blank=True, editable=False)
    """The follow process that has the lease, until `followed_until`."""
    followed_until = models.DateTimeField(null=True, editable=False)
    captured_by = models.CharField(
        max_length=64, blank=True, default="", db_default="", editable=False
    )
    """The capture process that has the lease for its logs, until `captured_until`."""
    captured_until = models.DateTimeField(null=True, editable=False)
    capabilities = models.JSONField(default=dict, editable=False)
    """What it can do (`Capabilities.to_json`); {} while it was never probed."""
    findings = models.JSONField(default=dict, editable=False)
    """What else a probe found (`Findings.to_json`)."""
    probed_at = models.DateTimeField(null=True, editable=False)
    permissions = models.JSONField(default=dict, editable=False)
    """What the credentials may do (`PermissionReview.to_json`); {} while that was never checked."""
    permissions_at = models.DateTimeField(null=True, editable=False)
    check_requested_at = models.DateTimeField(null=True, editable=False)
    """When somebody asked for a check that is not done yet."""

    objects = ClusterQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(removed_at=None), name="cluster_name_once"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def state(self) -> str:
        """The state under the names that clients of Run:ai know: WaitingToConnect, Connected,
        Disconnected or MissingPrerequisites.
        """
        if self.unreachable_since is not None or not self.is_enabled:
            return "Disconnected"
        if not self.last_seen_at:
            return "WaitingToConnect"
        return (
            "MissingPrerequisites" if prerequisites.is_missing_required(self.can) else "Connected"
        )

    @property
    def unfollowed_since(self) -> datetime | None:
        """Since when nobody writes down what happens there.

        None while somebody does, where nobody ever has, and while it is disabled.
        """
        if not self.is_enabled or self.followed_until is None:
            return None
        is_over = self.followed_until < timezone.now() - UNFOLLOWED_AFTER
        return self.followed_until if is_over else None

    @property
    def can(self) -> Capabilities:
        """What it can do, as the last probe found."""
        return Capabilities.from_json(_as_mapping(self.capabilities))

    @property
    def parsed_findings(self) -> Findings:
        """What else the last probe found."""
        return Findings.from_json(_as_mapping(self.findings))


class PrometheusSignIn(models.Model):
    """How Muster signs in to a cluster's Prometheus; without a row it does not.

    A table of its own: whoever loads clusters decrypts nothing.
    """

    cluster = models.OneToOneField(
        Cluster, models.CASCADE, primary_key=True, related_name="prometheus_sign_in"
    )
    way = models.CharField(max_length=16)
    secrets = EncryptedTextField()
    """A `clusters.metrics.sign_in.SignIn` as JSON."""

    def __str__(self) -> str:
        return f"{self.way} of {self.cluster_id}"


class NodePool(models.Model):
    """The nodes of a cluster whose label `label_key` has the value `label_value`."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="node_pools")
    name = models.CharField(max_length=40)
    description = models.CharField(max_length=250, blank=True)
    label_key = models.CharField(max_length=316)
    label_value = models.CharField(max_length=63, blank=True)
    gpu_hour_price = models.DecimalField(max_digits=12, decimal_places=4, null=True)
    """What one GPU costs for one hour; None: reports name no money."""
    currency = models.CharField(max_length=12, blank=True, default="", db_default="")
    gpu_watts = models.PositiveIntegerField(null=True)
    """What one GPU takes where it is not measured; None: that is not known."""
    version = models.PositiveIntegerField(default=1, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects = NodePoolQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        indexes = [models.Index(fields=["name", "id"], name="node_pool_in_name_order")]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="node_pool_once_a_cluster")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def price_label(self) -> str:
        """The price of a GPU-hour with its currency, as "2.5 EUR"; "" where none is set."""
        if self.gpu_hour_price is None:
            return ""
        return f"{self.gpu_hour_price.normalize():f} {self.currency}"

    def matches_labels(self, labels: Mapping[str, Any]) -> bool:
        """Return whether a node with these labels is in the pool."""
        return labels.get(self.label_key) == self.label_value


class Node(models.Model):
    """A machine of a cluster. `used_*` is what pods of others use there; ours are counted from
    their rows.
    """

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="nodes")
    name = models.CharField(max_length=253)
    is_ready = models.BooleanField(default=False)
    is_schedulable = models.BooleanField(default=True)
    trouble = models.TextField(blank=True)
    conditions = models.JSONField(default=list)
    """[{type, status, reason, message, since}], as the cluster shows them."""
    taints = models.JSONField(default=list)
    """[{key, value, effect}]: they keep pods away that do not tolerate them."""
    roles = models.CharField(max_length=200, blank=True)
    """Comma-separated, as `kubectl get nodes` has them."""
    address = models.CharField(max_length=64, blank=True)
    about = models.JSONField(default=dict)
    """Its kubelet, operating system, container runtime and architecture, in words."""
    gpu_type = models.CharField(max_length=128, blank=True)
    gpus = models.DecimalField(max_digits=10, decimal_places=2, default=Decimal(0))
    gpus_unhealthy = models.DecimalField(max_digits=10, decimal_places=2, default=Decimal(0))
    """Devices that it has and does not offer."""
    gpu_memory = models.BigIntegerField(default=0)
    """MiB of one device; 0 where it is unknown."""
    pods = models.PositiveIntegerField(default=0)
    """How many pods it takes."""
    cpu = models.DecimalField(max_digits=14, decimal_places=3, default=Decimal(0))
    memory = models.BigIntegerField(default=0)
    used_gpus = models.DecimalField(max_digits=10, decimal_places=2, default=Decimal(0))
    used_cpu = models.DecimalField(max_digits=14, decimal_places=3, default=Decimal(0))
    used_memory = models.BigIntegerField(default=0)
    used_pods = models.PositiveIntegerField(default=0)
    labels = models.JSONField(default=dict)
    seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="node_once_a_cluster")
        ]

    def __str__(self) -> str:
        return self.name


def _as_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
