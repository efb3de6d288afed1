"""The figures that processes store for whoever scrapes them."""

from django.db import models


class ProcessFigures(models.Model):
    """What one process has counted until `stored_at`. Rows of ended processes are deleted."""

    process_id = models.CharField(max_length=96, primary_key=True)
    """The machine's name and the process's number on it."""
    process = models.CharField(max_length=16)
    """web, worker, beat, follow or capture."""
    stored_at = models.DateTimeField(db_index=True)
    content = models.BinaryField()
    """Packed families (`console.metrics.snapshots`)."""
    step_times = models.JSONField(default=dict)
    """When it has last done which step, in seconds since 1970."""
