"""The kind of a workload's job, which so far followed from its framework."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def _fill(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    workloads = apps.get_model("workloads", "Workload").objects.using(schema_editor.connection.alias)
    workloads.filter(framework="").update(job_kind="batch/v1/Job")
    workloads.filter(framework="PyTorch").update(job_kind="kubeflow.org/v1/PyTorchJob")


class Migration(migrations.Migration):
    dependencies = [("workloads", "0001_initial")]

    operations = [
        migrations.AddField("workload", "job_kind", models.CharField(default="", max_length=64)),
        migrations.RunPython(_fill, migrations.RunPython.noop),
    ]
