"""What 0001 to 0003 make of an empty database, in one step and a sixth of the time. An older one goes on with theirs."""

import django.db.models.deletion
import django.utils.timezone
import uuid
from decimal import Decimal
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [('workloads', '0001_initial'), ('workloads', '0002_workload_job_kind'), ('workloads', '0003_limits_used_assets_samples')]

    initial = True

    dependencies = [
        ('clusters', '0001_initial'),
        ('projects', '0005_no_memberships'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Position',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('value', models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name='Draft',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('data', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Workload',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=63)),
                ('architecture', models.CharField(max_length=16)),
                ('framework', models.CharField(blank=True, max_length=16)),
                ('spec', models.JSONField()),
                ('preemptible', models.BooleanField(default=True)),
                ('priority', models.CharField(blank=True, max_length=16)),
                ('status', models.CharField(choices=[('Creating', 'Creating'), ('Pending', 'Pending'), ('Initializing', 'Initializing'), ('Running', 'Running'), ('Resuming', 'Resuming'), ('Degraded', 'Degraded'), ('Stopping', 'Stopping'), ('Stopped', 'Stopped'), ('Deleting', 'Deleting'), ('Failed', 'Failed'), ('Completed', 'Completed')], default='Creating', max_length=16)),
                ('reason', models.TextField(blank=True)),
                ('status_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('desired', models.CharField(choices=[('Running', 'Running'), ('Stopped', 'Stopped'), ('Deleted', 'Deleted')], default='Running', max_length=8)),
                ('attempt', models.PositiveIntegerField(default=1)),
                ('running_pods', models.PositiveIntegerField(default=0)),
                ('requested_pods', models.PositiveIntegerField(default=0)),
                ('ended', models.CharField(blank=True, max_length=120)),
                ('gpus_requested', models.DecimalField(decimal_places=3, default=Decimal('0'), max_digits=12)),
                ('gpus_allocated', models.DecimalField(decimal_places=3, default=Decimal('0'), max_digits=12)),
                ('gpu_memory_requested', models.BigIntegerField(default=0)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('started_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('ran_seconds', models.FloatField(default=0)),
                ('deleted_at', models.DateTimeField(null=True)),
                ('released_at', models.DateTimeField(null=True)),
                ('job', models.JSONField(null=True)),
                ('job_uid', models.CharField(blank=True, max_length=64)),
                ('pod_group', models.JSONField(null=True)),
                ('auto_delete_seconds', models.PositiveBigIntegerField(null=True)),
                ('changed', models.BigIntegerField(default=0)),
                ('tries', models.PositiveIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(null=True)),
                ('trouble', models.TextField(blank=True)),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='workloads', to='clusters.cluster')),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='workloads', to='projects.project')),
                ('submitted_by', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('job_kind', models.CharField(default='', max_length=64)),
                ('idle_limit_seconds', models.PositiveIntegerField(null=True)),
                ('idle_since', models.DateTimeField(null=True)),
                ('use_known', models.BooleanField(default=False)),
                ('limit_warned_at', models.DateTimeField(null=True)),
                ('time_limit_seconds', models.PositiveIntegerField(null=True)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(condition=models.Q(('released_at', None)), fields=['-created_at', '-id', 'project', 'status', 'name'], name='workload_newest'), models.Index(condition=models.Q(('released_at', None)), fields=['project', '-created_at', '-id'], name='workload_newest_of_project'), models.Index(fields=['submitted_by', '-created_at', '-id'], name='workload_newest_of_person'), models.Index(condition=models.Q(('released_at', None)), fields=['name', 'id', 'project'], name='workload_by_name'), models.Index(condition=models.Q(('released_at', None)), fields=['status', '-created_at', '-id', 'project'], name='workload_by_status'), models.Index(condition=models.Q(('released_at__isnull', False)), fields=['-created_at', '-id'], name='workload_deleted'), models.Index(condition=models.Q(('auto_delete_seconds__isnull', False), ('released_at', None)), fields=['ended_at'], name='workload_to_be_deleted'), models.Index(fields=['changed'], name='workload_changed'), models.Index(condition=models.Q(('next_try_at__isnull', False)), fields=['next_try_at'], name='workload_outstanding'), models.Index(fields=['cluster', 'status'], name='workload_of_cluster'), models.Index(condition=models.Q(('released_at', None), ('status', 'Failed')), fields=['-ended_at', 'project'], name='workload_failed_last'), models.Index(condition=models.Q(('idle_since__isnull', False)), fields=['idle_since'], name='workload_idle'), models.Index(condition=models.Q(('use_known', True)), fields=['id'], name='workload_use_known')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('released_at', None)), fields=('project', 'name'), name='workload_name_once_a_project')],
            },
        ),
        migrations.CreateModel(
            name='Pod',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attempt', models.PositiveIntegerField()),
                ('uid', models.CharField(max_length=64)),
                ('name', models.CharField(max_length=253)),
                ('role', models.CharField(blank=True, max_length=16)),
                ('index', models.PositiveIntegerField(null=True)),
                ('rank', models.PositiveIntegerField(null=True)),
                ('phase', models.CharField(blank=True, max_length=16)),
                ('status', models.CharField(blank=True, max_length=64)),
                ('reason', models.TextField(blank=True)),
                ('is_ready', models.BooleanField(default=False)),
                ('node', models.CharField(blank=True, max_length=253)),
                ('gpus', models.DecimalField(decimal_places=3, max_digits=12, null=True)),
                ('restarts', models.PositiveIntegerField(default=0)),
                ('image', models.CharField(blank=True, max_length=512)),
                ('created_at', models.DateTimeField(null=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('vanished_at', models.DateTimeField(null=True)),
                ('version', models.CharField(blank=True, max_length=32)),
                ('data', models.JSONField(default=dict)),
                ('logs_kept', models.BooleanField(default=False)),
                ('workload', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pods', to='workloads.workload')),
            ],
            options={
                'ordering': ['rank', 'created_at', 'name'],
                'indexes': [models.Index(fields=['node', 'phase'], name='pod_on_node'), models.Index(condition=models.Q(('logs_kept', False)), fields=['id'], name='pod_with_logs_to_read')],
                'constraints': [models.UniqueConstraint(fields=('workload', 'uid'), name='pod_once')],
            },
        ),
        migrations.CreateModel(
            name='Event',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attempt', models.PositiveIntegerField()),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('kind', models.CharField(choices=[('status', 'Status'), ('action', 'Action'), ('cluster', 'Cluster')], max_length=8)),
                ('is_warning', models.BooleanField(default=False)),
                ('old', models.CharField(blank=True, max_length=16)),
                ('new', models.CharField(blank=True, max_length=16)),
                ('reason', models.CharField(blank=True, max_length=128)),
                ('text', models.TextField(blank=True)),
                ('source', models.CharField(blank=True, max_length=128)),
                ('subject_kind', models.CharField(blank=True, max_length=64)),
                ('subject', models.CharField(blank=True, max_length=253)),
                ('count', models.PositiveIntegerField(default=1)),
                ('first_at', models.DateTimeField(null=True)),
                ('uid', models.CharField(blank=True, max_length=64)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workload', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='workloads.workload')),
            ],
            options={
                'ordering': ['at', 'id'],
                'indexes': [models.Index(fields=['workload', 'at', 'id'], name='event_in_time_order')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('uid', ''), _negated=True), fields=('workload', 'uid'), name='event_once')],
            },
        ),
        migrations.CreateModel(
            name='Attempt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('status', models.CharField(max_length=16)),
                ('reason', models.TextField(blank=True)),
                ('asked_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('started_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('ended', models.CharField(blank=True, max_length=120)),
                ('job_uid', models.CharField(blank=True, max_length=64)),
                ('asked_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workload', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='attempts', to='workloads.workload')),
            ],
            options={
                'ordering': ['number'],
                'constraints': [models.UniqueConstraint(fields=('workload', 'number'), name='attempt_number_once')],
            },
        ),
        migrations.CreateModel(
            name='Log',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('container', models.CharField(max_length=253)),
                ('is_init', models.BooleanField(default=False)),
                ('run', models.PositiveIntegerField(default=0)),
                ('state', models.CharField(choices=[('capturing', 'Capturing'), ('complete', 'Complete'), ('lost', 'Lost'), ('removed', 'Removed')], default='capturing', max_length=12)),
                ('path', models.CharField(blank=True, max_length=512)),
                ('size', models.BigIntegerField(default=0)),
                ('first_at', models.DateTimeField(null=True)),
                ('last_at', models.DateTimeField(null=True)),
                ('gaps', models.JSONField(default=list)),
                ('note', models.CharField(blank=True, max_length=500)),
                ('ended_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('pod', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='logs', to='workloads.pod')),
            ],
            options={
                'ordering': ['is_init', 'container', 'run'],
                'indexes': [models.Index(fields=['state', 'ended_at'], name='log_by_age')],
                'constraints': [models.UniqueConstraint(fields=('pod', 'container', 'run'), name='log_once_a_run')],
            },
        ),
        migrations.CreateModel(
            name='Sample',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('gpus_quota', models.DecimalField(decimal_places=3, max_digits=12, null=True)),
                ('gpus_allocated', models.DecimalField(decimal_places=3, default=Decimal('0'), max_digits=12)),
                ('gpus_idle', models.DecimalField(decimal_places=3, max_digits=12, null=True)),
                ('running', models.PositiveIntegerField(default=0)),
                ('waiting', models.PositiveIntegerField(default=0)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project')),
            ],
            options={
                'indexes': [models.Index(fields=['at'], name='sample_by_time')],
                'constraints': [models.UniqueConstraint(fields=('project', 'at'), name='sample_once')],
            },
        ),
        migrations.CreateModel(
            name='UsedAsset',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=16)),
                ('asset', models.UUIDField()),
                ('name', models.CharField(max_length=63)),
                ('version', models.PositiveIntegerField(default=1)),
                ('part', models.CharField(blank=True, max_length=8)),
                ('workload', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='assets', to='workloads.workload')),
            ],
            options={
                'indexes': [models.Index(fields=['asset', 'workload'], name='used_asset_by_asset')],
                'constraints': [models.UniqueConstraint(fields=('workload', 'kind', 'asset', 'part'), name='used_asset_once')],
            },
        ),
    ]
