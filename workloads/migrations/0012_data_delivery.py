"""Let workloads have data workers, with what these prepare and how long ranks wait for data."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workloads", "0011_elastic_scale"),
    ]

    operations = [
        migrations.AddField(
            model_name="workload",
            name="data_job",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="workload",
            name="data_workers",
            field=models.PositiveSmallIntegerField(null=True),
        ),
        migrations.AlterField(
            model_name="workload",
            name="status",
            field=models.CharField(
                choices=[
                    ("Creating", "Creating"),
                    ("Preparing", "Preparing data"),
                    ("Pending", "Pending"),
                    ("Initializing", "Initializing"),
                    ("Running", "Running"),
                    ("Resuming", "Resuming"),
                    ("Degraded", "Degraded"),
                    ("Stopping", "Stopping"),
                    ("Stopped", "Stopped"),
                    ("Deleting", "Deleting"),
                    ("Failed", "Failed"),
                    ("Completed", "Completed"),
                ],
                default="Creating",
                max_length=16,
            ),
        ),
        migrations.CreateModel(
            name="DataPreparation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("attempt", models.PositiveIntegerField()),
                ("wanted", models.BigIntegerField(default=0)),
                ("prepared", models.BigIntegerField(default=0)),
                ("rate", models.FloatField(null=True)),
                ("workers", models.JSONField(default=list)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("progress_at", models.DateTimeField(null=True)),
                ("has_stalled", models.BooleanField(default=False)),
                ("ready_at", models.DateTimeField(null=True)),
                ("ended_early", models.BooleanField(default=False)),
                ("resumed_at", models.DateTimeField(null=True)),
                ("failed_at", models.DateTimeField(null=True)),
                ("failure", models.TextField(blank=True, default="")),
                ("sampled_at", models.DateTimeField(null=True)),
                ("is_open", models.BooleanField(default=True)),
                (
                    "workload",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="data_preparations",
                        to="workloads.workload",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_open", True)),
                        fields=["id"],
                        name="data_preparation_open",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workload", "attempt"), name="data_preparation_once_an_attempt"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RankDelivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("attempt", models.PositiveIntegerField()),
                ("rank", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
                ("span", models.FloatField()),
                ("waited", models.FloatField()),
                ("computed", models.FloatField()),
                ("depth", models.PositiveIntegerField(default=0)),
                ("rate", models.FloatField(default=0)),
                ("delivered", models.BigIntegerField(default=0)),
                ("epoch", models.PositiveIntegerField(default=0)),
                (
                    "workload",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rank_deliveries",
                        to="workloads.workload",
                    ),
                ),
            ],
            options={
                "ordering": ["rank"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workload", "attempt", "rank"), name="rank_delivery_once"
                    )
                ],
            },
        ),
    ]
