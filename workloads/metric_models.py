"""The rows of metrics: what workloads and nodes used, at three resolutions."""

from django.db import models


class MetricSeries(models.Model):
    """What the figures of one owner are stored under: a short number."""

    workload = models.OneToOneField(
        "workloads.Workload", models.CASCADE, null=True, related_name="metric_series"
    )
    node = models.OneToOneField(
        "clusters.Node", models.CASCADE, null=True, related_name="metric_series"
    )

    project = models.OneToOneField(
        "projects.Project", models.CASCADE, null=True, related_name="metric_series"
    )
    """All running pods of the project together."""
    cluster = models.OneToOneField(
        "clusters.Cluster", models.CASCADE, null=True, related_name="metric_series"
    )
    """All nodes of the cluster together."""
    gpu_use = models.FloatField(null=True)
    """The mean use of its devices at `gpu_use_at`, in percent; None where none is known."""
    gpu_use_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        owner = self.workload_id or self.node_id or self.project_id or self.cluster_id
        return f"metrics of {owner}"


class MetricRow(models.Model):
    """Consecutive figures of one series: frames (`workloads.metrics.frames`), one after another.

    Sorted by time first, so that new rows are written side by side, and old ones deleted so. A
    series that is gone leaves its rows until they are too old; nobody finds them.
    """

    pk = models.CompositePrimaryKey("resolution", "start", "series")
    resolution = models.PositiveSmallIntegerField()
    """A `Resolution`, by its number; of packed rows `workloads.metrics.rows.PACKED`."""
    start = models.PositiveIntegerField()
    """Since 1970, in units of what one row of this resolution covers."""
    series = models.PositiveIntegerField()
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"series {self.series} from {self.start} at {self.resolution}"


class MetricRollup(models.Model):
    """Up to when the rows of one resolution have been made: from the finer ones, or packed."""

    resolution = models.PositiveSmallIntegerField(primary_key=True)
    until = models.BigIntegerField()
    """Seconds since 1970."""

    def __str__(self) -> str:
        return f"{self.resolution} until {self.until}"
