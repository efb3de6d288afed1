"""Keep what workloads, projects, nodes and clusters used, at three resolutions."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0004_metrics'),
        ('projects', '0008_sign_outs'),
        ('workloads', '0013_training_progress'),
    ]

    operations = [
        migrations.CreateModel(
            name='MetricRollup',
            fields=[
                ('resolution', models.PositiveSmallIntegerField(primary_key=True, serialize=False)),
                ('until', models.BigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='MetricRow',
            fields=[
                ('pk', models.CompositePrimaryKey('resolution', 'start', 'series', blank=True, editable=False, primary_key=True, serialize=False)),
                ('resolution', models.PositiveSmallIntegerField()),
                ('start', models.PositiveIntegerField()),
                ('series', models.PositiveIntegerField()),
                ('data', models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name='MetricSeries',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('gpu_use', models.FloatField(null=True)),
                ('gpu_use_at', models.DateTimeField(null=True)),
                ('cluster', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='metric_series', to='clusters.cluster')),
                ('node', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='metric_series', to='clusters.node')),
                ('project', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='metric_series', to='projects.project')),
                ('workload', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='metric_series', to='workloads.workload')),
            ],
        ),
    ]
