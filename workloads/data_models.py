"""Rows of what data workers prepare, and of how long ranks waited for data.

Only `journal` writes them. Code imports them from `workloads.models`, with all others.
"""

from django.db import models
from django.utils import timezone


class DataPreparation(models.Model):
    """What the data workers of an attempt prepare before its job takes GPUs, and how that goes on.

    There is one for each attempt with data workers; those without a gate want no units.
    """

    workload = models.ForeignKey(
        "workloads.Workload", models.CASCADE, related_name="data_preparations", db_index=False
    )
    attempt = models.PositiveIntegerField()
    wanted = models.BigIntegerField(default=0)
    """Units to be prepared; 0: the job took GPUs at once."""
    prepared = models.BigIntegerField(default=0)
    rate = models.FloatField(null=True)
    """Units a second of all data workers together; None where they do not say it."""
    workers = models.JSONField(default=list)
    """How far each data worker is (`data_delivery.WorkerProgress`), by its number."""
    created_at = models.DateTimeField(default=timezone.now)
    progress_at = models.DateTimeField(null=True)
    """When units were prepared last."""
    has_stalled = models.BooleanField(default=False)
    """Whether the history tells that nothing has been prepared for long, since the last unit."""
    ready_at = models.DateTimeField(null=True)
    """When all was prepared."""
    ended_early = models.BooleanField(default=False)
    """Whether the dataset ended before so many units were prepared."""
    resumed_at = models.DateTimeField(null=True)
    """When the job was let go on; None while it is suspended."""
    failed_at = models.DateTimeField(null=True)
    """When the Job of its data workers was found failed."""
    failure = models.TextField(blank=True, default="")
    """Why, as the history tells it; "" where that is not known yet."""
    sampled_at = models.DateTimeField(null=True)
    """When the counters of ranks were read last."""
    is_open = models.BooleanField(default=True)
    """Whether the attempt goes on, or data workers may be left of it."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workload", "attempt"], name="data_preparation_once_an_attempt"
            )
        ]
        indexes = [
            models.Index(
                fields=["id"], condition=models.Q(is_open=True), name="data_preparation_open"
            ),
            models.Index(
                fields=["resumed_at"],
                condition=models.Q(resumed_at__isnull=False),
                name="data_preparation_resumed",
            ),
        ]

    def __str__(self) -> str:
        return f"data of attempt {self.attempt} of {self.workload_id}"


class RankDelivery(models.Model):
    """The newest counters of a rank: how long it waited for data, and what it got."""

    workload = models.ForeignKey(
        "workloads.Workload", models.CASCADE, related_name="rank_deliveries", db_index=False
    )
    attempt = models.PositiveIntegerField()
    rank = models.PositiveIntegerField()
    at = models.DateTimeField()
    """When the rank wrote them."""
    span = models.FloatField()
    """Seconds that the counters are of, 10 minutes at most."""
    waited = models.FloatField()
    """Seconds of these that it waited for data."""
    computed = models.FloatField()
    depth = models.PositiveIntegerField(default=0)
    """Batches that are there and not taken yet."""
    rate = models.FloatField(default=0)
    """Elements a second that it got."""
    delivered = models.BigIntegerField(default=0)
    epoch = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["rank"]
        constraints = [
            models.UniqueConstraint(
                fields=["workload", "attempt", "rank"], name="rank_delivery_once"
            )
        ]

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.workload_id}"
