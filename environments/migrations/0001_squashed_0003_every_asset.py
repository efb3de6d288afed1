"""What 0001 to 0003 make of an empty database, in one step and a sixth of the time. An older one goes on with theirs."""

import console.encryption
import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [('environments', '0001_initial'), ('environments', '0002_initial'), ('environments', '0003_every_asset')]

    initial = True

    dependencies = [
        ('clusters', '0003_node_pools'),
        ('projects', '0005_no_memberships'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Template',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=63)),
                ('description', models.CharField(blank=True, max_length=250)),
                ('is_built_in', models.BooleanField(default=False, editable=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('version', models.PositiveIntegerField(default=1, editable=False)),
                ('architecture', models.CharField(default='Distributed', max_length=16)),
                ('framework', models.CharField(blank=True, max_length=16)),
                ('form', models.JSONField(default=dict)),
                ('locked', models.JSONField(default=list)),
                ('cluster', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='clusters.cluster')),
                ('created_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('department', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.department')),
                ('project', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project')),
                ('updated_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['name'],
                'abstract': False,
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('cluster__isnull', True), ('department__isnull', True), _connector='OR'), models.Q(('cluster__isnull', True), ('project__isnull', True), _connector='OR'), models.Q(('department__isnull', True), ('project__isnull', True), _connector='OR')), name='template_of_one_scope'), models.UniqueConstraint(fields=('project', 'name'), name='template_name_once_a_project'), models.UniqueConstraint(fields=('department', 'name'), name='template_name_once_a_department'), models.UniqueConstraint(fields=('cluster', 'name'), name='template_name_once_a_cluster'), models.UniqueConstraint(condition=models.Q(('cluster', None), ('department', None), ('project', None)), fields=('name',), name='template_name_once_for_all')],
            },
        ),
        migrations.CreateModel(
            name='Link',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('asset', models.UUIDField()),
                ('template', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='links', to='environments.template')),
            ],
            options={
                'indexes': [models.Index(fields=['asset'], name='link_by_asset')],
                'constraints': [models.UniqueConstraint(fields=('template', 'asset'), name='link_once')],
            },
        ),
        migrations.CreateModel(
            name='ComputeResource',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=63)),
                ('description', models.CharField(blank=True, max_length=250)),
                ('is_built_in', models.BooleanField(default=False, editable=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('gpu_devices', models.PositiveIntegerField(default=0)),
                ('gpu_portion', models.DecimalField(blank=True, decimal_places=3, max_digits=4, null=True)),
                ('gpu_memory', models.CharField(blank=True, max_length=32)),
                ('cpu_request', models.CharField(blank=True, default='0.1', max_length=32)),
                ('cpu_limit', models.CharField(blank=True, max_length=32)),
                ('memory_request', models.CharField(blank=True, default='100M', max_length=32)),
                ('memory_limit', models.CharField(blank=True, max_length=32)),
                ('large_shm', models.BooleanField(default=False)),
                ('created_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project')),
                ('cluster', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='clusters.cluster')),
                ('department', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.department')),
                ('updated_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('version', models.PositiveIntegerField(default=1, editable=False)),
            ],
            options={
                'ordering': ['name'],
                'abstract': False,
                'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='computeresource_name_once_a_project'), models.CheckConstraint(condition=models.Q(models.Q(('cluster__isnull', True), ('department__isnull', True), _connector='OR'), models.Q(('cluster__isnull', True), ('project__isnull', True), _connector='OR'), models.Q(('department__isnull', True), ('project__isnull', True), _connector='OR')), name='computeresource_of_one_scope'), models.UniqueConstraint(fields=('department', 'name'), name='computeresource_name_once_a_department'), models.UniqueConstraint(fields=('cluster', 'name'), name='computeresource_name_once_a_cluster'), models.UniqueConstraint(condition=models.Q(('cluster', None), ('department', None), ('project', None)), fields=('name',), name='computeresource_name_once_for_all')],
            },
        ),
        migrations.CreateModel(
            name='Environment',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=63)),
                ('description', models.CharField(blank=True, max_length=250)),
                ('is_built_in', models.BooleanField(default=False, editable=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('image', models.CharField(max_length=512)),
                ('pull_policy', models.CharField(blank=True, choices=[('Always', 'Always'), ('IfNotPresent', 'If not present'), ('Never', 'Never')], max_length=16)),
                ('command', models.TextField(blank=True)),
                ('args', models.TextField(blank=True)),
                ('variables', models.JSONField(blank=True, default=list)),
                ('working_dir', models.CharField(blank=True, max_length=512)),
                ('architecture', models.CharField(default='Distributed', max_length=16)),
                ('framework', models.CharField(blank=True, max_length=16)),
                ('created_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project')),
                ('cluster', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='clusters.cluster')),
                ('department', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.department')),
                ('updated_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('version', models.PositiveIntegerField(default=1, editable=False)),
            ],
            options={
                'ordering': ['name'],
                'abstract': False,
                'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='environment_name_once_a_project'), models.CheckConstraint(condition=models.Q(models.Q(('cluster__isnull', True), ('department__isnull', True), _connector='OR'), models.Q(('cluster__isnull', True), ('project__isnull', True), _connector='OR'), models.Q(('department__isnull', True), ('project__isnull', True), _connector='OR')), name='environment_of_one_scope'), models.UniqueConstraint(fields=('department', 'name'), name='environment_name_once_a_department'), models.UniqueConstraint(fields=('cluster', 'name'), name='environment_name_once_a_cluster'), models.UniqueConstraint(condition=models.Q(('cluster', None), ('department', None), ('project', None)), fields=('name',), name='environment_name_once_for_all')],
            },
        ),
        migrations.CreateModel(
            name='Credential',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=63)),
                ('description', models.CharField(blank=True, max_length=250)),
                ('is_built_in', models.BooleanField(default=False, editable=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('version', models.PositiveIntegerField(default=1, editable=False)),
                ('kind', models.CharField(choices=[('registry', 'Docker registry'), ('access-key', 'Access key'), ('password', 'User and password'), ('ssh-key', 'SSH key'), ('generic', 'Generic secret')], max_length=16)),
                ('public', models.JSONField(default=dict)),
                ('secret', console.encryption.EncryptedTextField()),
                ('secret_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('cluster', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='clusters.cluster')),
                ('created_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('department', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.department')),
                ('project', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project')),
                ('updated_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['name'],
                'abstract': False,
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('cluster__isnull', True), ('department__isnull', True), _connector='OR'), models.Q(('cluster__isnull', True), ('project__isnull', True), _connector='OR'), models.Q(('department__isnull', True), ('project__isnull', True), _connector='OR')), name='credential_of_one_scope'), models.UniqueConstraint(fields=('project', 'name'), name='credential_name_once_a_project'), models.UniqueConstraint(fields=('department', 'name'), name='credential_name_once_a_department'), models.UniqueConstraint(fields=('cluster', 'name'), name='credential_name_once_a_cluster'), models.UniqueConstraint(condition=models.Q(('cluster', None), ('department', None), ('project', None)), fields=('name',), name='credential_name_once_for_all')],
            },
        ),
        migrations.CreateModel(
            name='DataSource',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=63)),
                ('description', models.CharField(blank=True, max_length=250)),
                ('is_built_in', models.BooleanField(default=False, editable=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('version', models.PositiveIntegerField(default=1, editable=False)),
                ('kind', models.CharField(choices=[('git', 'Git'), ('pvc', 'PVC'), ('nfs', 'NFS'), ('s3', 'S3'), ('host-path', 'Host path'), ('config-map', 'ConfigMap'), ('secret', 'Secret')], max_length=16)),
                ('origin', models.JSONField(default=dict)),
                ('path', models.CharField(max_length=512)),
                ('access', models.CharField(default='read-only', max_length=16)),
                ('cluster', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='clusters.cluster')),
                ('created_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('credential', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='data_sources', to='environments.credential')),
                ('department', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.department')),
                ('project', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project')),
                ('updated_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['name'],
                'abstract': False,
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('cluster__isnull', True), ('department__isnull', True), _connector='OR'), models.Q(('cluster__isnull', True), ('project__isnull', True), _connector='OR'), models.Q(('department__isnull', True), ('project__isnull', True), _connector='OR')), name='datasource_of_one_scope'), models.UniqueConstraint(fields=('project', 'name'), name='datasource_name_once_a_project'), models.UniqueConstraint(fields=('department', 'name'), name='datasource_name_once_a_department'), models.UniqueConstraint(fields=('cluster', 'name'), name='datasource_name_once_a_cluster'), models.UniqueConstraint(condition=models.Q(('cluster', None), ('department', None), ('project', None)), fields=('name',), name='datasource_name_once_for_all')],
            },
        ),
        migrations.CreateModel(
            name='Policy',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=63)),
                ('description', models.CharField(blank=True, max_length=250)),
                ('is_built_in', models.BooleanField(default=False, editable=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('version', models.PositiveIntegerField(default=1, editable=False)),
                ('architecture', models.CharField(blank=True, choices=[('', 'All workloads'), ('Distributed', 'Distributed'), ('Standard', 'Standard')], max_length=16)),
                ('rules', models.JSONField(default=dict)),
                ('cluster', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='clusters.cluster')),
                ('created_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('department', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.department')),
                ('project', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project')),
                ('updated_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['name'],
                'abstract': False,
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('cluster__isnull', True), ('department__isnull', True), _connector='OR'), models.Q(('cluster__isnull', True), ('project__isnull', True), _connector='OR'), models.Q(('department__isnull', True), ('project__isnull', True), _connector='OR')), name='policy_of_one_scope'), models.UniqueConstraint(fields=('project', 'name'), name='policy_name_once_a_project'), models.UniqueConstraint(fields=('department', 'name'), name='policy_name_once_a_department'), models.UniqueConstraint(fields=('cluster', 'name'), name='policy_name_once_a_cluster'), models.UniqueConstraint(condition=models.Q(('cluster', None), ('department', None), ('project', None)), fields=('name',), name='policy_name_once_for_all')],
            },
        ),
    ]
