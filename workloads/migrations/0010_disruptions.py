"""Let the history say what took pods, and lists show the bounds of elastic workloads."""

import logging

import django.db.models.deletion
from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from workloads.specs import decode_spec
from workloads.specs.spec_summary import summarize_spec

log = logging.getLogger(__name__)

COLUMNS = ("min_pods", "max_pods")


def fill_bounds(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Fill the bounds of the elastic workloads; one whose spec cannot be read stays without."""
    workloads = apps.get_model("workloads", "Workload").objects
    elastic = workloads.filter(framework="PyTorch").only("id", "spec").order_by("pk")
    for row in elastic.iterator(chunk_size=200):
        if not (isinstance(row.spec, dict) and row.spec.get("elastic")):
            continue
        try:
            summary = summarize_spec(decode_spec(row.spec))
        # Anything: specs of any age are read by the code of today, and one odd row must not keep an
        # installation from starting.
        except Exception as error:
            log.warning("the bounds of workload %s are not listed: %r", row.pk, error)
            continue
        workloads.filter(pk=row.pk).update(**{name: summary[name] for name in COLUMNS})


class Migration(migrations.Migration):
    dependencies = [
        ("workloads", "0009_orders_from_indexes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField("event", "cause", models.JSONField(null=True)),
        migrations.AddField(
            "event",
            "notice_to",
            models.ForeignKey(
                settings.AUTH_USER_MODEL,
                django.db.models.deletion.SET_NULL,
                null=True,
                related_name="+",
                db_index=False,
            ),
        ),
        migrations.AlterField(
            "event",
            "kind",
            models.CharField(
                choices=[
                    ("status", "Status"),
                    ("action", "Action"),
                    ("cluster", "Cluster"),
                    ("scale", "Scale"),
                ],
                max_length=8,
            ),
        ),
        migrations.AddField("workload", "disrupted_at", models.DateTimeField(null=True)),
        migrations.AddField("workload", "min_pods", models.PositiveIntegerField(null=True)),
        migrations.AddField("workload", "max_pods", models.PositiveIntegerField(null=True)),
        migrations.AddIndex(
            "event",
            models.Index(
                fields=["workload", "at", "id"],
                condition=models.Q(kind="scale"),
                name="event_of_scale",
            ),
        ),
        migrations.AddIndex(
            "event",
            models.Index(
                fields=["notice_to", "id"],
                condition=models.Q(notice_to__isnull=False),
                name="event_with_notice",
            ),
        ),
        migrations.AddIndex(
            "workload",
            models.Index(
                fields=["disrupted_at"],
                condition=models.Q(disrupted_at__isnull=False),
                name="workload_disrupted",
            ),
        ),
        migrations.RunPython(fill_bounds, migrations.RunPython.noop),
    ]
