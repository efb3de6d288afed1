"""Rows of the ledger: what became of GPU time, by day and workload, and up to when it is known."""

from django.db import models

from projects.querysets import PastInProject
from workloads.ledger import AMOUNT_NAMES, Amounts

MOST_AMOUNT = 1 << 53
"""A day of a hundred thousand GPUs. Sums of a thousand such entries stay within 64 bits."""


class LedgerEntry(models.Model):
    """GPU-microseconds of one workload on one day in UTC, on the nodes of one pool.

    It outlives the workload, whose names are kept, and has the price and the power that the pool
    had when the day's time was last added.
    """

    day = models.DateField()
    project = models.ForeignKey(
        "projects.Project", models.CASCADE, related_name="+", db_index=False
    )
    user = models.CharField(max_length=150, blank=True, default="")
    """The name of who submitted it; "" where that is nobody any more."""
    workload = models.UUIDField()
    """Its id. No foreign key: the workload may be gone."""
    workload_name = models.CharField(max_length=63)
    pool = models.PositiveBigIntegerField(default=0)
    """The node pool's id; 0 for nodes without a pool, and for time without a node."""
    pool_name = models.CharField(max_length=40, blank=True, default="")
    price = models.DecimalField(max_digits=12, decimal_places=4, null=True)
    """Of one GPU for one hour; None where none was set."""
    currency = models.CharField(max_length=12, blank=True, default="")
    watts = models.PositiveIntegerField(null=True)
    """What one GPU takes, where it is not measured; None where that was not set."""

    useful = models.BigIntegerField(default=0)
    waiting = models.BigIntegerField(default=0)
    idle = models.BigIntegerField(default=0)
    lost = models.BigIntegerField(default=0)
    starting = models.BigIntegerField(default=0)
    unknown = models.BigIntegerField(default=0)
    queued = models.BigIntegerField(default=0)
    preparing = models.BigIntegerField(default=0)
    energy = models.BigIntegerField(default=0)
    """Measured millijoules."""
    powered = models.BigIntegerField(default=0)
    """The allocated time that `energy` is of."""

    objects = PastInProject.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workload", "day", "pool"], name="ledger_entry_once_a_day"
            )
        ]
        indexes = [
            models.Index(fields=["day", "project"], name="ledger_by_day"),
            models.Index(fields=["project", "day"], name="ledger_of_project"),
        ]

    def __str__(self) -> str:
        return f"{self.workload_name} on {self.day}"

    @property
    def amounts(self) -> Amounts:
        """Its amounts, as the pure room has them."""
        return Amounts(**{name: getattr(self, name) for name in AMOUNT_NAMES})

    def set_amounts(self, amounts: Amounts) -> None:
        """Take over these amounts, MOST_AMOUNT of each at most."""
        for name in AMOUNT_NAMES:
            setattr(self, name, min(MOST_AMOUNT, getattr(amounts, name)))


class LedgerBookmark(models.Model):
    """Up to when the GPU time of a cluster is in the ledger."""

    cluster = models.OneToOneField(
        "clusters.Cluster", models.CASCADE, primary_key=True, related_name="+"
    )
    until = models.DateTimeField()
    looked_at = models.DateTimeField()
    """When the step looked at the cluster last."""
    held_until = models.DateTimeField(null=True)
    """Before this moment nothing is added: what happened in an outage is being found out."""

    def __str__(self) -> str:
        return f"ledger of {self.cluster_id} until {self.until}"


class LedgerLoss(models.Model):
    """A disruption whose loss is in the ledger."""

    event = models.BigIntegerField(primary_key=True)
    """The key of the event's row. No foreign key: the event may be gone."""
    at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"loss of event {self.event}"
