"""Let attempts say how many workers Muster gave their job, and events how many pods there were.

Elastic workloads that run already are scaled as new ones are.
"""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import F

SCALED_KIND = "kubeflow.org/v1/PyTorchJob"


def scale_running_attempts(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Set the workers of the unended attempts of elastic workloads, as they were submitted."""
    attempts = apps.get_model("workloads", "Attempt").objects
    rows = attempts.filter(
        ended_at=None,
        number=F("workload__attempt"),
        workload__released_at=None,
        workload__ended_at=None,
        workload__job_kind=SCALED_KIND,
    )
    for pk, spec in rows.values_list("pk", "workload__spec").iterator():
        workers = spec.get("workers", 1) if isinstance(spec, dict) else None
        if isinstance(workers, int) and isinstance(spec.get("elastic"), dict):
            attempts.filter(pk=pk).update(workers_set=workers, workers_wanted=workers)


class Migration(migrations.Migration):
    dependencies = [("workloads", "0010_disruptions")]

    operations = [
        migrations.AddField(
            model_name="attempt",
            name="is_scaled_by_others",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="attempt",
            name="room_since",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="attempt",
            name="scale_after",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="attempt",
            name="workers_set",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="attempt",
            name="workers_wanted",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="event",
            name="pods_after",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="event",
            name="pods_before",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("ended_at", None), ("workers_set__isnull", False)),
                fields=["workload"],
                name="attempt_scaled",
            ),
        ),
        migrations.RunPython(scale_running_attempts, migrations.RunPython.noop),
    ]
