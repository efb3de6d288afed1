"""Keep how far trainings are, each of their ranks, and the loss."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workloads', '0012_data_delivery'),
    ]

    operations = [
        migrations.CreateModel(
            name='LossCurve',
            fields=[
                ('workload', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='loss_curve', serialize=False, to='workloads.workload')),
                ('history', models.JSONField(default=dict)),
            ],
        ),
        migrations.CreateModel(
            name='TrainingProgress',
            fields=[
                ('workload', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='progress', serialize=False, to='workloads.workload')),
                ('attempt', models.PositiveIntegerField()),
                ('rank', models.PositiveIntegerField(null=True)),
                ('pattern', models.CharField(blank=True, max_length=24)),
                ('step', models.BigIntegerField(null=True)),
                ('total', models.BigIntegerField(null=True)),
                ('epoch', models.FloatField(null=True)),
                ('epochs', models.BigIntegerField(null=True)),
                ('at', models.DateTimeField(null=True)),
                ('ends_at', models.DateTimeField(null=True)),
                ('estimate', models.CharField(blank=True, max_length=200)),
                ('state', models.JSONField(default=dict)),
                ('pace', models.JSONField(default=dict)),
                ('log', models.BigIntegerField(null=True)),
                ('offset', models.BigIntegerField(default=0)),
                ('trouble', models.CharField(blank=True, max_length=300)),
                ('first_other', models.PositiveIntegerField(default=0)),
                ('unread_ranks', models.PositiveIntegerField(null=True)),
                ('read_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('is_settled', models.BooleanField(default=False)),
            ],
        ),
        migrations.CreateModel(
            name='RankProgress',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rank', models.PositiveIntegerField()),
                ('attempt', models.PositiveIntegerField()),
                ('pod', models.CharField(max_length=253)),
                ('at', models.DateTimeField(null=True)),
                ('read_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('state', models.JSONField(default=dict)),
                ('places', models.JSONField(default=dict)),
                ('log', models.BigIntegerField(null=True)),
                ('offset', models.BigIntegerField(default=0)),
                ('workload', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='rank_progress', to='workloads.workload')),
            ],
            options={
                'ordering': ['rank'],
                'constraints': [models.UniqueConstraint(fields=('workload', 'rank'), name='rank_progress_once')],
            },
        ),
    ]
