from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workloads", "0008_elastic_pods")]

    operations = [
        migrations.RemoveIndex("workload", "workload_newest_of_project"),
        migrations.AddIndex(
            "workload",
            models.Index(
                fields=["project", "-created_at", "-id", "cluster", "released_at"],
                condition=models.Q(("released_at", None)),
                name="workload_newest_of_project",
            ),
        ),
        migrations.AddIndex(
            "workload",
            models.Index(
                fields=["cluster", "-created_at", "-id", "project", "released_at"],
                condition=models.Q(("released_at", None)),
                name="workload_newest_of_cluster",
            ),
        ),
    ]
